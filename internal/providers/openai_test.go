package providers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

// answer is what came of one stream.
type answer struct {
	text, reasoning, refusal, finish, usage string
	first                                   Signal // the first that isn't none
	chunks                                  []string
	err                                     error
}

// collect reads a stream to its end and closes it. Chunks are checked as strict clients would.
func collect(t testing.TB, s Stream) answer {
	t.Helper()
	defer s.Close()
	var a answer
	for {
		c, err := s.Next()
		if err != nil {
			a.err = err
			_, again := s.Next()
			require.Equal(t, err, again, "the end stays the end")
			requireStrictChunks(t, a.chunks)
			return a
		}
		require.True(t, c.Data != nil || c.Usage != nil, "a chunk with nothing")
		if a.first == SignalNone {
			a.first = c.Signal
		}
		if c.Usage != nil {
			a.usage = string(c.Usage)
		}
		if c.Data == nil {
			continue
		}
		a.chunks = append(a.chunks, string(c.Data))
		text, reasoning := Text(c.Data)
		a.text, a.reasoning = a.text+text, a.reasoning+reasoning
		a.refusal += gjson.GetBytes(c.Data, "choices.0.delta.refusal").Str
		a.finish += c.Finish
		require.Equal(t, c.Finish, gjson.GetBytes(c.Data, "choices.0.finish_reason").Str)
	}
}

// requireStrictChunks asserts what a strict client's types ask beyond requireStrict.
func requireStrictChunks(t testing.TB, chunks []string) {
	t.Helper()
	requireStrict(t, chunks)
	for _, c := range chunks {
		require.Equal(t, gjson.String, gjson.Get(c, "id").Type)
		require.Equal(t, gjson.Number, gjson.Get(c, "created").Type)
		require.Equal(t, gjson.String, gjson.Get(c, "model").Type)
		require.Equal(t, "0", gjson.Get(c, "choices.0.index").Raw)
		require.True(t, gjson.Get(c, "choices.0.delta").IsObject())
		require.True(t, gjson.Get(c, "choices.0.finish_reason").Exists())
		require.Equal(t, gjson.Null, gjson.Get(c, "usage").Type)
	}
}

// openAIReader is the stream of a response's body.
func openAIReader(t testing.TB, body io.Reader) Stream {
	t.Helper()
	rc := &respBody{ctx: t.Context(), cancel: func(error) {}, rc: io.NopCloser(body)}
	return newOpenAIStream(rc, "asked", &client{})
}

func readAnswer(t testing.TB, body io.Reader) answer { return collect(t, openAIReader(t, body)) }

// endOf reads a stream to its end, and cares for nothing else.
func endOf(s Stream) error {
	defer s.Close()
	for {
		if _, err := s.Next(); err != nil {
			return err
		}
	}
}

const doneLine = "data: [DONE]\n\n"

func data(chunk string) string { return "data: " + chunk + "\n\n" }

func TestOpenAIStreamEnds(t *testing.T) {
	role := data(chunkOf(`{"role":"assistant","content":""}`, "null"))
	text := data(chunkOf(`{"content":"a"}`, "null"))
	thought := data(chunkOf(`{"reasoning_content":"hm"}`, "null"))
	call := data(chunkOf(`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "null"))
	finish := func(reason string) string { return data(chunkOf(`{}`, `"`+reason+`"`)) }
	failure := data(`{"error":{"message":"x","type":"server_error"}}`)
	for _, tt := range []struct {
		name, body string
		want       Kind // KindNone: io.EOF
		finish     string
		code       string
	}{
		{"properly", role + text + finish("stop") + doneLine, KindNone, "stop", ""},
		{"without [DONE]", role + text + finish("stop"), KindNone, "stop", ""},
		{"without a finish reason", role + text + doneLine, KindNone, "stop", ""},
		{"without a finish reason, after a call", role + call + doneLine, KindNone, "tool_calls", ""},
		{"without either", role + text, KindTruncated, "", ""},
		{"two finish reasons", role + text + finish("stop") + finish("stop") + doneLine, KindNone, "stop", ""},
		{"an error after the finish reason", role + text + finish("stop") + failure, KindNone, "stop", ""},
		{"nonsense after the finish reason", role + text + finish("stop") + data("nonsense"), KindNone, "stop", ""},
		{"half an event after the finish reason", role + text + finish("stop") + "data: {", KindNone, "stop", ""},
		{"finish reason without its blank line", role + text + "data: " + chunkOf(`{}`, `"stop"`), KindNone, "stop", ""},
		{"half a chunk", role + text + "data: " + chunkOf(`{}`, `"stop"`)[:60], KindTruncated, "", ""},

		{"empty", role + finish("stop") + doneLine, KindEmpty, "stop", ""},
		{"empty without a finish reason", role + doneLine, KindEmpty, "", ""},
		{"only reasoning is an answer", role + thought + finish("stop") + doneLine, KindNone, "stop", ""},
		{"no text for lack of room is an answer", role + finish("length") + doneLine, KindNone, "length", ""},
		{"no text by a filter is an answer", role + finish("content_filter") + doneLine, KindNone, "content_filter", ""},
		{"a refusal is an answer", role + data(chunkOf(`{"refusal":"no"}`, "null")) + finish("stop") + doneLine, KindNone, "stop", ""},
		{"a role and the end", role, KindTruncated, "", ""},

		{"[DONE] only", doneLine, KindMalformed, "", "only_done"},
		{"[DONE] after comments", ": ping\n\n" + doneLine, KindMalformed, "", "only_done"},
		{"[DONE] after usage", data(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0,"total_tokens":1}}`) + doneLine, KindMalformed, "", "only_done"},
		{"nothing", "", KindTruncated, "", ""},
		{"white space", "\n\n \n", KindTruncated, "", ""},
		{"comments", ": ping\n\n: ping\n\n", KindTruncated, "", ""},
		{"a page", "<!DOCTYPE html><html></html>", KindMalformed, "", "html"},
		{"plain text", "Internal Server Error", KindMalformed, "", "undecodable"},
		{"no JSON in an event", role + data("hello") + doneLine, KindMalformed, "", "undecodable"},
		{"an array in an event", role + data("[1]") + doneLine, KindMalformed, "", "undecodable"},
		{"broken JSON in an event", role + text + data(`{"choices":[`) + finish("stop") + doneLine, KindMalformed, "", "undecodable"},
		{"null and nothing in events", data("null") + role + "data:\n\n" + text + finish("stop") + doneLine, KindNone, "stop", ""},

		{"an error event at once", failure, KindServerError, "", "server_error"},
		{"an error event after text", role + text + failure, KindServerError, "", "server_error"},
		{"an error by its name", role + "event: error\ndata: {\"message\":\"x\",\"code\":\"rate_limit_exceeded\"}\n\n", KindRateLimited, "", "rate_limit_exceeded"},
		{"an error by its name alone", role + "event: error\n\n", KindServerError, "", ""},
		{"a raw error line", role + text + "error: {\"detail\":\"x\",\"error\":{\"message\":\"the engine is overloaded\"}}\n\n" + doneLine, KindOverloaded, "", ""},
		{"a status in a comment", "id:1\nevent:error\n:HTTP_STATUS/429\ndata:{\"code\":\"X\",\"message\":\"x\"}\n\n", KindRateLimited, "", "X"},
		{"vLLM's end after its error", role + data(`{"error":{"message":"x","code":500}}`) + doneLine, KindServerError, "", "500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readAnswer(t, strings.NewReader(tt.body))
			if tt.want == KindNone {
				require.Equal(t, io.EOF, got.err)
			} else {
				e := AsError(got.err)
				require.Equal(t, tt.want.String(), e.Kind.String(), "%v", got.err)
				require.Equal(t, tt.code, e.Code)
			}
			require.Equal(t, tt.finish, got.finish)
		})
	}
}

func TestOpenAIStreamOfOneBody(t *testing.T) {
	body := func(message, more string) string {
		return `{"id":"i","object":"chat.completion","created":1,"model":"x","choices":[{"index":0,"message":` + message + more + `}]}`
	}
	for _, tt := range []struct {
		name, body string
		want       Kind
		text       string
		finish     string
		status     int
	}{
		{"an answer", body(`{"role":"assistant","content":"a"}`, `,"finish_reason":"stop"`), KindNone, "a", "stop", 0},
		{"after empty lines", "\n\n\r\n" + body(`{"content":"a"}`, `,"finish_reason":"stop"`), KindNone, "a", "stop", 0},
		{"with line ends", strings.ReplaceAll(body(`{"content":"a"}`, `,"finish_reason":"length"`), ",", ",\r\n  "), KindNone, "a", "length", 0},
		{"without a finish reason", body(`{"content":"a"}`, ""), KindNone, "a", "stop", 0},
		{"a call without a finish reason", body(`{"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, ""), KindNone, "", "tool_calls", 0},
		{"empty", body(`{"content":""}`, `,"finish_reason":"stop"`), KindEmpty, "", "stop", 0},
		{"empty without a finish reason", body(`{"content":null}`, ""), KindEmpty, "", "", 0},
		{"cut", body(`{"content":"a"}`, `,"finish_reason":"stop"`)[:100], KindTruncated, "", "", 0},
		{"an error", `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`, KindQuota, "", "", 0},
		{"an error with a status", `{"error":{"message":"x","code":503}}`, KindOverloaded, "", "", 503},
		{"DashScope's moderation", `{"code":"data_inspection_failed","message":"x"}`, KindContentPolicy, "", "", 0},
		{"an error in an array", `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x"}}]`, KindRateLimited, "", "", 429},
		{"other JSON", `{"hello":"world"}`, KindMalformed, "", "", 0},
		{"no choices", `{"id":"i","object":"chat.completion","choices":[]}`, KindMalformed, "", "", 0},
		{"broken", `{"choices":[}`, KindMalformed, "", "", 0},
		{"an empty array", `[]`, KindMalformed, "", "", 0},
		{"two documents", `{"a":1}` + "\n" + `{"b":2}`, KindMalformed, "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readAnswer(t, strings.NewReader(tt.body))
			if tt.want == KindNone {
				require.Equal(t, io.EOF, got.err)
			} else {
				require.Equal(t, tt.want.String(), AsError(got.err).Kind.String(), "%v", got.err)
				require.Equal(t, tt.status, AsError(got.err).Status)
			}
			require.Equal(t, tt.text, got.text)
			require.Equal(t, tt.finish, got.finish)
		})
	}
	t.Run("too large", func(t *testing.T) {
		got := readAnswer(t, io.MultiReader(strings.NewReader(`{"a":"`), io.LimitReader(&endless{text: bytes.Repeat([]byte("x"), 32<<10)}, maxEvent+64<<10)))
		require.Equal(t, "too_large", AsError(got.err).Code)
	})
}

// openAITest is a provider in front of a scripted upstream.
func openAITest(t testing.TB, s Settings, plan ...providertest.Behaviour) (Provider, *providertest.Upstream) {
	t.Helper()
	u := providertest.Start(t, providertest.OpenAI, plan...)
	tr := newTransport()
	t.Cleanup(tr.CloseIdleConnections)
	s.Dialect, s.BaseURL, s.Transport = "openai", u.URL+"/v1/", tr
	p, err := New(s)
	require.NoError(t, err)
	return p, u
}

func hello() Call {
	return Call{Request: &Request{Raw: []byte(`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`)}, Model: "m-1", Connect: time.Second}
}

func ask(t testing.TB, p Provider, call Call) answer {
	t.Helper()
	s, err := p.Stream(t.Context(), call)
	if err != nil {
		return answer{err: err}
	}
	return collect(t, s)
}

func TestOpenAIAsksAndReads(t *testing.T) {
	p, u := openAITest(t, Settings{APIKey: "key", Headers: map[string]string{"X-Team": "a"}}, providertest.Says("one ", "two"))
	got := ask(t, p, hello())
	require.Equal(t, io.EOF, got.err)
	require.Equal(t, "one two", got.text)
	require.Equal(t, "stop", got.finish)
	require.NotEmpty(t, got.usage)
	require.Equal(t, SignalContent, got.first)
	seen := u.Seen()
	require.Equal(t, "/v1/chat/completions", seen.Path)
	require.Equal(t, "Bearer key", seen.Header.Get("Authorization"))
	require.Equal(t, "a", seen.Header.Get("X-Team"))
	require.JSONEq(t, `{"model":"m-1","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`, string(seen.Body))

	call := hello()
	call.Options.NoStream = true
	got = ask(t, p, call)
	require.Equal(t, io.EOF, got.err)
	require.Equal(t, "one two", got.text)
	require.False(t, gjson.GetBytes(u.Seen().Body, "stream").Bool())
}

func TestOpenAIAgainstBadUpstreams(t *testing.T) {
	for _, tt := range []struct {
		name   string
		plan   providertest.Behaviour
		want   Kind
		status int
	}{
		{"500", providertest.Fails(500), KindServerError, 500},
		{"429", providertest.Fails(429), KindRateLimited, 429},
		{"401", providertest.Fails(401), KindAuth, 401},
		{"cut before anything", providertest.Ends(providertest.EndCut), KindTruncated, 0},
		{"cut after text", providertest.Ends(providertest.EndCut, "a"), KindTruncated, 0},
		{"end after text", providertest.Ends(providertest.EndEOF, "a"), KindTruncated, 0},
		{"end before anything", providertest.Ends(providertest.EndEOF), KindTruncated, 0},
		{"error event", providertest.Ends(providertest.EndErrorEvent, "a"), KindServerError, 0},
		{"error body", providertest.Ends(providertest.EndErrorBody), KindServerError, 0},
		{"page", providertest.Ends(providertest.EndHTML), KindMalformed, 0},
		{"[DONE] only", providertest.Ends(providertest.EndOnlyDone), KindMalformed, 0},
		{"empty", providertest.Ends(providertest.EndEmpty), KindEmpty, 0},
		{"dropped", providertest.Ends(providertest.EndDrop), KindConnect, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := openAITest(t, Settings{APIKey: "key"}, tt.plan)
			e := AsError(ask(t, p, hello()).err)
			require.Equal(t, tt.want.String(), e.Kind.String(), "%v", e)
			if tt.status != 0 {
				require.Equal(t, tt.status, e.Status)
			}
		})
	}
}

func TestOpenAIInPieces(t *testing.T) {
	whole := providertest.Behaviour{Reasoning: []string{"hm"}, Chunks: []string{"é", "漢字"}, Pings: 3}
	for _, piece := range []int{0, 1, 7} {
		whole.Piece = piece
		p, _ := openAITest(t, Settings{}, whole)
		got := ask(t, p, hello())
		require.Equal(t, io.EOF, got.err)
		require.Equal(t, []string{"é漢字", "hm"}, []string{got.text, got.reasoning})
		require.Equal(t, SignalReasoning, got.first)
	}
}

func TestOpenAICancelled(t *testing.T) {
	for name, plan := range map[string]providertest.Behaviour{
		"waiting for headers": providertest.Ends(providertest.EndHangHeaders),
		"within the answer":   providertest.Ends(providertest.EndHang, "a"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := providertest.New(providertest.OpenAI, plan)
				p, err := New(Settings{Dialect: "openai", BaseURL: "http://upstream/v1", Transport: u.Memory(t)})
				require.NoError(t, err)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errBudget) })
				var got answer
				if s, err := p.Stream(ctx, hello()); err != nil {
					got.err = err
				} else {
					got = collect(t, s)
				}
				require.Equal(t, KindCanceled, AsError(got.err).Kind)
				require.ErrorIs(t, got.err, errBudget)
				u.Await(t, "the caller leave", func(s providertest.Seen) bool { return s.Open == 0 })
			})
		})
	}
}

// A provider that has given its finish reason and then keeps the connection open holds nobody up for long.
func TestOpenAIHangsAfterItsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := memory(func(c net.Conn) {
			_ = readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+data(chunkOf(`{"content":"a"}`, `"stop"`)))
			_, _ = io.Copy(io.Discard, c)
		})
		p, err := New(Settings{Dialect: "openai", BaseURL: "http://x", Transport: tr})
		require.NoError(t, err)
		start := time.Now()
		got := ask(t, p, hello())
		require.Equal(t, io.EOF, got.err)
		require.Equal(t, "stop", got.finish)
		require.Equal(t, afterFinish, time.Since(start))
	})
}

// After a stream that ended well its connection serves the next call.
func TestOpenAIUsesItsConnectionAgain(t *testing.T) {
	url, conns := rawServer(t, func(_ int, c net.Conn) {
		for readRequest(c) == nil {
			body := data(chunkOf(`{"role":"assistant","content":"a"}`, `"stop"`)) + doneLine
			if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body); err != nil {
				return
			}
		}
	})
	tr := newTransport()
	defer tr.CloseIdleConnections()
	p, err := New(Settings{Dialect: "openai", BaseURL: url, Transport: tr})
	require.NoError(t, err)
	for range 3 {
		require.Equal(t, io.EOF, ask(t, p, hello()).err)
	}
	require.Equal(t, int32(1), conns.Load())
}

func TestOpenAIClosedEarly(t *testing.T) {
	p, u := openAITest(t, Settings{}, providertest.Ends(providertest.EndHang, "a"))
	s, err := p.Stream(t.Context(), hello())
	require.NoError(t, err)
	_, err = s.Next()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err = s.Next()
	require.Equal(t, KindCanceled, AsError(err).Kind)
	u.Await(t, "the caller leave", func(s providertest.Seen) bool { return s.Open == 0 })
}

func TestOpenAIURL(t *testing.T) {
	for _, tt := range []struct{ dialect, base, override, want string }{
		{"openai", "https://api.openai.com/v1", "", "https://api.openai.com/v1/chat/completions"},
		{"openai", "https://api.deepseek.com/", "", "https://api.deepseek.com/chat/completions"},
		{"openai", "https://a/v1", "http://b/v2", "http://b/v2/chat/completions"},
		{"azure", "https://r.openai.azure.com", "", "https://r.openai.azure.com/openai/deployments/m%2F1/chat/completions?api-version=2024-10-21"},
		{"azure", "https://r.openai.azure.com/openai/v1/", "", "https://r.openai.azure.com/openai/v1/chat/completions"},
	} {
		p, err := New(Settings{Dialect: tt.dialect, BaseURL: tt.base})
		require.NoError(t, err)
		require.Equal(t, tt.want, p.(*openAI).url(Call{Model: "m/1", BaseURL: tt.override}))
	}
}

func TestOpenAIChecksImages(t *testing.T) {
	image := func(url string) *Request {
		return &Request{Messages: []Message{{Role: "user", Parts: []Part{{Type: "image_url", ImageURL: url}}}}}
	}
	for _, tt := range []struct {
		base, image string
		allow, ok   bool
	}{
		{"https://api.openai.com/v1", "https://x/y.png", false, true},
		{"http://10.0.0.5:8000/v1", "https://x/y.png", false, false},
		{"http://10.0.0.5:8000/v1", "data:image/png;base64,AA", false, true},
		{"http://10.0.0.5:8000/v1", "https://x/y.png", true, true},
		{"http://localhost/v1", "HTTP://x/y.png", false, false},
		{"http://vllm:8000/v1", "https://x/y.png", false, false},
		{"http://[fd00::1]/v1", "https://x/y.png", false, false},
		{"http://gpu.corp.internal/v1", "https://x/y.png", false, false},
		{"http://127.0.0.1/v1", "", false, true},
	} {
		p, err := New(Settings{Dialect: "openai", BaseURL: tt.base})
		require.NoError(t, err)
		err = p.(Checker).Check(Call{Request: image(tt.image), Options: Options{ImageURLs: tt.allow}})
		if tt.ok {
			require.NoError(t, err, tt.base)
		} else {
			require.Equal(t, KindUnsupported, AsError(err).Kind, tt.base)
		}
	}
}

// endlessBody is a response of right chunks without an end.
func endlessBody() io.ReadCloser {
	first := data(chunkOf(`{"role":"assistant","content":""}`, "null"))
	return io.NopCloser(io.MultiReader(strings.NewReader(first), &endless{text: []byte(data(chunkOf(`{"content":"some words"}`, "null")))}))
}

func TestOpenAIChunkAllocatesNothing(t *testing.T) {
	s := newOpenAIStream(endlessBody(), "m", &client{})
	for range 3 {
		_, err := s.Next()
		require.NoError(t, err)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		s.Buffered()
		if c, err := s.Next(); err != nil || c.Signal != SignalContent {
			panic("no chunk")
		}
	}))
}
