package providers

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

func sprintf(format string, a ...any) string { return fmt.Sprintf(format, a...) }

// events are server-sent events whose names are the types of their data.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", gjson.Get(d, "type").Str, d)
	}
	return b.String()
}

func TestAnthropicAnswers(t *testing.T) {
	const begin = `{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`
	const end = `{"type":"message_stop"}`
	open := func(i int, block string) string {
		return sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
	}
	delta := func(i int, delta string) string {
		return sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta)
	}
	say := func(text string) string { return delta(0, sprintf(`{"type":"text_delta","text":%q}`, text)) }
	shut := func(i int) string { return sprintf(`{"type":"content_block_stop","index":%d}`, i) }
	stop := func(reason string) string {
		return sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":5}}`, reason)
	}
	fails := func(kind string) string {
		return sprintf(`{"type":"error","error":{"type":%q,"message":"x"}}`, kind)
	}
	const text = `{"type":"text","text":""}`
	tests := []struct {
		name, body string
		want       heard
		tools      []string
		details    string // reasoning_details of all chunks
		kind       Kind
		status     int
	}{
		{name: "text", body: events(begin, open(0, text), say("a"), `{"type":"ping"}`, say("b"), shut(0), stop("end_turn"), end), want: heard{text: "ab", finish: "stop"}},
		{name: "a stop sequence", body: events(begin, say("a"), stop("stop_sequence"), end), want: heard{text: "a", finish: "stop"}},
		{name: "length", body: events(begin, say("a"), stop("max_tokens"), end), want: heard{text: "a", finish: "length"}},
		{name: "a refusal", body: events(begin, stop("refusal"), end), want: heard{finish: "content_filter"}},
		{name: "a paused turn", body: events(begin, say("a"), stop("pause_turn"), end), want: heard{text: "a", finish: "length"}},
		{name: "the window is full", body: events(begin, say("a"), stop("model_context_window_exceeded"), end), want: heard{text: "a", finish: "length"}},
		{name: "the window was full", body: events(begin, stop("model_context_window_exceeded"), end), kind: KindContextTooLong},
		{name: "a reason of tomorrow", body: events(begin, say("a"), stop("compaction"), end), want: heard{text: "a", finish: "stop"}},
		{name: "no reason", body: events(begin, say("a"), end), want: heard{text: "a", finish: "stop"}},
		{name: "begun twice", body: events(begin, begin, open(0, text), say("a"), begin, stop("end_turn"), end), want: heard{text: "a", finish: "stop"}},
		{name: "begun twice by different names, and nothing said", body: events(`{"type":"message_start","message":{"id":"a"}}`, `{"type":"message_start","message":{"id":"b"}}`, say("a"), end), want: heard{text: "a", finish: "stop"}},
		{name: "another message within one", body: events(`{"type":"message_start","message":{"id":"a"}}`, say("a"), `{"type":"message_start","message":{"id":"b"}}`, say("b"), stop("end_turn"), end), want: heard{text: "a"}, kind: KindTruncated},
		{
			name: "all of it at the start", tools: []string{`c f {"a":1}`}, want: heard{finish: "tool_calls"},
			body: events(`{"type":"message_start","message":{"id":"a","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":1}}],"stop_reason":"tool_use"}}`, end),
		},
		{name: "events of tomorrow", body: events(begin, `{"type":"mood","delta":{"text":"x"}}`, say("a"), delta(0, `{"type":"mood_delta","text":"x"}`), stop("end_turn"), end), want: heard{text: "a", finish: "stop"}},
		{name: "events without a name", body: strings.ReplaceAll(events(begin, say("a"), stop("end_turn"), end), "event:", ": "), want: heard{text: "a", finish: "stop"}},
		{name: "events without a type", body: "event: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\nevent: message_stop\ndata: {}\n\n", want: heard{text: "a", finish: "stop"}},
		{name: "text at the start of its block", body: events(begin, open(0, `{"type":"text","text":"a"}`), say("b"), stop("end_turn"), end), want: heard{text: "ab", finish: "stop"}},
		{name: "[DONE] behind the end", body: events(begin, say("a"), stop("end_turn"), end) + "data: [DONE]\n\n", want: heard{text: "a", finish: "stop"}},
		{
			name: "a signed thought", details: `[{"format":"anthropic-claude-v1","signature":"c2ln","text":"hm.","type":"reasoning.text"}]`,
			body: events(begin, open(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, `{"type":"thinking_delta","thinking":"hm"}`), delta(0, `{"type":"thinking_delta","thinking":"."}`),
				delta(0, `{"type":"signature_delta","signature":"c2"}`), delta(0, `{"type":"signature_delta","signature":"ln"}`), shut(0), open(1, `{"type":"redacted_thinking","data":""}`),
				delta(1, `{"type":"text_delta","text":"a"}`), stop("end_turn"), end),
			want: heard{text: "a", reasoning: "hm.", finish: "stop"},
		},
		{
			name: "a thought that isn't shown", details: `[{"data":"ZW5j","format":"anthropic-claude-v1","type":"reasoning.encrypted"}]`,
			body: events(begin, open(0, `{"type":"redacted_thinking","data":"ZW5j"}`), shut(0), say("a"), stop("end_turn"), end), want: heard{text: "a", finish: "stop"},
		},
		{
			name: "tool calls", tools: []string{`c f {"a":1}`, `d g {}`, `e h {"b":2}`}, want: heard{text: "a", finish: "tool_calls"},
			body: events(begin, say("a"), open(1, `{"type":"tool_use","id":"c","name":"f","input":{}}`), delta(1, `{"type":"input_json_delta","partial_json":""}`), delta(1, `{"type":"input_json_delta","partial_json":"{\"a"}`),
				delta(1, `{"type":"input_json_delta","partial_json":"\":1}"}`), shut(1), open(2, `{"type":"tool_use","id":"d","name":"g","input":{}}`), delta(2, `{"type":"input_json_delta","partial_json":""}`), shut(2),
				open(3, `{"type":"tool_use","id":"e","name":"h","input":{"b":2}}`), shut(3), stop("tool_use"), end),
		},
		{
			name: "calls that run into each other", tools: []string{`c f {}`, `d g {}`}, want: heard{finish: "tool_calls"},
			body: events(begin, open(0, `{"type":"tool_use","id":"c","name":"f"}`), open(1, `{"type":"tool_use","id":"d","name":"g"}`), delta(1, `{"type":"input_json_delta","partial_json":"{}"}`), delta(0, `{"type":"input_json_delta","partial_json":"{}"}`), stop("tool_use"), end),
		},
		{
			name: "a tool of the server's is nobody's call",
			body: events(begin, open(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":"{}"}`), shut(0), open(1, `{"type":"web_search_tool_result","content":[]}`), shut(1), say("a"), stop("end_turn"), end),
			want: heard{text: "a", finish: "stop"},
		},
		{
			name: "one body", tools: []string{`c f {"a": 1.10}`}, want: heard{text: "ab", reasoning: "hm", finish: "tool_calls"}, details: `[{"format":"anthropic-claude-v1","signature":"s","text":"hm","type":"reasoning.text"}]`,
			body: `{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"tool_use","id":"c","name":"f","input":{"a": 1.10}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`,
		},
		{name: "one body broken off", body: `{"type":"message","content":[{"type":"text","text":"a"`, kind: KindTruncated},
		{name: "a stop reason, but no end", body: events(begin, say("a"), stop("end_turn")), want: heard{text: "a"}, kind: KindTruncated},
		{name: "an end, and nothing else", body: events(end), kind: KindMalformed},
		{name: "an empty answer", body: events(begin, stop("end_turn"), end), want: heard{finish: "stop"}, kind: KindEmpty},
		{name: "another protocol", body: "data: {\"choices\":[]}\n\n", kind: KindMalformed},
		{name: "another protocol's body", body: `{"type":"completion","completion":"a"}`, kind: KindMalformed},
		{name: "overloaded at once", body: events(fails("overloaded_error")), kind: KindOverloaded, status: 529},
		{name: "overloaded later", body: events(begin, say("a"), fails("overloaded_error")), want: heard{text: "a"}, kind: KindOverloaded, status: 529},
		{name: "an error without its name", body: "data: " + fails("api_error") + "\n\n", kind: KindServerError, status: 500},
		{name: "an error as a body", body: fails("rate_limit_error"), kind: KindRateLimited, status: 429},
		{name: "late", body: events(fails("timeout_error")), kind: KindTimeout, status: 504},
		{name: "unpaid", body: events(fails("billing_error")), kind: KindQuota, status: 402},
		{name: "forbidden", body: events(fails("permission_error")), kind: KindAuth, status: 403},
		{name: "too large", body: events(fails("request_too_large")), kind: KindContextTooLong, status: 413},
		{name: "gone", body: events(fails("not_found_error")), kind: KindModelMissing, status: 404},
		{name: "a mistake", body: events(fails("invalid_request_error")), kind: KindBadRequest, status: 400},
		{name: "refused", body: events(fails("authentication_error")), kind: KindAuth, status: 401},
		{name: "an error of tomorrow", body: events(fails("mood_error")), kind: KindServerError},
		{name: "an error in words", body: "event: error\ndata: {oh\n\n", kind: KindServerError},
		{name: "an error behind the end", body: events(begin, say("a"), stop("end_turn"), end, fails("api_error")), want: heard{text: "a", finish: "stop"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.Anthropic, providertest.Behaviour{Body: tt.body})
			h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
			requireHeard(t, h, chunks, tt.want, tt.tools)
			requireKind(t, h.err, tt.kind, tt.status)
			if tt.details != "" {
				var details []string
				for _, c := range chunks {
					for _, d := range gjson.Get(c, "choices.0.delta.reasoning_details").Array() {
						if d.Get("data").Exists() && d.Get("data").Str == "" {
							continue
						}
						details = append(details, d.Raw)
					}
				}
				require.JSONEq(t, tt.details, "["+strings.Join(details, ",")+"]")
			}
		})
	}
}

// requireHeard asserts what came, but for usage and how it ended.
func requireHeard(t *testing.T, h heard, chunks []string, want heard, tools []string) {
	t.Helper()
	require.Equal(t, tools, toolCalls(chunks))
	requireStrict(t, chunks)
	h.err, h.usage, h.chunks = nil, "", 0
	require.Equal(t, want, h)
}

// requireKind asserts how a stream ended; KindNone is well.
func requireKind(t *testing.T, err error, kind Kind, status int) {
	t.Helper()
	if kind == KindNone {
		require.ErrorIs(t, err, io.EOF)
		return
	}
	require.Equal(t, kind.String(), AsError(err).Kind.String(), "%v", err)
	require.Equal(t, status, AsError(err).Status)
}

func TestAnthropicUsage(t *testing.T) {
	const begin = `{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":200,"output_tokens":1}}}`
	const text = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`
	tests := []struct{ name, end, want string }{
		{
			"counted at both ends", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`,
			`{"prompt_tokens":243,"completion_tokens":9,"total_tokens":252,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":200},"completion_tokens_details":{"reasoning_tokens":4}}`,
		},
		{
			"the later count counts", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"cache_read_input_tokens":0,"cache_creation_input_tokens":null,"output_tokens":9}}`,
			`{"prompt_tokens":205,"completion_tokens":9,"total_tokens":214,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":200}}`,
		},
	}
	for _, tt := range tests {
		h := listen(nativeStreamOf(providertest.Anthropic, strings.NewReader(events(begin, text, tt.end, `{"type":"message_stop"}`)), Options{}))
		require.ErrorIs(t, h.err, io.EOF)
		require.JSONEq(t, tt.want, h.usage, tt.name)
	}
	h := listen(nativeStreamOf(providertest.Anthropic, strings.NewReader(events(text, `{"type":"message_stop"}`)), Options{}))
	require.ErrorIs(t, h.err, io.EOF)
	require.Empty(t, h.usage, "nothing was counted")
}

func TestAnthropicErrors(t *testing.T) {
	body := func(kind, message string) string {
		return sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_011CeCGmBjaWkq37Sf5iU7so"}`, kind, message)
	}
	tests := []struct {
		name   string
		status int
		body   string
		kind   Kind
	}{
		{"recorded: bad key", 401, string(nativeFile(t, "anthropic/08-err.json")), KindAuth},
		{"recorded: too long", 400, string(nativeFile(t, "openai/anthropic-09-err.json")), KindContextTooLong},
		{"no credit", 400, body("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), KindQuota},
		{"overloaded", 529, body("overloaded_error", "Overloaded"), KindOverloaded},
		{"too large", 413, "<html>413</html>", KindContextTooLong},
		{"no such model", 404, body("not_found_error", "model: claude-9"), KindModelMissing},
		{"no prefill", 400, body("invalid_request_error", "This model does not support assistant message prefill. The conversation must end with a user message."), KindUnsupported},
		{"no budget", 400, body("invalid_request_error", `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`), KindUnsupported},
		{"no sampling", 400, body("invalid_request_error", "`temperature` is deprecated for this model."), KindUnsupported},
		{"no two ways of sampling", 400, body("invalid_request_error", "`temperature` and `top_p` cannot both be specified for this model. Please use only one."), KindUnsupported},
		{"no open schema", 400, body("invalid_request_error", "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"), KindUnsupported},
		{"not so much", 400, body("invalid_request_error", "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5"), KindUnsupported},
		{"no such field", 400, body("invalid_request_error", "min_p: Extra inputs are not permitted"), KindUnsupported},
		{"a mistake", 400, body("invalid_request_error", "messages.1.content.0.tool_use_id: unexpected"), KindBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.Anthropic, providertest.Behaviour{Status: tt.status, Body: tt.body, Headers: map[string]string{"Retry-After": "7", "x-should-retry": "false"}})
			h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
			requireKind(t, h.err, tt.kind, tt.status)
			require.Equal(t, tt.status == 529, AsError(h.err).RetryAfter > 0)
			require.NotContains(t, AsError(h.err).Message, "req_")
		})
	}
}

// FuzzAnthropicStream checks what holds for every stream.
func FuzzAnthropicStream(f *testing.F) {
	for _, r := range nativeRecordings() {
		if r.dialect() == providertest.Anthropic {
			f.Add(nativeFile(f, r.name))
		}
	}
	f.Add([]byte(events(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"f","input":{"a":1}}}`, `{"type":"content_block_stop","index":1}`, `{"type":"message_stop"}`)))
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`))
	f.Add([]byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		requireSound(t, nativeStreamOf(providertest.Anthropic, bytes.NewReader(body), Options{}), bytes.Contains(body, []byte("message")))
	})
}
