package providers

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
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

func nativeFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return b
}

// nativeRecording is a recorded stream and what it says.
type nativeRecording struct {
	name       string
	cumulative bool
	text       string
	tools      []string
	finish     string
	usage      [2]int64
}

func nativeRecordings() []nativeRecording {
	return []nativeRecording{
		{name: "dashscope/01-text.sse", text: "OK", finish: "stop", usage: [2]int64{16, 1}},
		{name: "dashscope/02-text.sse", text: "Hello! The answer to 2+2 is 4.", finish: "stop", usage: [2]int64{28, 13}},
		{
			name: "dashscope/03-tools.sse", finish: "tool_calls", usage: [2]int64{252, 20},
			tools: []string{`call_355b7a9ccc024c71a743ab get_current_weather_test {"city": "Beijing"}`},
		},
		{name: "dashscope/04-text-cumulative.sse", cumulative: true, text: "1, 2, 3, 4, 5.", finish: "stop", usage: [2]int64{19, 14}},
		{name: "dashscope/05-text.sse", text: "1, 2, 3, 4, 5.", finish: "stop", usage: [2]int64{19, 14}},
		{
			name: "ollama/01-text.ndjson", finish: "stop", usage: [2]int64{16, 51},
			text: "Okay, here's a joke about OpenTelemetry:\n\nWhy did the OpenTelemetry team break up? \n\nBecause they couldn't " +
				"stop arguing about the *trace path*! \n\n---\n\nWould you like to hear another one? 😊",
		},
		{
			name: "ollama/02-text.ndjson", finish: "stop", usage: [2]int64{17, 71},
			text: "A joke about OpenTelemetry! Here's one:\n\nWhy did the OpenTelemetry Span go to therapy?\n\nBecause it was feeling " +
				"\"distributed\" and wanted to get to the \"root cause\" of its problems!\n\n(Sorry, I know it's a bit of a \"stretch\"... " +
				"OpenTelemetry jokes are still in the early stages of development!)",
		},
		{
			name: "ollama/03-text.ndjson", finish: "stop", usage: [2]int64{17, 50},
			text: "Why did the OpenTelemetry agent go to therapy?\n\nBecause it was feeling traced out and needed some instrumentation in " +
				"its life!\n\n(Sorry, I know it's a bit of a stretch, but I hope it brought a smile to your face!)",
		},
	}
}

func (r nativeRecording) read(body io.Reader) Stream {
	c := &client{}
	if strings.HasPrefix(r.name, "ollama") {
		return newOllamaStream(io.NopCloser(body), "m", c)
	}
	return newDashScopeStream(io.NopCloser(body), Call{Model: "m", Options: Options{Cumulative: r.cumulative}}, c)
}

// whole is how many bytes hold no terminal marker.
func (r nativeRecording) whole(body []byte) int {
	marker := `"done":true`
	if strings.HasPrefix(r.name, "dashscope") {
		marker = `"finish_reason":"` + r.finish
	}
	at := bytes.LastIndex(body, []byte(marker))
	return at + bytes.LastIndexByte(body[at:], '}')
}

func TestNativeRecordingsAtTheWire(t *testing.T) {
	for _, r := range nativeRecordings() {
		for _, piece := range []int{0, 1, 7} {
			t.Run(r.name, func(t *testing.T) {
				dialect := providertest.DashScope
				if strings.HasPrefix(r.name, "ollama") {
					dialect = providertest.Ollama
				}
				p, _ := nativeTest(t, dialect, providertest.Behaviour{Body: string(nativeFile(t, r.name)), Piece: piece})
				call := nativeCall(t, nativeHi)
				call.Options.Cumulative = r.cumulative
				h, chunks := nativeAsk(t, p, call)
				require.ErrorIs(t, h.err, io.EOF)
				require.Equal(t, r.text, h.text)
				require.Equal(t, r.finish, h.finish)
				require.Equal(t, r.usage, [2]int64{gjson.Get(h.usage, "prompt_tokens").Int(), gjson.Get(h.usage, "completion_tokens").Int()})
				require.Equal(t, r.tools, toolCalls(chunks))
				requireStrict(t, chunks)
			})
		}
	}
}

func TestNativeRecordingsCutAnywhereAreTruncated(t *testing.T) {
	for _, r := range nativeRecordings() {
		body := nativeFile(t, r.name)
		stride := 1 + len(body)/60
		for n := rand.IntN(stride); n < r.whole(body); n += stride {
			for _, broken := range []bool{false, true} {
				var in io.Reader = bytes.NewReader(body[:n])
				if broken {
					in = io.MultiReader(in, failing{&Error{Kind: KindTruncated}})
				}
				h := listen(r.read(in))
				require.Equal(t, KindTruncated, AsError(h.err).Kind, "%s cut at %d: %v", r.name, n, h.err)
				require.Empty(t, h.finish)
				require.True(t, strings.HasPrefix(r.text, h.text))
			}
		}
	}
}

// failing is a reader that gives nothing but an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestNativeRecordingsCutAtTheWire(t *testing.T) {
	for _, r := range nativeRecordings() {
		t.Run(r.name, func(t *testing.T) {
			body := nativeFile(t, r.name)
			dialect := providertest.DashScope
			if strings.HasPrefix(r.name, "ollama") {
				dialect = providertest.Ollama
			}
			p, u := nativeTest(t, dialect)
			for range 12 {
				n := rand.IntN(r.whole(body)-1) + 1
				for _, end := range []providertest.End{providertest.EndCut, providertest.EndEOF} {
					u.Play(providertest.Behaviour{Body: string(body[:n]), End: end})
					call := nativeCall(t, nativeHi)
					call.Options.Cumulative = r.cumulative
					h, _ := nativeAsk(t, p, call)
					require.Equal(t, KindTruncated, AsError(h.err).Kind, "cut at %d: %v", n, h.err)
				}
			}
		})
	}
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
	for _, d := range []providertest.Dialect{providertest.DashScope, providertest.Ollama} {
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
	for _, d := range []providertest.Dialect{providertest.DashScope, providertest.Ollama} {
		p, u := nativeTest(t, d, providertest.Behaviour{Status: 500, Error: providertest.Failure{Message: "the prompt was: hi"}})
		h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
		require.NotContains(t, h.err.Error(), "prompt")
		require.NotContains(t, h.err.Error(), "sk-secret")
		require.Equal(t, "Bearer sk-secret", u.Seen().Header.Get("Authorization"))
	}
}

func TestNativeStreamEndsSoonAfterItsMarker(t *testing.T) {
	bodies := map[providertest.Dialect]string{
		providertest.DashScope: `data:{"output":{"text":"a","finish_reason":"stop"},"usage":{"input_tokens":1,"output_tokens":1}}` + "\n\n",
		providertest.Ollama:    `{"message":{"content":"a"},"done":true,"done_reason":"stop","eval_count":1}` + "\n",
	}
	for d, body := range bodies {
		synctest.Test(t, func(t *testing.T) {
			u := providertest.New(d, providertest.Behaviour{Body: body, End: providertest.EndHang})
			p, err := New(Settings{Dialect: string(d), BaseURL: "http://memory", Transport: u.Memory(t)})
			require.NoError(t, err)
			start := time.Now()
			h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, "a", h.text)
			require.Equal(t, int64(1), gjson.Get(h.usage, "completion_tokens").Int())
			require.Equal(t, drainLimit, time.Since(start))
		})
	}
}

func TestNativeConnectionIsUsedAgain(t *testing.T) {
	for _, d := range []providertest.Dialect{providertest.DashScope, providertest.Ollama} {
		u := providertest.New(d)
		var conns atomic.Int32
		srv := countingServer(t, u, &conns)
		tr := newTransport()
		t.Cleanup(tr.CloseIdleConnections)
		p, err := New(Settings{Dialect: string(d), BaseURL: srv, Transport: tr})
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

func TestNativeRefusesByName(t *testing.T) {
	with := func(more string) string { return `{"messages":[{"role":"user","content":"hi"}],` + more + `}` }
	message := func(m string) string { return `{"messages":[` + m + `]}` }
	both, dash, oll := "dashscope ollama", "dashscope", "ollama"
	tests := []struct{ name, who, raw, param string }{
		{"audio out", both, with(`"modalities":["text","audio"]`), "modalities"},
		{"audio", both, with(`"audio":{"voice":"v"}`), "audio"},
		{"legacy functions", both, with(`"functions":[{"name":"f"}]`), "functions"},
		{"web search", both, with(`"web_search_options":{}`), "web_search_options"},
		{"bias", both, with(`"logit_bias":{"1":5}`), "logit_bias"},
		{"custom tool", both, with(`"tools":[{"type":"custom","custom":{"name":"x"}}]`), "tools"},
		{"odd format", both, with(`"response_format":{"type":"grammar"}`), "response_format"},
		{"must call", both, with(`"tool_choice":"required"`), "tool_choice"},
		{"must call this", oll, with(`"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice"},
		{"frequency", dash, with(`"frequency_penalty":0.5`), "frequency_penalty"},
		{"logprobs", oll, with(`"logprobs":true`), "logprobs"},
		{"one tool at a time", oll, with(`"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false`), "parallel_tool_calls"},
		{"function role", both, message(`{"role":"function","name":"f","content":"x"}`), "messages[0].role"},
		{"function call of old", both, message(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`), "messages[0].function_call"},
		{"audio in", both, message(`{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}`), "messages[0].content[0].type"},
		{"image to fetch", oll, message(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://x.org/a.png"}}]}`), "messages[0].content[1].image_url"},
		{"arguments that are no object", oll, message(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"[1"}}]}`), "messages[0].tool_calls[0]"},
	}
	for _, tt := range tests {
		for _, d := range strings.Fields(tt.who) {
			t.Run(d+" "+tt.name, func(t *testing.T) {
				p, u := nativeTest(t, providertest.Dialect(d))
				call := nativeCall(t, tt.raw)
				err := p.(Checker).Check(call)
				require.Equal(t, KindUnsupported, AsError(err).Kind)
				require.Contains(t, AsError(err).Message, tt.param)
				_, streamErr := p.Stream(t.Context(), call)
				require.Equal(t, err, streamErr)
				require.Zero(t, u.Calls())
			})
		}
	}
	harmless := with(`"modalities":["text"],"functions":[],"function_call":"none","logit_bias":{},"frequency_penalty":0.0,"tool_choice":"auto",
		"logprobs":false,"parallel_tool_calls":true,"response_format":{"type":"text"},"audio":null,"user":"u","store":true,"stop":null`)
	for _, d := range strings.Fields(both) {
		p, u := nativeTest(t, providertest.Dialect(d))
		h, _ := nativeAsk(t, p, nativeCall(t, harmless))
		require.ErrorIs(t, h.err, io.EOF)
		for _, gone := range []string{"functions", "function_call", "logit_bias", "modalities", "user", "store", "stop"} {
			require.NotContains(t, string(u.Seen().Body), `"`+gone+`":`)
		}
	}
}

func TestNativeHoldsBackWhatChangesWhoIsCalled(t *testing.T) {
	raw := `{"messages":[{"role":"user","content":"hi"}],"models":["x"],"provider":{},"route":"r","service_tier":"flex","priority":1,"novel":{"k":1.10}}`
	for _, d := range []providertest.Dialect{providertest.DashScope, providertest.Ollama} {
		p, u := nativeTest(t, d)
		call := nativeCall(t, raw)
		call.Options.Allow = []string{"priority"}
		h, _ := nativeAsk(t, p, call)
		require.ErrorIs(t, h.err, io.EOF)
		body := string(u.Seen().Body)
		for _, name := range []string{"models", "provider", "route", "service_tier"} {
			require.NotContains(t, body, `"`+name+`"`)
		}
		require.Contains(t, body, `"priority":1`)
		require.Contains(t, body, `"novel":{"k":1.10}`)
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
