package routing

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/internal/providers"
)

// last is what the last tiers have to go by.
type last struct {
	budget budget
	rule   *Rule // that chose; nil for none
}

// lastTiers answers when no model did: from the cache, and when that misses with the fixed message.
func (r *Router) lastTiers(ctx context.Context, req *Request, trace Trace, l last) *Answer {
	if hit := r.lookup(ctx, req, l.budget); hit != nil {
		return cached(req, trace, hit)
	}
	trace.Tier = TierFallback
	f := r.settings.Fallback
	text := cmp.Or(l.rule.message(req.Language), f.message(req.Language))
	if f.Status != 200 || req.Structured && !f.StructuredMessage {
		return refuse(trace, &Failure{
			Status: 503, Type: "server_error", Code: "no_model_available",
			Message: text, RetryAfter: max(f.RetryAfter, time.Second),
		})
	}
	return replay(req, trace, text)
}

func (r *Router) lookup(ctx context.Context, req *Request, b budget) *CacheHit {
	if r.cache == nil || req.NoCache {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, b.last())
	defer cancel()
	return r.cache.Lookup(ctx, req)
}

// message is the fixed message in the request's language, else in any that there is.
func (f Fallback) message(language string) string {
	for _, l := range []string{language, "en", "zh"} {
		if m := f.Messages[l]; m != "" {
			return m
		}
	}
	return "The assistant is busy right now. Please try again shortly."
}

// refuse is an answer that is an error.
func refuse(trace Trace, f *Failure) *Answer {
	return &Answer{Trace: trace, Failure: f, source: &stored{}}
}

// cached is an answer from the cache.
func cached(req *Request, trace Trace, hit *CacheHit) *Answer {
	trace.Tier, trace.Cache = TierCache, hit
	return replay(req, trace, hit.Text)
}

// replay is an answer that no model gave just now, as a normal stream: pieces of the text, the end, usage 0.
func replay(req *Request, trace Trace, text string) *Answer {
	model := req.Model
	if model == "" {
		model = "auto"
	}
	s := &stored{id: AnswerID(req.RouteID), created: req.Received.Unix(), model: model}
	delta := map[string]string{"role": "assistant"}
	for rest := text; ; {
		delta["content"], rest = piece(rest)
		s.add(delta, "")
		if rest == "" {
			break
		}
		delta = map[string]string{}
	}
	s.add(map[string]string{}, "stop")
	s.chunks = append(s.chunks, providers.Chunk{
		Usage: []byte(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`),
	})
	return &Answer{Trace: trace, Model: model, source: s}
}

// maxPiece is the most bytes of text that a chunk replays: readers of lines have limits, some of 64 KiB.
const maxPiece = 1024

// piece cuts the next piece off a text, behind a space where there is one, never inside a character.
func piece(text string) (next, rest string) {
	if len(text) <= maxPiece {
		return text, ""
	}
	end := strings.LastIndexAny(text[:maxPiece], " \n") + 1
	if end == 0 {
		for end = maxPiece; end > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[end]); {
			end--
		}
	}
	return text[:end], text[end:]
}

// AnswerID is the id of an answer that is ours: made from the route id.
func AnswerID(routeID string) string { return "chatcmpl-" + strings.ReplaceAll(routeID, "-", "") }

// stored is a source of chunks that are there already.
type stored struct {
	id, model string
	created   int64
	chunks    []providers.Chunk
}

func (s *stored) add(delta map[string]string, finish string) {
	var reason *string
	signal := providers.SignalContent
	if finish != "" {
		reason, signal = &finish, providers.SignalNone
	}
	data, _ := json.Marshal(map[string]any{ // maps of strings and numbers always marshal
		"id": s.id, "object": "chat.completion.chunk", "created": s.created, "model": s.model,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}},
	})
	s.chunks = append(s.chunks, providers.Chunk{Data: data, Signal: signal, Finish: finish})
}

func (s *stored) Next() (providers.Chunk, error) {
	if len(s.chunks) == 0 {
		return providers.Chunk{}, io.EOF
	}
	chunk := s.chunks[0]
	s.chunks = s.chunks[1:]
	return chunk, nil
}

// Buffered is true: nothing of it has to be waited for.
func (s *stored) Buffered() bool { return true }

func (s *stored) Close() { s.chunks = nil }
