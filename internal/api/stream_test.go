package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

const (
	streaming  = `"stream":true`
	withUsage  = `"stream":true,"stream_options":{"include_usage":true}`
	wholeTrace = `{
		"tier": "model", "candidate": "b", "provider": "p-b", "model": "model-b", "chain": "default", "rule": "", "config": "c0ffee",
		"attempts": [
			{"candidate": "a", "outcome": "timeout", "ms": 3011},
			{"candidate": "x", "skipped": "breaker_open"},
			{"candidate": "b", "outcome": "ok", "status": 200, "ttft_ms": 312}]}`
)

// requireMeta compares a holdfast object but for its route id.
func requireMeta(t *testing.T, want string, got map[string]any) {
	t.Helper()
	require.NotEmpty(t, got["route_id"])
	delete(got, "route_id")
	have, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, want, string(have))
}

func TestStream(t *testing.T) {
	f := &fake{steps: hello()}
	w := post(f.open(), ask(streaming))
	e := requireStrict(t, w.Body.String(), false)
	require.Equal(t, "Hello", e.text)
	require.Equal(t, "stop", e.finish)
	require.Equal(t, e.meta["route_id"], w.Header().Get("Holdfast-Route-Id"))
	requireMeta(t, wholeTrace, e.meta)
	require.Equal(t, chunkJSON(`{"content":"llo"}`, ""), e.raw[1], "a right chunk travels as it came")
	for name, value := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
		"Holdfast-Tier": "model", "Holdfast-Candidate": "b", "Holdfast-Attempts": "2", "Holdfast-Cache": "",
	} {
		require.Equal(t, value, w.Header().Get(name), name)
	}
	require.True(t, w.Flushed)

	got := <-f.finished
	require.Empty(t, f.finished)
	require.Equal(t, f.requests[0], got.req)
	require.Equal(t, "b", got.trace.Candidate)
	d := got.done
	require.JSONEq(t, string(hello()[3].chunk.Usage), string(d.Usage))
	require.Positive(t, d.Duration)
	d.Usage, d.Duration = nil, 0
	require.Equal(t, Done{Status: 200, Complete: true, Finish: "stop", Text: "Hello", Bytes: w.Body.Len()}, d)
	require.Equal(t, 1, f.source.closed)
}

func TestStreamUsage(t *testing.T) {
	role, end := data(`{"role":"assistant","content":"twelve chars"}`, ""), data(`{}`, "stop")
	full := `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"cost":{"usd":0.1}}`
	for _, c := range []struct {
		name      string
		steps     []step
		want      string
		estimated bool
	}{
		{"at the end", []step{role, end, usage(full)}, full, false},
		{"at the start", []step{usage(full), role, end}, full, false},
		{"in every chunk, the last counts", []step{usage(`{"prompt_tokens":1}`), role, usage(`{}`), end, usage(full)}, full, false},
		{"beside the data", []step{role, {chunk: providers.Chunk{Data: end.chunk.Data, Finish: "stop", Usage: []byte(full)}}}, full, false},
		{"no total", []step{role, end, usage(`{"prompt_tokens":3,"completion_tokens":2}`)}, `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`, true},
		{"floats", []step{role, end, usage(`{"prompt_tokens":3.0,"completion_tokens":2,"total_tokens":5}`)}, `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`, false},
		{"half", []step{role, end, usage(`{"prompt_tokens":3,"completion_tokens":null,"total_tokens":3}`)}, `{"prompt_tokens":3,"completion_tokens":4,"total_tokens":3}`, true},
		{"none", []step{role, end}, `{"prompt_tokens":13,"completion_tokens":4,"total_tokens":17}`, true},
		{"not an object", []step{role, end, usage(`[]`)}, `{"prompt_tokens":13,"completion_tokens":4,"total_tokens":17}`, true},
		{"over two lines", []step{role, end, usage("{\"prompt_tokens\":3,\n\"completion_tokens\":2,\"total_tokens\":5}")}, `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{steps: c.steps}
			e := requireStrict(t, post(f.open(), ask(withUsage)).Body.String(), true)
			have, err := json.Marshal(e.usage)
			require.NoError(t, err)
			if c.name == "no total" { // a sum is no estimate
				c.estimated = false
			}
			require.JSONEq(t, c.want, string(have))
			require.Equal(t, c.estimated, e.meta["usage_estimated"] == true)
			require.Equal(t, c.estimated, (<-f.finished).done.UsageEstimated)
			require.Equal(t, "twelve chars", e.text)

			requireStrict(t, post(f.open(), ask(streaming)).Body.String(), false)
			requireStrict(t, post(f.open(), ask(`"stream":true,"stream_options":{"include_usage":false}`)).Body.String(), false)
		})
	}
}

func TestStreamShapes(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
		text  string
	}{
		{"all in one chunk", []step{data(`{"role":"assistant","content":"x"}`, "stop")}, "x"},
		{"unicode", []step{data(`{"role":"assistant","content":"你好\ud83d"}`, ""), data(`{"content":"\ude00 \u2028</script>"}`, ""), data(`{}`, "stop")}, "你好\ufffd\ufffd \u2028</script>"},
		{"lines in the JSON", []step{
			{chunk: providers.Chunk{Data: []byte(strings.ReplaceAll(chunkJSON(`{"role":"assistant","content":"a\nb"}`, ""), ",", ",\r\n "))}},
			{chunk: providers.Chunk{Data: []byte(strings.ReplaceAll(chunkJSON(`{"content":"c"}`, ""), ",", "\n,"))}},
			data(`{}`, "stop"),
		}, "a\nbc"},
		{"another gateway's metadata", []step{
			{chunk: providers.Chunk{Data: []byte(strings.Replace(chunkJSON(`{"role":"assistant","content":"a"}`, ""), `{"id"`, `{"holdfast":{"tier":"cache"},"id"`, 1))}},
			{chunk: providers.Chunk{Data: []byte(strings.Replace(chunkJSON(`{"content":"b"}`, ""), `{"id"`, `{"holdfast":{},"id"`, 1))}},
			{chunk: providers.Chunk{Data: []byte(strings.Replace(chunkJSON(`{}`, "stop"), `{"id"`, `{"holdfast":{},"id"`, 1)), Finish: "stop"}},
		}, "ab"},
		{"data after the finish", []step{data(`{"role":"assistant","content":"a"}`, "stop"), data(`{"content":"late"}`, "stop")}, "a"},
		{"an error after the finish", []step{data(`{"role":"assistant","content":"a"}`, "stop"), {err: &providers.Error{Kind: providers.KindServerError}}}, "a"},
		{"blanks at the end of a chunk", []step{
			{chunk: providers.Chunk{Data: []byte(chunkJSON(`{"role":"assistant","content":"a"}`, "") + "  ")}}, data(`{}`, "stop"),
		}, "a"},
	} {
		for mode, more := range map[string]string{"plain": streaming, "usage": withUsage} {
			t.Run(c.name+", "+mode, func(t *testing.T) {
				f := &fake{steps: c.steps}
				e := requireStrict(t, post(f.open(), ask(more)).Body.String(), mode == "usage")
				require.Equal(t, c.text, e.text)
				require.Equal(t, "model", e.meta["tier"])
				require.True(t, (<-f.finished).done.Complete)
			})
		}
	}
}

func TestBrokenStream(t *testing.T) {
	first := data(`{"role":"assistant","content":"part one "}`, "")
	failing := &providers.Error{Kind: providers.KindTimeout, Code: "SECRET", Message: "SECRET", Err: errors.New("SECRET")}
	for _, c := range []struct {
		name  string
		steps []step
		code  string
		text  string
	}{
		{"an error", []step{first, data(`{"content":"part two"}`, ""), {err: failing}}, "stream_timeout", "part one part two"},
		{"an end without a finish", []step{first}, "stream_truncated", "part one "},
		{"an error at once", []step{{err: failing}}, "stream_timeout", ""},
		{"another error", []step{first, {err: errors.New("SECRET")}}, "stream_server_error", "part one "},
		{"usage, then an error", []step{first, usage(`{"prompt_tokens":1}`), {err: failing}}, "stream_timeout", "part one "},
	} {
		for mode, more := range map[string]string{"plain": streaming, "usage": withUsage} {
			t.Run(c.name+", "+mode, func(t *testing.T) {
				f := &fake{steps: c.steps}
				w := post(f.open(), ask(more))
				require.Equal(t, 200, w.Code)
				e := requireStrict(t, w.Body.String(), mode == "usage")
				require.Equal(t, c.code, e.failure["code"])
				require.Equal(t, "server_error", e.failure["type"])
				require.Contains(t, e.failure, "param")
				require.NotEmpty(t, e.failure["message"])
				require.Equal(t, c.text, e.text)
				require.Equal(t, "model", e.meta["tier"])
				require.NotContains(t, w.Body.String(), "SECRET")
				d := (<-f.finished).done
				require.False(t, d.Complete)
				require.Equal(t, c.code, "stream_"+d.Err.Kind.String())
				require.Equal(t, c.text, d.Text)
			})
		}
	}
}

func TestLowerTiers(t *testing.T) {
	steps := []step{
		{chunk: providers.Chunk{Data: []byte(strings.ReplaceAll(chunkJSON(`{"role":"assistant","content":"stored"}`, ""), "m-1", "auto"))}},
		{chunk: providers.Chunk{Data: []byte(strings.ReplaceAll(chunkJSON(`{}`, "stop"), "m-1", "auto")), Finish: "stop"}},
	}
	for _, tier := range []routing.Tier{routing.TierCache, routing.TierFallback} {
		for mode, more := range map[string]string{"json": ``, "stream": streaming, "usage": withUsage} {
			t.Run(string(tier)+" "+mode, func(t *testing.T) {
				f := &fake{answer: fixed(tier, nil, steps...)}
				w := post(f.open(), ask(more))
				require.Equal(t, string(tier), w.Header().Get("Holdfast-Tier"))
				require.Equal(t, "1", w.Header().Get("Holdfast-Attempts"))
				require.NotContains(t, w.Header(), "Holdfast-Candidate")
				meta := gjson.Get(w.Body.String(), "holdfast").Value()
				if mode == "json" {
					require.Equal(t, "auto", gjson.Get(w.Body.String(), "model").Str)
					require.JSONEq(t, `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, gjson.Get(w.Body.String(), "usage").Raw)
				} else {
					e := requireStrict(t, w.Body.String(), mode == "usage")
					meta = e.meta
					if mode == "usage" {
						require.Equal(t, map[string]any{"prompt_tokens": 0.0, "completion_tokens": 0.0, "total_tokens": 0.0}, e.usage)
					}
				}
				want := `{"tier": "` + string(tier) + `", "chain": "default", "rule": "", "config": "c0ffee",
					"attempts": [{"candidate": "a", "outcome": "server_error", "status": 500, "ms": 0}]`
				if tier == routing.TierCache {
					want += `, "cache": {"rule": "similar", "similarity": 0.934, "age_s": 3600, "question": "and before?"}`
					require.Equal(t, "similar; similarity=0.934; age=3600", w.Header().Get("Holdfast-Cache"))
				}
				requireMeta(t, want+"}", meta.(map[string]any))
				done := (<-f.finished).done
				require.False(t, done.UsageEstimated)
				require.Equal(t, "stored", done.Text)
			})
		}
	}
}

func TestExactHitsNameNoSimilarity(t *testing.T) {
	h := http.Header{}
	tellHeaders(h, &routing.Trace{Tier: routing.TierCache, Cache: &routing.CacheHit{Rule: "exact", Similarity: 1, Age: time.Hour}})
	require.Equal(t, "exact; age=3600", h.Get("Holdfast-Cache"))
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		failure routing.Failure
		tier    routing.Tier
		status  int
		kind    string
		retry   string
	}{
		{"caller's mistake", routing.Failure{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Param: "messages", Message: "too long"}, "", 400, "invalid_request_error", ""},
		{"unknown model", routing.Failure{Status: 404, Code: "model_not_found", Message: "no"}, "", 404, "invalid_request_error", ""},
		{"last tier", routing.Failure{Status: 503, Message: "busy", RetryAfter: 1500 * time.Millisecond}, routing.TierFallback, 503, "server_error", "2"},
		{"soon", routing.Failure{Status: 503, Message: "busy", RetryAfter: time.Millisecond}, routing.TierFallback, 503, "server_error", "1"},
		{"cap", routing.Failure{Status: 429, Message: "cap"}, "", 429, "rate_limit_error", ""},
		{"no status", routing.Failure{Message: "odd"}, "", 500, "server_error", ""},
	} {
		for mode, more := range map[string]string{"json": ``, "stream": streaming} {
			t.Run(c.name+" "+mode, func(t *testing.T) {
				failure := c.failure
				f := &fake{answer: fixed(c.tier, &failure)}
				w := post(f.open(), ask(more))
				e := requireError(t, w, c.status)
				require.Equal(t, c.kind, e.Get("type").Str)
				require.Equal(t, failure.Message, e.Get("message").Str)
				require.Equal(t, failure.Code, e.Get("code").Str)
				require.Equal(t, failure.Param, e.Get("param").Str)
				require.Equal(t, failure.Code == "", e.Get("code").Type == gjson.Null)
				require.Equal(t, c.retry, w.Header().Get("Retry-After"))
				require.Equal(t, c.retry != "", w.Header().Get("X-Should-Retry") == "false")
				require.Equal(t, string(c.tier), w.Header().Get("Holdfast-Tier"))
				require.Equal(t, "1", w.Header().Get("Holdfast-Attempts"))
				meta := gjson.Get(w.Body.String(), "holdfast")
				require.Equal(t, w.Header().Get("Holdfast-Route-Id"), meta.Get("route_id").Str)
				require.Equal(t, "server_error", meta.Get("attempts.0.outcome").Str)
				got := <-f.finished
				require.Equal(t, &failure, got.done.Failure)
				require.False(t, got.done.Complete)
			})
		}
	}
}

// TestSilence shows the heartbeat, and that it stops with the answer.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := data(`{"content":"b"}`, "")
		long.wait = 40 * time.Second
		f := &fake{steps: []step{data(`{"role":"assistant","content":"a"}`, ""), long, data(`{}`, "stop")}}
		w := post(f.open(), ask(streaming))
		e := requireStrict(t, w.Body.String(), false)
		require.Equal(t, 2, e.comments)
		require.Equal(t, "ab", e.text)
		size := w.Body.Len()
		<-time.After(time.Minute)
		require.Equal(t, size, w.Body.Len())
	})
}

// TestTrailingUsage shows how long a caller waits for what comes after the finish reason.
func TestTrailingUsage(t *testing.T) {
	role, end := data(`{"role":"assistant","content":"twelve chars"}`, ""), data(`{}`, "stop")
	late := func(wait time.Duration) []step {
		u := usage(`{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`)
		u.wait = wait
		return []step{role, end, u}
	}
	for _, c := range []struct {
		name      string
		wait      time.Duration
		asked     bool
		took      time.Duration
		estimated bool
	}{
		{"in time", time.Second, true, time.Second, false},
		{"too late", time.Hour, true, 2 * time.Second, true},
		{"in time, not asked", 100 * time.Millisecond, false, 100 * time.Millisecond, false},
		{"too late, not asked", time.Hour, false, 250 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{steps: late(c.wait)}
				more, start := streaming, time.Now()
				if c.asked {
					more = withUsage
				}
				e := requireStrict(t, post(f.open(), ask(more)).Body.String(), c.asked)
				require.Equal(t, c.took, time.Since(start))
				if c.asked {
					require.Equal(t, c.estimated, e.meta["usage_estimated"] == true)
				}
				done := (<-f.finished).done
				require.True(t, done.Complete)
				require.Equal(t, c.estimated, done.UsageEstimated)
			})
		})
	}
}

// TestAfterRunsLast shows that the work after a response sees all of it written and the answer closed.
func TestAfterRunsLast(t *testing.T) {
	f := &fake{steps: hello()}
	var work func(context.Context)
	w := httptest.NewRecorder()
	told := 0
	h := New(Settings{Anonymous: true}, Deps{
		Router: f,
		After: func(_ context.Context, later func(context.Context)) {
			require.True(t, strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n"))
			require.Equal(t, 1, f.source.closed)
			work = later
		},
		Finished: func(context.Context, *routing.Request, routing.Trace, Done) { told++ },
	})
	h.ServeHTTP(w, httptest.NewRequest("POST", completions, strings.NewReader(ask(streaming))))
	require.Zero(t, told)
	work(t.Context())
	require.Equal(t, 1, told)
}

func TestLongAnswersAreMarked(t *testing.T) {
	for _, c := range []struct {
		name    string
		piece   string
		pieces  int
		tooLong bool
	}{
		{"at the limit", strings.Repeat("a", 1<<10), 64, false},
		{"above", strings.Repeat("a", 1<<10), 65, true},
		{"far above", strings.Repeat("a", 1<<10), 300, true},
		{"escapes are shorter than they look", strings.Repeat(`\n`, 1<<10), 60, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := []step{data(`{"role":"assistant"}`, "")}
			for range c.pieces {
				steps = append(steps, data(`{"content":"`+c.piece+`"}`, ""))
			}
			f := &fake{steps: append(steps, data(`{}`, "stop"))}
			for _, more := range []string{``, streaming} {
				post(f.open(), ask(more))
				done := (<-f.finished).done
				require.Equal(t, c.tooLong, done.TooLong)
				require.Equal(t, c.tooLong, done.Text == "")
				require.True(t, done.Complete)
			}
		})
	}
}

func TestDoneTellsToolsAndRefusals(t *testing.T) {
	for _, c := range []struct {
		name           string
		delta          string
		tools, refusal bool
	}{
		{"text", `{"role":"assistant","content":"a","refusal":null}`, false, false},
		{"tools", `{"role":"assistant","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}`, true, false},
		{"legacy call", `{"role":"assistant","function_call":{"name":"f"}}`, true, false},
		{"refusal", `{"role":"assistant","refusal":"I can't"}`, false, true},
		{"empty refusal", `{"role":"assistant","content":"a","refusal":""}`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{steps: []step{data(c.delta, ""), data(`{}`, "stop")}}
			for _, more := range []string{``, streaming} {
				post(f.open(), ask(more))
				done := (<-f.finished).done
				require.Equal(t, [2]bool{c.tools, c.refusal}, [2]bool{done.ToolCalls, done.Refusal})
			}
		})
	}
}
