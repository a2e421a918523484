package providertest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is what a caller got; err is how the body ended, nil for properly.
type reply struct {
	status int
	kind   string
	body   string
	err    error
}

func ask(t *testing.T, rt http.RoundTripper, url string, d Dialect, body string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	if d == DashScope {
		req.Header.Set("X-DashScope-SSE", "enable")
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header.Get("Content-Type"), string(raw), err}
}

// transport is one that leaves no goroutine behind.
func transport(t *testing.T) *http.Transport {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// geminiStream is the path by which Gemini is asked for a stream; to others it is one of any.
const geminiStream = "/v1beta/models/m:streamGenerateContent"

const streaming = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"parameters":{"incremental_output":true}}`

func TestEndsInEveryDialect(t *testing.T) {
	dialects := map[Dialect]struct{ marker, failed string }{
		OpenAI:    {"data: [DONE]\n\n", `data: {"error":`},
		DashScope: {`"finish_reason":"stop"`, "event:error\n:HTTP_STATUS/500\n"},
		Ollama:    {`"done":true`, `{"error":"scripted failure 500"}`},
		Anthropic: {"event: message_stop\n", "event: error\ndata: {"},
		Gemini:    {`"finishReason":"STOP"`, `data: {"error":{"code":500,`},
	}
	for d, in := range dialects {
		tests := []struct {
			name         string
			b            Behaviour
			has, hasnt   string
			status       int
			kind         string
			cut, nothing bool
		}{
			{name: "zero value", has: in.marker},
			{name: "done", b: Says("BBB"), has: in.marker},
			{name: "eof", b: Ends(EndEOF, "BBB"), has: "BBB", hasnt: in.marker},
			{name: "cut", b: Ends(EndCut, "BBB"), has: "BBB", hasnt: in.marker, cut: true},
			{name: "error event", b: Ends(EndErrorEvent, "BBB"), has: in.failed, hasnt: in.marker},
			{name: "empty", b: Ends(EndEmpty, "BBB"), has: in.marker, hasnt: "BBB"},
			{name: "error body", b: Ends(EndErrorBody), has: "scripted failure 500", hasnt: in.marker, kind: "application/json"},
			{name: "page", b: Ends(EndHTML), has: "<html>", hasnt: in.marker, kind: "text/html"},
			{name: "status", b: Fails(503), has: "scripted failure 503", status: 503, kind: "application/json"},
			{name: "own body", b: Behaviour{Body: "mine", End: EndCut}, has: "mine", cut: true},
			{name: "dropped", b: Ends(EndDrop), nothing: true},
		}
		for _, tt := range tests {
			t.Run(string(d)+" "+tt.name, func(t *testing.T) {
				u := Start(t, d, tt.b)
				got := ask(t, transport(t), u.URL+geminiStream, d, streaming)
				if tt.nothing {
					require.Error(t, got.err)
					require.Zero(t, got.status)
					return
				}
				require.Equal(t, tt.cut, got.err != nil, "cut: %v", got.err)
				require.Contains(t, got.body, tt.has)
				if tt.hasnt != "" {
					require.NotContains(t, got.body, tt.hasnt)
				}
				require.Equal(t, max(tt.status, 200), got.status)
				if tt.kind != "" {
					require.Equal(t, tt.kind, got.kind)
				}
			})
		}
	}
}

func TestOpenAIStreamToTheByte(t *testing.T) {
	u := Start(t, OpenAI, Behaviour{
		Pings: 1, Reasoning: []string{"hm"}, Chunks: []string{"你好"}, Extra: `{"x":1}`,
		Tools: []Tool{{"call_1", "f", `{"a":1}`}}, Usage: &Usage{Prompt: 3, Completion: 4, Cached: 1, Reasoning: 2},
	})
	chunk := func(choice string) string {
		return `data: {"choices":[` + choice + `],"created":1700000000,"id":"chatcmpl-scripted","model":"m","object":"chat.completion.chunk"`
	}
	want := ": keep-alive\n\n" +
		chunk(`{"delta":{"content":"","role":"assistant","x":1},"finish_reason":null,"index":0}`) + "}\n\n" +
		chunk(`{"delta":{"reasoning_content":"hm","x":1},"finish_reason":null,"index":0}`) + "}\n\n" +
		chunk(`{"delta":{"content":"你好","x":1},"finish_reason":null,"index":0}`) + "}\n\n" +
		chunk(`{"delta":{"tool_calls":[{"function":{"arguments":"{\"a","name":"f"},"id":"call_1","index":0,"type":"function"}],"x":1},"finish_reason":null,"index":0}`) + "}\n\n" +
		chunk(`{"delta":{"tool_calls":[{"function":{"arguments":"\":1}"},"index":0}],"x":1},"finish_reason":null,"index":0}`) + "}\n\n" +
		chunk(`{"delta":{},"finish_reason":"tool_calls","index":0}`) + "}\n\n" +
		chunk(``) + `,"usage":{"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":2},"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1},"total_tokens":7}}` + "\n\n" +
		"data: [DONE]\n\n"
	require.Equal(t, reply{200, "text/event-stream", want, nil}, ask(t, transport(t), u.URL, OpenAI, `{"model":"m","stream":true}`))
}

func TestNativeDialectsCarryTheSame(t *testing.T) {
	b := Behaviour{Reasoning: []string{"h", "m"}, Chunks: []string{"a", "b"}, Tools: []Tool{{"call_1", "f", `{"a":1}`}}}
	tests := []struct {
		name    string
		dialect Dialect
		body    string
		has     []string
	}{
		{"dashscope increments", DashScope, streaming, []string{
			"id:2\nevent:result\n:HTTP_STATUS/200\ndata:{", `"reasoning_content":"h"`, `"reasoning_content":"m"`, `"content":"b"`,
			`"arguments":"{\"a"`, `"arguments":"\":1}"`, `"id":""`, `"finish_reason":"tool_calls"`,
		}},
		{"dashscope whole text again", DashScope, `{}`, []string{
			`"reasoning_content":"hm"`, `"content":"ab"`, `"arguments":"{\"a"`, `"arguments":"{\"a\":1}"`,
		}},
		{"ollama", Ollama, `{"model":"m"}`, []string{
			`"thinking":"h"`, `"content":"b"`, `"arguments":{"a":1}`, `"done_reason":"stop"`, `"prompt_eval_count":7`, `"eval_count":5`,
		}},
		{"anthropic", Anthropic, streaming, []string{
			"event: message_start\ndata: {", `"thinking":"h"`, `"type":"signature_delta"`, `"text":"b"`, `"id":"call_1"`, `"partial_json":"{\"a"`,
			`"stop_reason":"tool_use"`, `"input_tokens":7`, `"output_tokens":5`,
		}},
		{"gemini", Gemini, streaming, []string{
			`"parts":[{"text":"h","thought":true}]`, `"parts":[{"text":"b"}]`, `"args":{"a":1}`, `"finishReason":"STOP"`, `"candidatesTokenCount":5`,
		}},
		{"anthropic in one body", Anthropic, `{"model":"m"}`, []string{
			`{"signature":"c2lnbmVk","thinking":"hm","type":"thinking"}`, `{"text":"ab","type":"text"}`, `"input":{"a":1}`, `"stop_reason":"tool_use"`,
		}},
		{"openai in one body", OpenAI, `{"model":"m"}`, []string{
			`"content":"ab"`, `"reasoning_content":"hm"`, `"arguments":"{\"a\":1}"`, `"finish_reason":"tool_calls"`, `"total_tokens":12`,
		}},
		{"ollama in one body", Ollama, `{"model":"m","stream":false}`, []string{
			`"content":"ab"`, `"thinking":"hm"`, `"arguments":{"a":1}`, `"done":true`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, transport(t), Start(t, tt.dialect, b).URL+geminiStream, tt.dialect, tt.body)
			require.NoError(t, got.err)
			for _, part := range tt.has {
				require.Contains(t, got.body, part)
			}
		})
	}
}

func TestUpstreamTellsWhatItSaw(t *testing.T) {
	u := Start(t, OpenAI, Fails(500), Says("x"))
	tr := transport(t)
	for _, want := range []int{500, 200, 200} {
		require.Equal(t, want, ask(t, tr, u.URL+"/v1/chat/completions", OpenAI, streaming).status)
	}
	seen := u.Await(t, "the end of three calls", func(s Seen) bool { return s.Calls == 3 && s.Open == 0 })
	require.Equal(t, "/v1/chat/completions", seen.Path)
	require.Equal(t, streaming, string(seen.Body))
	require.Len(t, seen.Times, 3)
	require.Zero(t, seen.Cancelled)

	u.Play(Fails(429))
	require.Equal(t, 429, ask(t, tr, u.URL, OpenAI, streaming).status)
	require.Equal(t, 4, u.Calls())
}

func TestPiecesGiveTheSameBytes(t *testing.T) {
	want := ask(t, transport(t), Start(t, OpenAI, Says("你好")).URL, OpenAI, streaming)
	require.Contains(t, want.body, "你好")
	for _, n := range []int{1, 2, 5, 4096} {
		got := ask(t, transport(t), Start(t, OpenAI, Behaviour{Chunks: []string{"你好"}, Piece: n}).URL, OpenAI, streaming)
		require.Equal(t, want, got)
	}
}

func TestCallerWhoLeavesIsCounted(t *testing.T) {
	for name, b := range map[string]Behaviour{
		"no headers":        Ends(EndHangHeaders),
		"silent from start": Ends(EndHang),
		"silent later":      Ends(EndHang, "a"),
		"between chunks":    {Chunks: []string{"a", "b"}, Gap: time.Hour},
		"before headers":    {Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := New(OpenAI, b)
				ctx, leave := context.WithTimeout(t.Context(), time.Minute)
				defer leave()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://memory", strings.NewReader(streaming))
				require.NoError(t, err)
				res, err := u.Memory(t).RoundTrip(req)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					require.NoError(t, res.Body.Close())
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				u.Await(t, "the caller leave", func(s Seen) bool { return s.Open == 0 && s.Cancelled == 1 })
			})
		})
	}
}

func TestTimesInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := New(OpenAI, Behaviour{
			Delay: time.Second, Pings: 2, FirstToken: 10 * time.Second, Gap: 20 * time.Second,
			Chunks: []string{"a", "b", "c"},
		})
		start := time.Now()
		got := ask(t, u.Memory(t), "http://memory", OpenAI, streaming)
		require.NoError(t, got.err)
		require.Equal(t, 91*time.Second, time.Since(start), "one delay, two pings, first token, two gaps")
	})
}

func TestNothingHangsForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := New(OpenAI, Ends(EndHang, "a"))
		start := time.Now()
		got := ask(t, u.Memory(t), "http://memory", OpenAI, streaming)
		require.ErrorIs(t, got.err, io.ErrUnexpectedEOF)
		require.Equal(t, callLimit, time.Since(start))
	})
}
