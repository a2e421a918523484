package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/tidwall/gjson"

	"holdfast/internal/cache"
	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// lastResort gives routing the cache in routing's own words.
type lastResort struct {
	cache cache.Service
	log   *slog.Logger
}

// Lookup implements routing.LastResort.
func (l lastResort) Lookup(ctx context.Context, req *routing.Request) *routing.CacheHit {
	hit, found, _ := l.ask(ctx, req, question(req), l.cache.Lookup)
	return told(hit, found, req.Language)
}

// way is how the cache is asked: one of its methods.
type way func(ctx context.Context, q cache.Question) (hit cache.Hit, found bool, err error)

// ask asks the cache. A store that is away is a miss and a warning; so is a panic, as other answers are still to come.
// failed: nobody knows whether there was something.
func (l lastResort) ask(ctx context.Context, req *routing.Request, q cache.Question, by way) (hit cache.Hit, found, failed bool) {
	defer func() {
		if recover() != nil {
			hit, found, failed = cache.Hit{}, false, true
			l.log.ErrorContext(ctx, "cache lookup panicked", "route_id", req.RouteID, "stack", string(debug.Stack()))
		}
	}()
	hit, found, err := by(ctx, q)
	if err != nil {
		l.log.Log(ctx, levelOf(err), "cache lookup failed", "route_id", req.RouteID, "error", err)
	}
	return hit, found, err != nil
}

// told is a hit in routing's words; nil for a miss.
func told(hit cache.Hit, found bool, language string) *routing.CacheHit {
	if !found {
		return nil
	}
	return &routing.CacheHit{
		Rule: hit.Rule, Similarity: hit.Similarity, Age: hit.Age, Text: labelled(hit, language), Question: hit.Question,
		Key: hit.Key,
	}
}

// labelled is the answer of a hit. Where the cache isn't sure enough that it is asked the same, the answer says so, in
// the language of the request, and which question it is one to.
func labelled(hit cache.Hit, language string) string {
	switch {
	case !hit.Labelled:
		return hit.Text
	case language == "zh":
		return "（以下是此前对一个相似问题“" + hit.Question + "”的回答，未必完全符合您的问题。）\n\n" + hit.Text
	default:
		return "(This answers an earlier, similar question: “" + hit.Question + "”. It may not fit yours exactly.)\n\n" + hit.Text
	}
}

// levelOf keeps what the store has said already, once, from being said for each request.
func levelOf(err error) slog.Level {
	if errors.Is(err, cache.ErrAway) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// question is what the cache looks at of a request. A conversation that doesn't end with the user has no question:
// it is neither looked up nor stored.
func question(req *routing.Request) cache.Question {
	q := cache.Question{
		Tenant: req.Tenant, User: req.User, NoCache: req.NoCache, NoStore: req.NoStore,
		Tools:  pick(req.Raw, ofTools),
		Format: pick(req.Raw, func(field string) bool { return !ofTools(field) && !harmless(field) }),
	}
	last := len(req.Messages) - 1
	if last < 0 || req.Messages[last].Role != "user" {
		q.NoCache, q.NoStore = true, true
		return q
	}
	q.Attachments = attachments(req)
	var system []string
	for i, m := range req.Messages {
		switch {
		case i == last:
			q.Text = m.Text
		case len(q.Turns) == 0 && (m.Role == "system" || m.Role == "developer"):
			system = append(system, m.Text)
		default:
			q.Turns = append(q.Turns, cache.Turn{Role: m.Role, Text: turnText(m)})
		}
	}
	q.System = strings.Join(system, "\n\n")
	return q
}

// attachments are what the messages have besides their texts, each with its place: parts that aren't text, names,
// tool calls and whose result a message is.
func attachments(req *routing.Request) (out []string) {
	for i, m := range req.Messages {
		for j, p := range m.Parts {
			if p.Type != "text" {
				out = append(out, fmt.Sprintf("%d.%d %s", i, j, p.Raw))
			}
		}
	}
	at := 0
	gjson.GetBytes(req.Raw, "messages").ForEach(func(_, m gjson.Result) bool {
		if more := pick([]byte(m.Raw), func(field string) bool { return field != "role" && field != "content" }); more != nil {
			out = append(out, fmt.Sprintf("%d %s", at, more))
		}
		at++
		return true
	})
	return out
}

// turnText is a turn's text with what it calls, where secrets may be too.
func turnText(m providers.Message) string {
	text := m.Text
	for _, c := range m.ToolCalls {
		text += "\n" + c.Arguments
	}
	return text
}

func ofTools(field string) bool {
	switch field {
	case "tools", "functions", "tool_choice", "function_call":
		return true
	}
	return false
}

// harmless are the fields that don't change what a good answer is. Any other may: one that we don't know is part of
// the output format.
func harmless(field string) bool {
	switch field {
	case "messages", "model", "stream", "stream_options", "n", "user", "metadata", "store", "temperature", "top_p", "seed",
		"presence_penalty", "frequency_penalty", "max_tokens", "max_completion_tokens", "reasoning_effort",
		"enable_thinking", "parallel_tool_calls", "service_tier", "safety_identifier", "prompt_cache_key",
		"prompt_cache_retention", "prompt_cache_options", "moderation":
		return true
	}
	return false
}

// pick gives those fields of an object that may stay as an object of its own, in the order of their names; nil if
// there are none. null is absent.
func pick(object []byte, may func(field string) bool) []byte {
	fields := map[string]json.RawMessage{}
	gjson.ParseBytes(object).ForEach(func(key, value gjson.Result) bool {
		if value.Type != gjson.Null && may(key.Str) {
			fields[key.Str] = json.RawMessage(value.Raw)
		}
		return true
	})
	if len(fields) == 0 {
		return nil
	}
	out, _ := json.Marshal(fields) // valid JSON always marshals
	return out
}
