package providers

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

// nativeCall decodes a request's JSON as far as the native adapters need it.
func nativeCall(t testing.TB, raw string) Call {
	t.Helper()
	require.True(t, gjson.Valid(raw), raw)
	r := &Request{Raw: []byte(raw)}
	for _, v := range gjson.Get(raw, "messages").Array() {
		m := Message{Role: v.Get("role").Str, Name: v.Get("name").Str, ToolCallID: v.Get("tool_call_id").Str, Reasoning: v.Get("reasoning_content").Str}
		if c := v.Get("content"); c.IsArray() {
			var texts []string
			for _, p := range c.Array() {
				m.Parts = append(m.Parts, Part{Type: p.Get("type").Str, Text: p.Get("text").Str, ImageURL: p.Get("image_url.url").Str, Raw: []byte(p.Raw)})
				if p.Get("text").Str != "" {
					texts = append(texts, p.Get("text").Str)
				}
			}
			m.Text = strings.Join(texts, "\n")
		} else {
			m.Text = c.Str
		}
		for _, c := range v.Get("tool_calls").Array() {
			m.ToolCalls = append(m.ToolCalls, ToolCall{c.Get("id").Str, c.Get("function.name").Str, c.Get("function.arguments").Str})
		}
		r.Messages = append(r.Messages, m)
	}
	r.Thinking.Effort = gjson.Get(raw, "reasoning_effort").Str
	switch {
	case gjson.Get(raw, "enable_thinking").Raw == "false" || r.Thinking.Effort == "none":
		r.Thinking.Mode = ThinkingOff
	case gjson.Get(raw, "enable_thinking").Raw == "true" || r.Thinking.Effort != "":
		r.Thinking.Mode = ThinkingOn
	}
	return Call{Request: r, Model: "m"}
}

func nativeDialects() []providertest.Dialect {
	return []providertest.Dialect{providertest.DashScope, providertest.Ollama, providertest.Anthropic, providertest.Bedrock, providertest.Gemini}
}

const nativeHi = `{"messages":[{"role":"user","content":"hi"}]}`

// nativeTest is a provider of a dialect in front of a scripted upstream.
func nativeTest(t testing.TB, d providertest.Dialect, plan ...providertest.Behaviour) (Provider, *providertest.Upstream) {
	t.Helper()
	u := providertest.Start(t, d, plan...)
	tr := newTransport()
	t.Cleanup(tr.CloseIdleConnections)
	p, err := New(Settings{Name: "mine", Dialect: string(d), BaseURL: u.URL, APIKey: "sk-secret", Transport: tr})
	require.NoError(t, err)
	return p, u
}

// nativeAsk makes one whole call.
func nativeAsk(t testing.TB, p Provider, call Call) (heard, []string) {
	t.Helper()
	s, err := p.Stream(t.Context(), call)
	if err != nil {
		return heard{err: err}, nil
	}
	rec := &recorder{Stream: s}
	h := listen(rec)
	return h, rec.chunks
}

// recorder keeps the chunks of a stream.
type recorder struct {
	Stream
	chunks []string
}

func (r *recorder) Next() (Chunk, error) {
	c, err := r.Stream.Next()
	if c.Data != nil {
		r.chunks = append(r.chunks, string(c.Data))
	}
	return c, err
}

// requireStrict asserts what every chunk of one stream must be.
func requireStrict(t testing.TB, chunks []string) {
	t.Helper()
	finishes := 0
	for i, c := range chunks {
		require.True(t, gjson.Valid(c), c)
		for _, same := range []string{"id", "object", "created", "model"} {
			require.Equal(t, gjson.Get(chunks[0], same).Raw, gjson.Get(c, same).Raw, "%s of chunk %d", same, i)
		}
		require.Equal(t, "chat.completion.chunk", gjson.Get(c, "object").Str)
		require.Equal(t, i == 0, gjson.Get(c, "choices.0.delta.role").Exists(), "role in chunk %d", i)
		require.Equal(t, int64(1), gjson.Get(c, "choices.#").Int())
		if gjson.Get(c, "choices.0.finish_reason").Str != "" {
			finishes++
		}
	}
	require.LessOrEqual(t, finishes, 1)
}

// toolCalls merges the pieces of tool calls as clients do, as "id name arguments".
func toolCalls(chunks []string) []string {
	var out []string
	for _, c := range chunks {
		for _, call := range gjson.Get(c, "choices.0.delta.tool_calls").Array() {
			if i := int(call.Get("index").Int()); i == len(out) {
				out = append(out, call.Get("id").Str+" "+call.Get("function.name").Str+" ")
			}
			out[call.Get("index").Int()] += call.Get("function.arguments").Str
		}
	}
	return out
}

func TestNativeBehaviours(t *testing.T) {
	tools := []providertest.Tool{{ID: "call_1", Name: "f", Arguments: `{"a":1}`}, {ID: "call_2", Name: "g", Arguments: `{}`}}
	tests := []struct {
		name   string
		b      providertest.Behaviour
		kind   Kind
		status int
		want   heard
	}{
		{name: "answer", b: providertest.Says("你", "好"), want: heard{text: "你好", finish: "stop"}},
		{name: "reasoning", b: providertest.Behaviour{Reasoning: []string{"h", "m"}, Chunks: []string{"a", "b"}}, want: heard{text: "ab", reasoning: "hm", finish: "stop"}},
		{name: "reasoning only, cut by length", b: providertest.Behaviour{Reasoning: []string{"h"}, Finish: "length"}, want: heard{reasoning: "h", finish: "length"}},
		{name: "tools", b: providertest.Behaviour{Tools: tools}, want: heard{finish: "tool_calls"}},
		{name: "byte by byte", b: providertest.Behaviour{Chunks: []string{"你好", "!"}, Piece: 1}, want: heard{text: "你好!", finish: "stop"}},
		{name: "pings", b: providertest.Behaviour{Pings: 400, Chunks: []string{"a"}}, want: heard{text: "a", finish: "stop"}},
		{name: "empty", b: providertest.Ends(providertest.EndEmpty), kind: KindEmpty, want: heard{finish: "stop"}},
		{name: "eof", b: providertest.Ends(providertest.EndEOF, "a"), kind: KindTruncated, want: heard{text: "a"}},
		{name: "cut", b: providertest.Ends(providertest.EndCut, "a"), kind: KindTruncated, want: heard{text: "a"}},
		{name: "error event", b: providertest.Ends(providertest.EndErrorEvent, "a"), kind: KindServerError, want: heard{text: "a"}},
		{name: "error body in a 200", b: providertest.Ends(providertest.EndErrorBody), kind: KindServerError},
		{name: "page", b: providertest.Ends(providertest.EndHTML), kind: KindMalformed},
		{name: "not JSON", b: providertest.Behaviour{Body: "data: {oh\n\n"}, kind: KindMalformed},
		{name: "some object", b: providertest.Behaviour{Body: "data: {}\n\n"}, kind: KindMalformed},
		{name: "500", b: providertest.Fails(500), kind: KindServerError, status: 500},
		{name: "503", b: providertest.Fails(503), kind: KindOverloaded, status: 503},
		{name: "401", b: providertest.Fails(401), kind: KindAuth, status: 401},
		{name: "404", b: providertest.Fails(404), kind: KindModelMissing, status: 404},
		{name: "429", b: providertest.Fails(429), kind: KindRateLimited, status: 429},
		{name: "400", b: providertest.Fails(400), kind: KindBadRequest, status: 400},
		{name: "dropped", b: providertest.Ends(providertest.EndDrop), kind: KindConnect},
	}
	for _, d := range nativeDialects() {
		for _, tt := range tests {
			t.Run(string(d)+" "+tt.name, func(t *testing.T) {
				if d == providertest.Ollama {
					tt.b.Body = strings.TrimSuffix(strings.TrimPrefix(tt.b.Body, "data: "), "\n")
				}
				p, _ := nativeTest(t, d, tt.b)
				h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
				if tt.kind == KindNone {
					require.ErrorIs(t, h.err, io.EOF)
					require.Positive(t, gjson.Get(h.usage, "total_tokens").Int())
				} else {
					require.Equal(t, tt.kind, AsError(h.err).Kind, "%v", h.err)
				}
				if tt.status != 0 {
					require.Equal(t, tt.status, AsError(h.err).Status)
				}
				requireStrict(t, chunks)
				if tt.b.Tools != nil {
					got := toolCalls(chunks)
					require.Len(t, got, 2)
					require.Regexp(t, `^call_\S+ f \{"a":1\}$`, got[0])
					require.Regexp(t, `^call_\S+ g \{\}$`, got[1])
				}
				h.err, h.usage, h.chunks = nil, "", 0
				require.Equal(t, tt.want, h)
			})
		}
	}
}

func TestNativeErrorsNameNoSecret(t *testing.T) {
	for d, header := range map[providertest.Dialect][2]string{
		providertest.DashScope: {"Authorization", "Bearer sk-secret"}, providertest.Ollama: {"Authorization", "Bearer sk-secret"},
		providertest.Anthropic: {"X-Api-Key", "sk-secret"}, providertest.Gemini: {"X-Goog-Api-Key", "sk-secret"},
	} {
		p, u := nativeTest(t, d, providertest.Behaviour{Status: 500, Error: providertest.Failure{Message: "the prompt was: hi"}})
		h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
		require.NotContains(t, h.err.Error(), "prompt")
		require.NotContains(t, h.err.Error(), "sk-secret")
		require.Equal(t, header[1], u.Seen().Header.Get(header[0]))
		require.NotContains(t, u.Seen().Path, "secret")
	}
}

func TestNativeStreamEndsSoonAfterItsMarker(t *testing.T) {
	bodies := map[providertest.Dialect]string{
		providertest.DashScope: `data:{"output":{"text":"a","finish_reason":"stop"},"usage":{"input_tokens":1,"output_tokens":1}}` + "\n\n",
		providertest.Ollama:    `{"message":{"content":"a"},"done":true,"done_reason":"stop","eval_count":1}` + "\n",
		providertest.Anthropic: `data:{"type":"content_block_start","content_block":{"type":"text","text":"a"}}` + "\n\n" +
			`data:{"type":"message_delta","usage":{"output_tokens":1}}` + "\n\ndata:{\"type\":\"message_stop\"}\n\n",
		providertest.Gemini: `data:{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":1}}` + "\n\n",
	}
	for d, body := range bodies {
		limit := drainLimit
		if d == providertest.Gemini { // which may go on
			limit = afterFinish
		}
		synctest.Test(t, func(t *testing.T) {
			u := providertest.New(d, providertest.Behaviour{Body: body, End: providertest.EndHang})
			p, err := New(Settings{Dialect: string(d), BaseURL: "http://memory", Transport: u.Memory(t)})
			require.NoError(t, err)
			start := time.Now()
			h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, "a", h.text)
			require.Equal(t, int64(1), gjson.Get(h.usage, "completion_tokens").Int())
			require.Equal(t, limit, time.Since(start))
		})
	}
}

func TestNativeConnectionIsUsedAgain(t *testing.T) {
	for _, d := range nativeDialects() {
		u := providertest.New(d)
		var conns atomic.Int32
		srv := countingServer(t, u, &conns)
		tr := newTransport()
		t.Cleanup(tr.CloseIdleConnections)
		p, err := New(Settings{Dialect: string(d), BaseURL: srv, APIKey: "sk-secret", Transport: tr})
		require.NoError(t, err)
		for range 3 {
			h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
			require.ErrorIs(t, h.err, io.EOF)
		}
		require.Equal(t, int32(1), conns.Load())
	}
}

func TestToolIndex(t *testing.T) {
	tests := []struct {
		name   string
		pieces []toolKey
		want   []int
	}{
		{"by index", []toolKey{{0, "a"}, {0, ""}, {1, "b"}, {1, ""}, {0, ""}}, []int{0, 0, 1, 1, 0}},
		{"from one, with gaps", []toolKey{{1, "a"}, {1, ""}, {4, "b"}, {4, ""}}, []int{0, 0, 1, 1}},
		{"by id", []toolKey{{-1, "a"}, {-1, "b"}, {-1, "a"}}, []int{0, 1, 0}},
		{"by order", []toolKey{{-1, "a"}, {-1, ""}, {-1, "b"}, {-1, ""}}, []int{0, 0, 1, 1}},
		{"every index 0", []toolKey{{0, "a"}, {0, ""}, {0, "b"}, {0, ""}}, []int{0, 0, 1, 1}},
		{"nothing at all", []toolKey{{-1, ""}, {-1, ""}}, []int{0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var x toolIndex
			var got []int
			fresh := 0
			for _, p := range tt.pieces {
				i, isNew := x.of(p)
				if isNew {
					fresh++
				}
				got = append(got, i)
			}
			require.Equal(t, tt.want, got)
			require.Len(t, x, fresh)
		})
	}
}

// countingServer serves u and counts its connections.
func countingServer(t *testing.T, u *providertest.Upstream, conns *atomic.Int32) string {
	srv := httptest.NewUnstartedServer(u)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(func() {
		u.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}
