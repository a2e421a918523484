package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
	"holdfast/internal/routing/breaker"
)

// step is one thing that a scripted answer does: it waits, then gives a chunk, fails or panics.
type step struct {
	wait  time.Duration
	chunk providers.Chunk
	err   error
	panic any
}

func data(delta, finish string) step {
	return step{chunk: providers.Chunk{Data: []byte(chunkJSON(delta, finish)), Finish: finish}}
}

func usage(json string) step { return step{chunk: providers.Chunk{Usage: []byte(json)}} }

func chunkJSON(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, reason)
}

// hello is a whole answer.
func hello() []step {
	return []step{
		data(`{"role":"assistant","content":"He"}`, ""), data(`{"content":"llo"}`, ""), data(`{}`, "stop"),
		usage(`{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1}}`),
	}
}

// script is a scripted source of chunks. Like a live one it ends when its context does.
type script struct {
	ctx    context.Context
	mu     sync.Mutex
	steps  []step
	closed int
}

func (s *script) Next() (providers.Chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) == 0 {
		return providers.Chunk{}, io.EOF
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	timer := time.NewTimer(next.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		return providers.Chunk{}, &providers.Error{Kind: providers.KindCanceled}
	}
	if next.panic != nil {
		panic(next.panic)
	}
	return next.chunk, next.err
}

func (s *script) Close() { s.closed++ }

func (s *script) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps)
}

func modelTrace(req *routing.Request) routing.Trace {
	return routing.Trace{
		Tier: routing.TierModel, RouteID: req.RouteID, Config: "c0ffee", Chain: "default",
		Candidate: "b", Provider: "p-b", Model: "model-b",
		Attempts: []routing.Attempt{
			{Candidate: "a", Outcome: "timeout", Duration: 3011 * time.Millisecond, Ended: true, Code: "secret-code"},
			{Candidate: "x", Skipped: routing.SkipBreakerOpen},
			{Candidate: "b", Outcome: routing.OutcomeOK, Status: 200, Duration: 840 * time.Millisecond, TTFT: 312 * time.Millisecond},
		},
	}
}

// fake is a router whose answers are scripted. It notes what it is asked.
type fake struct {
	steps    []step
	answer   func(ctx context.Context, req *routing.Request) *routing.Answer // in place of steps
	finished chan finish

	mu       sync.Mutex
	requests []*routing.Request
	prepared int
	source   *script
}

type finish struct {
	req   *routing.Request
	trace routing.Trace
	done  Done
}

func (f *fake) Prepare(context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepared++
}

func (f *fake) Answer(ctx context.Context, req *routing.Request) *routing.Answer {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	s := &script{ctx: ctx, steps: append([]step(nil), f.steps...)}
	f.source = s
	f.mu.Unlock()
	if f.answer != nil {
		return f.answer(ctx, req)
	}
	return routing.NewAnswer(modelTrace(req), s)
}

func (f *fake) Models(tenant string) []routing.Listing {
	return []routing.Listing{{ID: "a", Provider: "p-a"}, {ID: "of-" + tenant, Provider: "holdfast"}}
}

func (f *fake) Status(context.Context, string) routing.Status {
	no, zero := false, 0
	return routing.Status{
		Config: "c0ffee",
		Candidates: []routing.CandidateStatus{
			{
				Candidate: routing.Candidate{ID: "a", Provider: "p-a", Model: "m", Priority: 1, Weight: 7, BaseURL: "http://user:pass@secret"},
				Share:     0.7, Drawn: 0.698765,
				Breaker: breaker.Status{
					Candidate: "a", State: breaker.Open, Generation: 4, Until: time.Unix(1e9, 0), Why: "timeout",
					Mode: breaker.ModeHybrid, Local: true,
					Sample: breaker.Window{Start: 999_999_990_000, Tickets: 20, OK: 3, Failed: 16, Slow: 2},
				},
			},
			{Candidate: routing.Candidate{ID: "b"}, Skip: routing.SkipNoClient},
		},
		Chains: []routing.Chain{{Name: "a", Primary: "a", Fallbacks: []routing.Entry{
			{Model: "b", OnTimeout: &no, OnStatus: []int{}, MaxRetries: &zero}, {Model: "c"},
		}}},
	}
}

// fixed answers every request with a failure or an answer of a lower tier.
func fixed(tier routing.Tier, failure *routing.Failure, steps ...step) func(context.Context, *routing.Request) *routing.Answer {
	return func(ctx context.Context, req *routing.Request) *routing.Answer {
		t := routing.Trace{
			Tier: tier, RouteID: req.RouteID, Config: "c0ffee", Chain: "default",
			Attempts: []routing.Attempt{{Candidate: "a", Outcome: "server_error", Status: 500, Ended: true}},
		}
		if tier == routing.TierCache {
			t.Cache = &routing.CacheHit{Rule: "similar", Similarity: 0.934, Age: time.Hour, Question: "and before?"}
		}
		a := routing.NewAnswer(t, &script{ctx: ctx, steps: append([]step(nil), steps...)})
		a.Failure, a.Model = failure, "auto"
		return a
	}
}

func key(tenant, secret string) Key {
	sum := sha256.Sum256([]byte(secret))
	return Key{tenant, hex.EncodeToString(sum[:])}
}

// open makes the handler that anonymous callers may use.
func (f *fake) open() http.Handler { return f.with(Settings{Anonymous: true, Version: "v1"}) }

func (f *fake) with(s Settings) http.Handler {
	if f.finished == nil {
		f.finished = make(chan finish, 100)
	}
	return New(s, Deps{
		Router: f,
		Finished: func(_ context.Context, req *routing.Request, trace routing.Trace, done Done) {
			f.finished <- finish{req, trace, done}
		},
	})
}

func call(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const completions = "/v1/chat/completions"

func post(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	return call(h, http.MethodPost, completions, body, headers...)
}

// ask is a request body with one message of the user and more fields.
func ask(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"messages":[{"role":"user","content":"How do bridges carry loads?"}]` + more + `}`
}

// requireError demands OpenAI's envelope.
func requireError(t *testing.T, w *httptest.ResponseRecorder, status int) gjson.Result {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.True(t, gjson.Valid(w.Body.String()), w.Body.String())
	e := gjson.Get(w.Body.String(), "error")
	require.NotEmpty(t, e.Get("message").Str)
	require.Equal(t, typeOf(status), e.Get("type").Str)
	for _, name := range []string{"param", "code"} {
		require.True(t, e.Get(name).Exists(), name)
	}
	return e
}
