package app

import (
	"context"
	"errors"
	"log/slog"
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

// Lookup implements routing.LastResort. A store that is away is a miss and a warning.
func (l lastResort) Lookup(ctx context.Context, req *routing.Request) *routing.CacheHit {
	hit, found, err := l.cache.Lookup(ctx, question(req))
	if err != nil {
		l.log.Log(ctx, levelOf(err), "cache lookup failed", "route_id", req.RouteID, "error", err)
	}
	if !found {
		return nil
	}
	return &routing.CacheHit{
		Rule: hit.Rule, Similarity: hit.Similarity, Age: hit.Age, Text: hit.Text, Question: hit.Question,
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
		Tools:  raw(req.Raw, "tools", "functions", "tool_choice", "function_call"),
		Format: raw(req.Raw, "response_format", "modalities", "audio", "logprobs", "stop"),
	}
	last := len(req.Messages) - 1
	if last < 0 || req.Messages[last].Role != "user" {
		q.NoCache, q.NoStore = true, true
		return q
	}
	var system []string
	for i, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Type != "text" {
				q.Attachments = append(q.Attachments, string(p.Raw))
			}
		}
		switch {
		case i == last:
			q.Text = m.Text
		case m.Role == "system" || m.Role == "developer":
			system = append(system, m.Text)
		default:
			q.Turns = append(q.Turns, cache.Turn{Role: m.Role, Text: turnText(m)})
		}
	}
	q.System = strings.Join(system, "\n\n")
	return q
}

// turnText is a turn's text with its tool calls, so that turns that differ in those only differ.
func turnText(m providers.Message) string {
	text := m.Text
	for _, c := range m.ToolCalls {
		text += "\x00" + c.Name + "\x00" + c.Arguments
	}
	return text
}

// raw collects the given fields of a request as they came, nil if there are none.
func raw(request []byte, fields ...string) []byte {
	var out []byte
	for _, field := range fields {
		if v := gjson.GetBytes(request, field); v.Exists() && v.Type != gjson.Null {
			out = append(append(append(out, field...), '='), v.Raw...)
			out = append(out, '\n')
		}
	}
	return out
}
