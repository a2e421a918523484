// Package telemetry writes what operators need to know.
//
// Its one idea: one wide event a request, made of the answer's trace when everything is over. Nothing else has to be
// joined to understand what happened. An event has kinds, codes, numbers and ids; never a prompt, an answer, a key
// or a provider's text. Names follow OpenTelemetry's GenAI conventions where there are any.
package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"holdfast/internal/routing"
)

// Request is what the event of one request is made of.
type Request struct {
	Tenant    string
	Stream    bool
	Trace     routing.Trace
	Finish    string // finish reason, "" if none was given
	Complete  bool   // the caller got a whole answer
	Usage     []byte // OpenAI's usage object, nil for none
	Estimated bool   // Usage is an estimate
	Failure   *routing.Failure
	Broke     string // the kind with which a stream broke after its commit
	Duration  time.Duration
	Tokens    int     // the estimate of the prompt that rules and windows went by
	Shadow    *Shadow // nil: the cache wasn't looked up beside the model
	Metrics   bool    // the event has CloudWatch's block of metrics
}

// ShadowMiss is the rule of a shadow that found nothing.
const ShadowMiss = "miss"

// Shadow is what the cache would have answered in the place of the model that did, and how far the two agree.
type Shadow struct {
	Rule       string // by which it was found, or ShadowMiss: then the rest is zero
	Similarity float64
	Age        time.Duration
	Key        string
	Overlap    float64 // the words that both answers have, 0 to 1
	Agree      bool
	How        string // what decided that
}

// Log writes the event. Answers of a model, or of the cache that was asked before any, are INFO; whatever the caller could notice is WARN.
func Log(ctx context.Context, log *slog.Logger, r Request) {
	level := slog.LevelInfo
	front := r.Trace.Cache != nil && r.Trace.Cache.Front
	if r.Trace.Tier != routing.TierModel && !front || !r.Complete {
		level = slog.LevelWarn
	}
	if !log.Enabled(ctx, level) {
		return
	}
	t := r.Trace
	attrs := []slog.Attr{
		slog.String("route_id", t.RouteID), slog.String("tenant", r.Tenant), slog.Bool("stream", r.Stream),
		slog.String("tier", string(t.Tier)), slog.String("config", t.Config), slog.String("chain", t.Chain),
		slog.Int64("ms", r.Duration.Milliseconds()), slog.Int("calls", t.Calls()),
		slog.Any("attempts", attempts(t.Attempts)), slog.Int("tokens", r.Tokens),
	}
	attrs = append(attrs, optional(r)...)
	attrs = append(attrs, usage(r.Usage, r.Estimated)...)
	if cost := t.Cost(); cost != nil {
		attrs = append(attrs, slog.Float64("cost_usd", cost.USD()), slog.Bool("cost_estimated", cost.Estimated))
	}
	if block, ok := metrics(r, time.Now()); ok && r.Metrics {
		attrs = append(attrs, block)
	}
	log.LogAttrs(ctx, level, "chat", attrs...)
}

// optional are the attributes that not every request has.
func optional(r Request) (attrs []slog.Attr) {
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("candidate", r.Trace.Candidate)
	add("gen_ai.provider.name", r.Trace.Provider)
	add("gen_ai.response.model", r.Trace.Model)
	add("gen_ai.response.finish_reason", r.Finish)
	add("rule", r.Trace.Rule)
	if r.Trace.Drawn != "" {
		attrs = append(attrs, slog.String("drawn", r.Trace.Drawn), slog.Float64("share", r.Trace.Share))
	}
	add("error.type", r.Broke)
	if c := r.Trace.Cache; c != nil {
		add("cache.rule", c.Rule)
		add("cache.key", c.Key)
		attrs = append(attrs, slog.Int64("cache.age_s", int64(c.Age.Seconds())), slog.Bool("cache.front", c.Front))
	}
	attrs = append(attrs, shadow(r.Shadow)...)
	if f := r.Failure; f != nil {
		add("error.code", f.Code)
		attrs = append(attrs, slog.Int("http.response.status_code", f.Status))
	}
	return attrs
}

// shadow has names that CloudWatch takes for metrics; agree is 1 or 0, so that its average is the share.
func shadow(s *Shadow) []slog.Attr {
	if s == nil {
		return nil
	}
	attrs := []slog.Attr{slog.String("shadow_rule", s.Rule)}
	if s.Rule == ShadowMiss {
		return attrs
	}
	agree := 0
	if s.Agree {
		agree = 1
	}
	return append(attrs,
		slog.Int("shadow_agree", agree), slog.String("shadow_how", s.How), slog.Float64("shadow_overlap", s.Overlap),
		slog.Float64("shadow_similarity", s.Similarity), slog.Int64("shadow_age_s", int64(s.Age.Seconds())),
		slog.String("shadow_key", s.Key),
	)
}

// attempt is one line of the trace in the log: what the metadata has, and the provider's code.
type attempt struct {
	Candidate string   `json:"candidate"`
	Outcome   string   `json:"outcome,omitempty"`
	Skipped   string   `json:"skipped,omitempty"`
	Status    int      `json:"status,omitempty"`
	Code      string   `json:"code,omitempty"`
	MS        int64    `json:"ms,omitempty"`
	TTFT      int64    `json:"ttft_ms,omitempty"`
	Cost      *float64 `json:"cost_usd,omitempty"`
	Estimated bool     `json:"cost_estimated,omitempty"`
	Stack     string   `json:"stack,omitempty"`
}

// attemptList is JSON in a JSON log, and one line for people in a text log.
type attemptList []attempt

// String is "a rate_limited 429 (slow_down), b no_client, c ok 200 in 226ms".
func (l attemptList) String() string {
	words := make([]string, len(l))
	for i, a := range l {
		words[i] = a.Candidate + " " + a.Outcome + a.Skipped
		if a.Status != 0 {
			words[i] += fmt.Sprintf(" %d", a.Status)
		}
		if a.Code != "" {
			words[i] += " (" + a.Code + ")"
		}
		if a.MS != 0 {
			words[i] += fmt.Sprintf(" in %dms", a.MS)
		}
		if a.Stack != "" {
			words[i] += " at " + a.Stack
		}
	}
	return strings.Join(words, ", ")
}

func attempts(in []routing.Attempt) attemptList {
	out := make(attemptList, len(in))
	for i, a := range in {
		out[i] = attempt{
			Candidate: a.Candidate, Outcome: a.Outcome, Skipped: string(a.Skipped), Status: a.Status,
			Code: a.Code, MS: a.Duration.Milliseconds(), TTFT: a.TTFT.Milliseconds(), Stack: a.Stack,
		}
		if a.Cost != nil {
			usd := a.Cost.USD()
			out[i].Cost, out[i].Estimated = &usd, a.Cost.Estimated
		}
	}
	return out
}

func usage(raw []byte, estimated bool) []slog.Attr {
	var u struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return nil
	}
	return []slog.Attr{
		slog.Int64("gen_ai.usage.input_tokens", u.Prompt), slog.Int64("gen_ai.usage.output_tokens", u.Completion),
		slog.Bool("usage_estimated", estimated),
	}
}
