package providers

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

func TestOllamaRequest(t *testing.T) {
	tests := []struct {
		name, raw, want string
		options         Options
	}{
		{
			name: "every role, an image, tools, a result",
			raw: `{"model":"auto","stream":true,"tools":[{"type":"function","function":{"name":"f"}}],"keep_alive":"5m","messages":[
				{"role":"developer","content":"be brief"},
				{"role":"user","name":"ann","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
				{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1.10,\"n\":null}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}}]},
				{"role":"tool","tool_call_id":"c1","content":"42"},
				{"role":"tool","name":"g","content":"43"},
				{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]}`,
			want: `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"f"}}],"keep_alive":"5m","messages":[
				{"role":"system","content":"be brief"},
				{"role":"user","name":"ann","content":"what?","images":["AAAA"]},
				{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"id":"c1","function":{"name":"f","arguments":{"x":1.10,"n":null}}},{"id":"c2","function":{"name":"g","arguments":{}}}]},
				{"role":"tool","content":"42","tool_name":"f","tool_call_id":"c1"},
				{"role":"tool","content":"43","tool_name":"g"},
				{"role":"assistant","content":"no"}]}`,
		},
		{
			name: "options",
			raw: `{"messages":[{"role":"user","content":"hi"}],"temperature":0,"top_p":0.9,"seed":123456789012345678,"stop":"x","max_tokens":5,
				"max_completion_tokens":9,"presence_penalty":1,"frequency_penalty":-1,"top_k":40,"repetition_penalty":1.1,"options":{"num_ctx":8192,"top_k":7}}`,
			want: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"options":{"temperature":0,"top_p":0.9,"seed":123456789012345678,
				"stop":["x"],"num_predict":9,"presence_penalty":1,"frequency_penalty":-1,"top_k":7,"repeat_penalty":1.1,"num_ctx":8192}}`,
		},
		{
			name: "JSON", options: Options{NoStream: true},
			raw:  `{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_object"}}`,
			want: `{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}],"format":"json"}`,
		},
		{
			name: "JSON by schema",
			raw:  `{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}}`,
			want: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"format":{"type":"object"}}`,
		},
		{
			name: "no tools wanted",
			raw:  `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"}`,
			want: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		},
		{
			name: "keys in capitals, which Go's servers read too",
			raw:  `{"messages":[{"role":"user","content":"hi"}],"Model":"other","STREAM":false,"meſſages":[]}`,
			want: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, u := nativeTest(t, providertest.Ollama)
			call := nativeCall(t, tt.raw)
			call.Options = tt.options
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, "Hello there.", h.text)
			seen := u.Seen()
			require.JSONEq(t, tt.want, string(seen.Body))
			require.Equal(t, gjson.Get(tt.want, "options.seed").Raw, gjson.GetBytes(seen.Body, "options.seed").Raw)
			require.Equal(t, "/api/chat", seen.Path)
		})
	}
}

func TestOllamaThinks(t *testing.T) {
	for asked, want := range map[string]string{
		`"enable_thinking":true`:       `true`,
		`"enable_thinking":false`:      `false`,
		`"reasoning_effort":"none"`:    `false`,
		`"reasoning_effort":"minimal"`: `"low"`,
		`"reasoning_effort":"medium"`:  `"medium"`,
		`"reasoning_effort":"xhigh"`:   `"high"`,
		`"temperature":1`:              ``,
	} {
		p, u := nativeTest(t, providertest.Ollama)
		call := nativeCall(t, `{"messages":[{"role":"user","content":"hi"}],`+asked+`}`)
		h, _ := nativeAsk(t, p, call)
		require.ErrorIs(t, h.err, io.EOF)
		require.Equal(t, want, gjson.GetBytes(u.Seen().Body, "think").Raw, asked)
		call.Options.NoThinking = true
		h, _ = nativeAsk(t, p, call)
		require.ErrorIs(t, h.err, io.EOF)
		require.False(t, gjson.GetBytes(u.Seen().Body, "think").Exists())
	}
}

func TestOllamaAnswers(t *testing.T) {
	const last = `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"
	say := func(message string) string { return `{"model":"m","message":` + message + `,"done":false}` + "\n" }
	tests := []struct {
		name, body string
		want       heard
		tools      []string
		kind       Kind
		status     int
	}{
		{name: "all in the last line", body: `{"message":{"content":"a"},"done":true,"done_reason":"stop"}`, want: heard{text: "a", finish: "stop"}},
		{name: "length", body: say(`{"content":"a"}`) + `{"done":true,"done_reason":"length"}`, want: heard{text: "a", finish: "length"}},
		{name: "CRLF and blank lines", body: "\r\n" + `{"message":{"content":"a"},"done":false}` + "\r\n\r\n" + last, want: heard{text: "a", finish: "stop"}},
		{name: "an old server's end", body: say(`{"content":"a"}`) + `{"done":true,"eval_count":3}`, want: heard{text: "a", finish: "stop"}},
		{name: "the runner broke off", body: say(`{"content":"a"}`) + `{"done":true,"done_reason":""}`, want: heard{text: "a"}, kind: KindTruncated},
		{name: "an end that counts nothing", body: say(`{"content":"a"}`) + `{"done":true}`, want: heard{text: "a"}, kind: KindTruncated},
		{name: "loaded only", body: `{"message":{"content":""},"done":true,"done_reason":"load"}`, kind: KindLoading},
		{name: "unloaded", body: `{"message":{"content":""},"done":true,"done_reason":"unload"}`, kind: KindLoading},
		{
			name: "tool calls", tools: []string{`c f {"a": 1.10}`, `d g {}`}, want: heard{finish: "tool_calls"},
			body: say(`{"content":"","tool_calls":[{"id":"c","function":{"index":0,"name":"f","arguments":{"a": 1.10}}}]}`) +
				say(`{"content":"","tool_calls":[{"id":"d","function":{"index":0,"name":"g","arguments":{}}}]}`) + last,
		},
		{
			name: "arguments as a string", tools: []string{`c f {"a":1}`}, want: heard{finish: "tool_calls"},
			body: say(`{"content":"","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}}]}`) + last,
		},
		{name: "an error instead", body: `{"error":"model runner has unexpectedly stopped"}`, kind: KindServerError},
		{name: "an error later", body: say(`{"content":"a"}`) + `{"error":"unexpected EOF"}` + "\n", want: heard{text: "a"}, kind: KindServerError},
		{name: "an error after the end", body: say(`{"content":"a"}`) + last + `{"error":"x"}` + "\n", want: heard{text: "a", finish: "stop"}},
		{name: "a null error", body: `{"error":null,"message":{"content":"a"},"done":false}` + "\n" + last, want: heard{text: "a", finish: "stop"}},
		{name: "a line that isn't JSON", body: say(`{"content":"a"}`) + "oops\n" + last, want: heard{text: "a"}, kind: KindMalformed},
		{name: "a list", body: "[1]\n", kind: KindMalformed},
		{name: "nothing", body: "\n", kind: KindTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.Ollama, providertest.Behaviour{Body: tt.body})
			h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
			if tt.kind == KindNone {
				require.ErrorIs(t, h.err, io.EOF)
			} else {
				require.Equal(t, tt.kind, AsError(h.err).Kind, "%v", h.err)
				require.Equal(t, tt.status, AsError(h.err).Status)
			}
			require.Equal(t, tt.tools, toolCalls(chunks))
			requireStrict(t, chunks)
			h.err, h.usage, h.chunks = nil, "", 0
			require.Equal(t, tt.want, h)
		})
	}
}

func TestOllamaBases(t *testing.T) {
	u := providertest.Start(t, providertest.Ollama)
	tr := newTransport()
	t.Cleanup(tr.CloseIdleConnections)
	for base, want := range map[string]string{"": "/api/chat", "/": "/api/chat", "/api": "/api/chat", "/x/y/": "/x/y/api/chat"} {
		p := newOllama(Settings{BaseURL: "http://127.0.0.1:1", Transport: tr})
		call := nativeCall(t, nativeHi)
		call.BaseURL = u.URL + base
		h, _ := nativeAsk(t, p, call)
		require.ErrorIs(t, h.err, io.EOF)
		require.Equal(t, want, u.Seen().Path)
		require.Empty(t, u.Seen().Header.Get("Authorization"))
	}
}

func TestOllamaUsageWithoutPromptCount(t *testing.T) {
	p, _ := nativeTest(t, providertest.Ollama, providertest.Behaviour{Body: `{"message":{"content":"a"},"done":true,"done_reason":"stop","eval_count":3}`})
	h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
	require.JSONEq(t, `{"completion_tokens":3}`, h.usage)
}

func TestImageBytes(t *testing.T) {
	for url, want := range map[string]string{
		"data:image/png;base64,AAAA":         "AAAA",
		"DATA:image/png;x=y;BASE64,AAAA":     "AAAA",
		"data:image/png,AAAA":                "",
		"data:image/png;base64,":             "",
		"https://x.org/a.png?q=;base64,AAAA": "",
		"":                                   "",
	} {
		_, got, ok := imageBytes(url)
		require.Equal(t, want != "", ok, url)
		if ok {
			require.Equal(t, want, got)
		}
	}
}
