package providers

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"holdfast/internal/providers/providertest"
)

func TestDashScopeRequest(t *testing.T) {
	tests := []struct {
		name, raw, want string
		options         Options
		sse             bool
		path            string
	}{
		{
			name: "every role, tools, a result", sse: true, path: "text-generation",
			raw: `{"model":"auto","stream":true,"temperature":0.5,"top_p":1,"max_completion_tokens":9,"seed":123456789012345678,
				"stop":["a"],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto",
				"enable_search":true,"messages":[
				{"role":"developer","content":"be brief"},
				{"role":"user","name":"ann","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
				{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
				{"role":"tool","tool_call_id":"c1","content":"42"},
				{"role":"assistant","content":null,"refusal":"no"},
				{"role":"assistant","content":"so","partial":true}]}`,
			want: `{"model":"m","input":{"messages":[
				{"role":"system","content":"be brief"},
				{"role":"user","name":"ann","content":"a\nb"},
				{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
				{"role":"tool","tool_call_id":"c1","content":"42"},
				{"role":"assistant","content":"no"},
				{"role":"assistant","content":"so","partial":true}]},
				"parameters":{"temperature":0.5,"top_p":0.999999,"max_tokens":9,"seed":123456789012345678,"stop":["a"],
				"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto",
				"enable_search":true,"result_format":"message","incremental_output":true}}`,
		},
		{
			name: "images take the other path", sse: true, path: "multimodal-generation",
			raw: `{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"what?"},
				{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
			want: `{"model":"m","input":{"messages":[{"role":"system","content":[{"text":"s"}]},
				{"role":"user","content":[{"text":"what?"},{"image":"data:image/png;base64,AAAA"}]}]},
				"parameters":{"result_format":"message","incremental_output":true}}`,
		},
		{
			name: "whole text again", sse: true, path: "text-generation", options: Options{Cumulative: true}, raw: nativeHi,
			want: `{"model":"m","input":{"messages":[{"role":"user","content":"hi"}]},"parameters":{"result_format":"message","incremental_output":false}}`,
		},
		{
			name: "no stream", path: "text-generation", options: Options{NoStream: true}, raw: nativeHi,
			want: `{"model":"m","input":{"messages":[{"role":"user","content":"hi"}]},"parameters":{"result_format":"message"}}`,
		},
		{
			name: "thinking", sse: true, path: "text-generation",
			raw:  `{"reasoning_effort":"high","thinking_budget":5,"top_p":0,"messages":[{"role":"user","content":"hi"}]}`,
			want: `{"model":"m","input":{"messages":[{"role":"user","content":"hi"}]},"parameters":{"enable_thinking":true,"thinking_budget":5,"top_p":1e-6,"result_format":"message","incremental_output":true}}`,
		},
		{
			name: "no thinking", sse: true, path: "text-generation",
			raw:  `{"enable_thinking":false,"messages":[{"role":"user","content":"hi"}]}`,
			want: `{"model":"m","input":{"messages":[{"role":"user","content":"hi"}]},"parameters":{"enable_thinking":false,"result_format":"message","incremental_output":true}}`,
		},
		{
			name: "a model that can't think", sse: true, path: "text-generation", options: Options{NoThinking: true},
			raw:  `{"enable_thinking":false,"messages":[{"role":"user","content":"hi"}]}`,
			want: `{"model":"m","input":{"messages":[{"role":"user","content":"hi"}]},"parameters":{"result_format":"message","incremental_output":true}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, u := nativeTest(t, providertest.DashScope)
			call := nativeCall(t, tt.raw)
			call.Options = tt.options
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, "Hello there.", h.text)
			seen := u.Seen()
			require.JSONEq(t, tt.want, string(seen.Body))
			require.Equal(t, gjson.Get(tt.want, "parameters.seed").Raw, gjson.GetBytes(seen.Body, "parameters.seed").Raw)
			require.Equal(t, "/api/v1/services/aigc/"+tt.path+"/generation", seen.Path)
			require.Equal(t, tt.sse, seen.Header.Get("X-DashScope-SSE") == "enable")
		})
	}
}

func TestDashScopeURL(t *testing.T) {
	const end = "/api/v1/services/aigc/text-generation/generation"
	tests := map[string]string{
		"https://dashscope.aliyuncs.com":         "https://dashscope.aliyuncs.com" + end,
		"https://dashscope.aliyuncs.com/":        "https://dashscope.aliyuncs.com" + end,
		"https://dashscope.aliyuncs.com/api/v1":  "https://dashscope.aliyuncs.com" + end,
		"http://127.0.0.1:1/x/y":                 "http://127.0.0.1:1/x/y" + end,
		"https://h/api/v1/services/b/generation": "https://h/api/v1/services/b/generation",
	}
	for base, want := range tests {
		require.Equal(t, want, dashScopeURL(base, false))
	}
	require.Contains(t, dashScopeURL("https://h", true), "/multimodal-generation/")
}

func TestDashScopeModelsOfTheMultimodalPath(t *testing.T) {
	yes := []string{"qwen-vl-max", "qwen3-vl-plus", "qwen2.5-vl-72b-instruct", "qvq-max", "qwen3-omni-flash", "qwen-vl-ocr", "qwen3.5-plus", "qwen3.6-flash", "qwen4-plus", "Qwen/Qwen3.5-397B-A17B"}
	no := []string{"qwen-plus", "qwen-max", "qwen3-max", "qwen3.7-max", "qwen3-32b", "qwen2.5-72b-instruct", "qwen3-coder-plus", "deepseek-v3.2", "m", ""}
	for _, m := range yes {
		require.True(t, multimodalModel(m), m)
	}
	for _, m := range no {
		require.False(t, multimodalModel(m), m)
	}
}

func TestDashScopeLearnsAModelsPath(t *testing.T) {
	wrong := providertest.Behaviour{Status: 400, Error: providertest.Failure{Message: "url error, please check url！ For details, see: …"}}
	p, u := nativeTest(t, providertest.DashScope, wrong, providertest.Says("a"))
	for range 2 {
		h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
		require.ErrorIs(t, h.err, io.EOF)
		require.Contains(t, u.Seen().Path, "multimodal-generation")
	}
	require.Equal(t, 3, u.Calls(), "asked twice once, then where it answered")

	u.Play(wrong)
	other := nativeCall(t, nativeHi)
	other.Model = "no-such"
	h, _ := nativeAsk(t, p, other)
	require.Equal(t, KindModelMissing, AsError(h.err).Kind)
	image := nativeCall(t, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`)
	h, _ = nativeAsk(t, p, image)
	require.Equal(t, KindUnsupported, AsError(h.err).Kind)
	require.Equal(t, 6, u.Calls())
}

func TestDashScopeFetchesImagesOnlyInPublic(t *testing.T) {
	call := nativeCall(t, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.org/a.png"}}]}]}`)
	p := newDashScope(Settings{BaseURL: "https://dashscope.aliyuncs.com"}).(Checker)
	require.NoError(t, p.Check(call))
	call.BaseURL = "http://10.0.0.1"
	require.Equal(t, KindUnsupported, AsError(p.Check(call)).Kind)
	call.Options.ImageURLs = true
	require.NoError(t, p.Check(call))
}

func TestDashScopeAnswers(t *testing.T) {
	event := func(data string) string { return "id:1\nevent:result\n:HTTP_STATUS/200\ndata:" + data + "\n\n" }
	choice := func(message, finish string) string {
		return event(`{"output":{"choices":[{"message":` + message + `,"finish_reason":` + finish + `}]}}`)
	}
	tests := []struct {
		name       string
		body       string
		cumulative bool
		want       heard
		tools      []string
		kind       Kind
		status     int
	}{
		{name: "parts as content", body: choice(`{"content":[{"text":"a"},{"image":"x"},{"text":"b"}]}`, `"null"`) + choice(`{"content":[]}`, `"stop"`), want: heard{text: "ab", finish: "stop"}},
		{name: "content null", body: choice(`{"content":null,"reasoning_content":"r"}`, `null`) + choice(`{"content":"a"}`, `"length"`), want: heard{reasoning: "r", text: "a", finish: "length"}},
		{name: "CRLF, no ids", body: "data: {\"output\":{\"text\":\"a\",\"finish_reason\":\"stop\"}}\r\n\r\n", want: heard{text: "a", finish: "stop"}},
		{name: "no blank line at the end", body: strings.TrimSpace(choice(`{"content":"a"}`, `"stop"`)), want: heard{text: "a", finish: "stop"}},
		{name: "finish twice", body: choice(`{"content":"a"}`, `"stop"`) + choice(`{"content":"b"}`, `"stop"`), want: heard{text: "a", finish: "stop"}},
		{name: "an error after the finish", body: choice(`{"content":"a"}`, `"stop"`) + "event:error\n:HTTP_STATUS/500\ndata:{\"code\":\"InternalError\"}\n\n", want: heard{text: "a", finish: "stop"}},
		{name: "fields of other shapes", body: event(`{"status_code":200,"code":"","message":"","output":{"text":null,"finish_reason":null,"choices":[{"finish_reason":"stop","message":{"content":"a"}}]}}`), want: heard{text: "a", finish: "stop"}},
		{name: "one body", body: `{"output":{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}}`, want: heard{text: "a", finish: "stop"}},
		{name: "one body without finish", body: ` {"output":{"text":"a"}}`, want: heard{text: "a", finish: "stop"}},
		{name: "one body broken off", body: `{"output":{"text":"a"`, kind: KindTruncated},
		{name: "repeated texts", cumulative: true, body: choice(`{"content":"","reasoning_content":"h"}`, `"null"`) + choice(`{"content":"a","reasoning_content":"hm"}`, `"null"`) + choice(`{"content":"ab","reasoning_content":"hm"}`, `"stop"`), want: heard{text: "ab", reasoning: "hm", finish: "stop"}},
		{
			name: "repeated arguments", cumulative: true, tools: []string{`c f {"a":1}`, `d g {}`},
			body: choice(`{"content":"","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a"}}]}`, `"null"`) +
				choice(`{"content":"","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"id":"d","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`),
			want: heard{finish: "tool_calls"},
		},
		{
			name: "calls without an index, finish stop", tools: []string{`c f {"a":1}`, `d g {}`},
			body: choice(`{"content":"","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a"}}]}`, `"null"`) +
				choice(`{"content":"","tool_calls":[{"id":"","function":{"arguments":"\":1}"}}]}`, `"null"`) +
				choice(`{"content":"","tool_calls":[{"id":"d","function":{"name":"g","arguments":"{}"}}]}`, `"stop"`),
			want: heard{finish: "tool_calls"},
		},
		{name: "error event at once", body: "id:1\nevent:error\n:HTTP_STATUS/400\ndata:{\"code\":\"InvalidParameter\",\"message\":\"bad\"}\n\n", kind: KindBadRequest, status: 400},
		{name: "error event later", body: choice(`{"content":"a"}`, `"null"`) + "event:error\n:HTTP_STATUS/429\ndata:{\"code\":\"Throttling.RateQuota\"}\n\n", want: heard{text: "a"}, kind: KindRateLimited, status: 429},
		{name: "error without its name", body: event(`{"code":"InvalidApiKey","message":"no","request_id":"r"}`), kind: KindAuth},
		{name: "error as a body", body: `{"code":"DataInspectionFailed","message":"Input data may contain inappropriate content."}`, kind: KindContentPolicy},
		{name: "no resources left", body: choice(`{"content":"a"}`, `"insufficient_system_resource"`), kind: KindOverloaded},
		{name: "comments only", body: ":HTTP_STATUS/200\n\n", kind: KindTruncated},
		{name: "plain words", body: "It works\n", kind: KindMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.DashScope, providertest.Behaviour{Body: tt.body})
			call := nativeCall(t, nativeHi)
			call.Options.Cumulative = tt.cumulative
			h, chunks := nativeAsk(t, p, call)
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

func TestDashScopeUsageAndLogprobs(t *testing.T) {
	body := `data:{"output":{"choices":[{"message":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.10}]},"finish_reason":"stop"}]},
data:"usage":{"input_tokens":10,"output_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":5}}}

`
	p, _ := nativeTest(t, providertest.DashScope, providertest.Behaviour{Body: body})
	h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
	require.ErrorIs(t, h.err, io.EOF)
	require.JSONEq(t, `{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}`, h.usage)
	require.Equal(t, `{"content":[{"token":"a","logprob":-0.10}]}`, gjson.Get(chunks[0], "choices.0.logprobs").Raw)
	requireStrict(t, chunks)
}

func TestIncrement(t *testing.T) {
	tests := []struct {
		name  string
		texts []string
		want  []string
	}{
		{"grows", []string{"a", "ab", "ab", "abc"}, []string{"a", "b", "", "c"}},
		{"half a character", []string{"你", "你\ufffd", "你好"}, []string{"你", "", "好"}},
		{"half a character at the end", []string{"你\ufffd"}, []string{"你\ufffd"}},
		{"rewritten", []string{"The cat", "The dog", "The dog ran"}, []string{"The cat", "", " ran"}},
		{"shorter for a while", []string{"abc", "ab", "abcd"}, []string{"abc", "", "d"}},
		{"rewritten in other bytes", []string{"ab", "你好吗"}, []string{"ab", "吗"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var before string
			var got []string
			for i, s := range tt.texts {
				got = append(got, increment(&before, s, i == len(tt.texts)-1))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestIncrementsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.StringMatching(`[a-z你好😊]{0,4}`)).Draw(t, "pieces")
		var before, sofar, said string
		for _, p := range pieces {
			sofar += p
			more := increment(&before, sofar, false)
			if !utf8.ValidString(more) {
				t.Fatalf("%q is no text", more)
			}
			said += more
		}
		if said != sofar {
			t.Fatalf("said %q of %q", said, sofar)
		}
	})
}
