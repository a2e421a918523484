package providers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

// bedrockFrames is a stream of events, each "name payload".
func bedrockFrames(events ...string) string {
	var out strings.Builder
	for _, e := range events {
		name, payload, _ := strings.Cut(e, " ")
		out.WriteString(providertest.Frame(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event"))
	}
	return out.String()
}

// sdkFrame is a frame as AWS's own encoder writes it.
func sdkFrame(t testing.TB, payload string, headers ...string) string {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	require.NoError(t, eventstream.NewEncoder().Encode(&b, m))
	return b.String()
}

func bedrockStreamOf(body io.Reader, model string) Stream {
	return newBedrockStream(io.NopCloser(body), model, &client{})
}

func bedrockRecordings() []nativeRecording {
	return []nativeRecording{
		{name: "bedrock/01-text.bin", text: "I am here and ready to assist", finish: "length", usage: [2]int64{8, 10}},
		{name: "bedrock/02-text.bin", text: "The current temperature in Paris, the capital of France, is 30°C.", finish: "stop", usage: [2]int64{577, 18}},
		{name: "bedrock/06-body-text.json", text: "EIGHT", finish: "stop", usage: [2]int64{64, 5}},
	}
}

func TestBedrockRecordings(t *testing.T) {
	for _, r := range bedrockRecordings() {
		for _, piece := range []int{0, 1, 7} {
			t.Run(r.name, func(t *testing.T) {
				p, _ := nativeTest(t, providertest.Bedrock, providertest.Behaviour{Body: string(nativeFile(t, r.name)), Piece: piece})
				h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
				require.ErrorIs(t, h.err, io.EOF)
				require.Equal(t, r.text, h.text)
				require.Equal(t, r.finish, h.finish)
				want := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, r.usage[0], r.usage[1], r.usage[0]+r.usage[1])
				require.JSONEq(t, want, h.usage)
				requireStrict(t, chunks)
			})
		}
	}
}

// A recording that is cut, wherever, by an end or by a reset, is never passed off as an answer; behind its messageStop
// nothing is missing any more but usage.
func TestBedrockRecordingsCutAnywhere(t *testing.T) {
	for _, r := range bedrockRecordings() {
		body := nativeFile(t, r.name)
		enough := len(body)
		if at := bytes.Index(body, []byte("messageStop")); at > 0 {
			start := bytes.LastIndex(body[:at], []byte(":event-type")) - 13 // a name's length and the prelude
			enough = start + int(binary.BigEndian.Uint32(body[start:]))
		}
		for n := range len(body) {
			for _, end := range []io.Reader{strings.NewReader(""), iotest.ErrReader(&Error{Kind: KindTruncated})} {
				h := listen(bedrockStreamOf(io.MultiReader(bytes.NewReader(body[:n]), end), "m"))
				if n >= enough {
					require.ErrorIs(t, h.err, io.EOF)
					continue
				}
				require.Equal(t, KindTruncated, AsError(h.err).Kind, "%s cut at %d: %v", r.name, n, h.err)
				require.Empty(t, h.finish)
				require.True(t, strings.HasPrefix(r.text, h.text))
			}
		}
	}
}

func TestBedrockBehaviours(t *testing.T) {
	tools := []providertest.Tool{{ID: "call_1", Name: "f", Arguments: `{"a":1}`}, {ID: "call_2", Name: "g", Arguments: `{}`}}
	tests := []struct {
		name   string
		b      providertest.Behaviour
		kind   Kind
		status int
		want   heard
	}{
		{name: "answer", b: providertest.Says("你", "好"), want: heard{text: "你好", finish: "stop"}},
		{name: "reasoning", b: providertest.Behaviour{Reasoning: []string{"h", "m"}, Chunks: []string{"a"}}, want: heard{text: "a", reasoning: "hm", finish: "stop"}},
		{name: "reasoning only, cut by length", b: providertest.Behaviour{Reasoning: []string{"h"}, Finish: "length"}, want: heard{reasoning: "h", finish: "length"}},
		{name: "filtered", b: providertest.Behaviour{Chunks: []string{"a"}, Finish: "content_filter"}, want: heard{text: "a", finish: "content_filter"}},
		{name: "tools", b: providertest.Behaviour{Chunks: []string{"a"}, Tools: tools}, want: heard{text: "a", finish: "tool_calls"}},
		{name: "byte by byte", b: providertest.Behaviour{Chunks: []string{"你好", "!"}, Piece: 1}, want: heard{text: "你好!", finish: "stop"}},
		{name: "events nobody knows", b: providertest.Behaviour{Pings: 400, Chunks: []string{"a"}}, want: heard{text: "a", finish: "stop"}},
		{name: "long", b: providertest.Says(strings.Repeat("a", 2<<20)), want: heard{text: strings.Repeat("a", 2<<20), finish: "stop"}},
		{name: "empty", b: providertest.Ends(providertest.EndEmpty), kind: KindEmpty, want: heard{finish: "stop"}},
		{name: "only a stop", b: providertest.Ends(providertest.EndOnlyDone), kind: KindMalformed},
		{name: "eof", b: providertest.Ends(providertest.EndEOF, "a"), kind: KindTruncated, want: heard{text: "a"}},
		{name: "cut", b: providertest.Ends(providertest.EndCut, "a"), kind: KindTruncated, want: heard{text: "a"}},
		{name: "exception", b: providertest.Ends(providertest.EndErrorEvent, "a"), kind: KindServerError, status: 500, want: heard{text: "a"}},
		{name: "error body in a 200", b: providertest.Ends(providertest.EndErrorBody), kind: KindServerError, status: 500},
		{name: "page", b: providertest.Ends(providertest.EndHTML), kind: KindMalformed},
		{name: "text", b: providertest.Behaviour{Body: "upstream connect error"}, kind: KindMalformed},
		{name: "some object", b: providertest.Behaviour{Body: "{}"}, kind: KindMalformed},
		{name: "server-sent events", b: providertest.Behaviour{Body: "data: {}\n\n"}, kind: KindMalformed},
		{name: "an object after blank lines", b: providertest.Behaviour{Body: "\r\n\r\n{\"message\":\"x\",\"__type\":\"ThrottlingException\"}"}, kind: KindRateLimited, status: 429},
		{name: "dropped", b: providertest.Ends(providertest.EndDrop), kind: KindConnect},
	}
	for status, kind := range map[int]Kind{
		400: KindBadRequest, 403: KindAuth, 404: KindModelMissing, 408: KindTimeout, 424: KindServerError, 429: KindRateLimited, 500: KindServerError, 503: KindOverloaded,
	} {
		for _, b := range []providertest.Behaviour{providertest.Fails(status), {End: providertest.EndErrorEvent, NoRole: true, Error: providertest.Failure{Status: status}}} {
			tests = append(tests, struct {
				name   string
				b      providertest.Behaviour
				kind   Kind
				status int
				want   heard
			}{name: kind.String(), b: b, kind: kind, status: status})
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.Bedrock, tt.b)
			h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
			requireKind(t, h.err, tt.kind, tt.status)
			if tt.kind == KindNone {
				require.Positive(t, gjson.Get(h.usage, "total_tokens").Int())
			}
			requireStrict(t, chunks)
			if tt.b.Tools != nil {
				require.Equal(t, []string{`call_1 f {"a":1}`, `call_2 g {}`}, toolCalls(chunks))
			}
			h.err, h.usage, h.chunks = nil, "", 0
			require.Equal(t, tt.want, h)
		})
	}
}

// The one body of a model that isn't asked for a stream.
func TestBedrockWithoutAStream(t *testing.T) {
	p, _ := nativeTest(t, providertest.Bedrock, providertest.Behaviour{
		Reasoning: []string{"hm"}, Chunks: []string{"a", "b"}, Usage: &providertest.Usage{Prompt: 9, Completion: 4, Cached: 2},
		Tools: []providertest.Tool{{ID: "c1", Name: "f", Arguments: `{"a":1}`}, {ID: "c2", Name: "g", Arguments: `{}`}},
	})
	call := nativeCall(t, nativeHi)
	call.Model, call.Options.NoStream = "anthropic.claude-sonnet-4-5-v1:0", true
	h, chunks := nativeAsk(t, p, call)
	require.ErrorIs(t, h.err, io.EOF)
	require.Equal(t, []string{`c1 f {"a":1}`, `c2 g {}`}, toolCalls(chunks))
	require.JSONEq(t, `[{"type":"reasoning.text","format":"anthropic-claude-v1","text":"hm","signature":"c2lnbmVk"}]`, gjson.Get(chunks[0], "choices.0.delta.reasoning_details").Raw)
	require.JSONEq(t, `{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":2}}`, h.usage)
	h.err, h.usage, h.chunks = nil, "", 0
	require.Equal(t, heard{text: "ab", reasoning: "hm", finish: "tool_calls"}, h)
}

func TestBedrockAnswers(t *testing.T) {
	const start, end, stop = `messageStart {"role":"assistant"}`, `contentBlockStop {"contentBlockIndex":0}`, `messageStop {"stopReason":"end_turn"}`
	delta := func(d string) string { return `contentBlockDelta {"contentBlockIndex":0,"delta":` + d + `}` }
	ends := func(reason string) string { return `messageStop {"stopReason":"` + reason + `"}` }
	const claude = "anthropic.claude-sonnet-4-5-v1:0"
	tests := []struct {
		name, model string
		events      []string
		want        heard
		tools       []string
		kind        Kind
		details     string // reasoning_details
	}{
		{name: "a stop sequence", events: []string{start, delta(`{"text":"a"}`), end, ends("stop_sequence")}, want: heard{text: "a", finish: "stop"}},
		{name: "a reason of tomorrow", events: []string{start, delta(`{"text":"a"}`), end, ends("bored")}, want: heard{text: "a", finish: "stop"}},
		{name: "no reason", events: []string{start, delta(`{"text":"a"}`), `messageStop {}`}, want: heard{text: "a", finish: "stop"}},
		{name: "a guardrail", events: []string{start, delta(`{"text":"no"}`), end, ends("guardrail_intervened")}, want: heard{text: "no", finish: "content_filter"}},
		{name: "a filter before the first word", events: []string{start, ends("content_filtered")}, want: heard{finish: "content_filter"}},
		{name: "the window in the middle", events: []string{start, delta(`{"text":"a"}`), ends("model_context_window_exceeded")}, want: heard{text: "a", finish: "length"}},
		{name: "the window at once", events: []string{start, ends("model_context_window_exceeded")}, kind: KindContextTooLong},
		{name: "a call that is none", events: []string{start, delta(`{"text":"a"}`), ends("malformed_tool_use")}, want: heard{text: "a"}, kind: KindToolFailed},
		{name: "no output", events: []string{start, ends("malformed_model_output")}, kind: KindMalformed},
		{name: "empty text only", events: []string{start, delta(`{"text":""}`), end, stop}, kind: KindEmpty, want: heard{finish: "stop"}},
		{name: "without a start", events: []string{delta(`{"text":"a"}`), stop}, want: heard{text: "a", finish: "stop"}},
		{name: "an exception behind the end", events: []string{start, delta(`{"text":"a"}`), stop, "!"}, want: heard{text: "a", finish: "stop"}},
		{name: "no JSON", events: []string{start, `contentBlockDelta {"delta"`}, kind: KindMalformed},
		{
			name: "signed thoughts", model: claude,
			events:  []string{start, delta(`{"reasoningContent":{"text":"h"}}`), delta(`{"reasoningContent":{"text":"m"}}`), delta(`{"reasoningContent":{"signature":"s"}}`), end, delta(`{"text":"a"}`), stop},
			want:    heard{reasoning: "hm", text: "a", finish: "stop"},
			details: `[{"type":"reasoning.text","format":"anthropic-claude-v1","text":"hm","signature":"s"}]`,
		},
		{name: "another family's signature", model: "amazon.nova-2-lite-v1:0", events: []string{start, delta(`{"reasoningContent":{"signature":"s"}}`), end, delta(`{"text":"a"}`), stop}, want: heard{text: "a", finish: "stop"}},
		{name: "redacted thoughts", model: claude, events: []string{start, delta(`{"reasoningContent":{"redactedContent":"AAAA"}}`), end, delta(`{"text":"a"}`), stop}, want: heard{text: "a", finish: "stop"}},
		{
			name: "calls, one without arguments", want: heard{finish: "tool_calls"}, tools: []string{`x f {"a": 1}`, `y g {}`},
			events: []string{
				start, `contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"x","name":"f"}}}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"toolUse":{"input":""}}}`, `contentBlockDelta {"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a\": "}}}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"toolUse":{"input":"1}"}}}`, `contentBlockStop {"contentBlockIndex":1}`,
				`contentBlockStart {"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"y","name":"g"}}}`, `contentBlockStop {"contentBlockIndex":2}`, ends("tool_use"),
			},
		},
		{
			name: "what the provider calls itself, citations, images", want: heard{text: "a", finish: "stop"},
			events: []string{
				start, `contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"x","name":"nova_grounding","type":"server_tool_use"}}}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}`, `contentBlockStop {"contentBlockIndex":1}`,
				`contentBlockStart {"contentBlockIndex":2,"start":{"toolResult":{"toolUseId":"x"}}}`, `contentBlockDelta {"contentBlockIndex":2,"delta":{"toolResult":[{"text":"found"}]}}`,
				delta(`{"text":"a"}`), delta(`{"citation":{"location":{}}}`), delta(`{"image":{"source":{"bytes":"AA"}}}`), end, stop,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := bedrockFrames(tt.events...)
			if last := len(tt.events) - 1; tt.events[last] == "!" {
				body = bedrockFrames(tt.events[:last]...) + sdkFrame(t, `{"message":"x"}`, ":message-type", "exception", ":exception-type", "throttlingException")
			}
			rec := &recorder{Stream: bedrockStreamOf(strings.NewReader(body), tt.model)}
			h := listen(rec)
			requireKind(t, h.err, tt.kind, 0)
			requireStrict(t, rec.chunks)
			require.Equal(t, tt.tools, toolCalls(rec.chunks))
			details := ""
			for _, c := range rec.chunks {
				details += gjson.Get(c, "choices.0.delta.reasoning_details").Raw
			}
			if tt.details != "" {
				require.JSONEq(t, tt.details, details)
			} else {
				require.Empty(t, details)
			}
			h.err, h.chunks, h.usage = nil, 0, ""
			require.Equal(t, tt.want, h)
		})
	}
}

// Exceptions and errors inside a 200, as AWS's own encoder frames them.
func TestBedrockExceptions(t *testing.T) {
	exception := func(name, payload string) string {
		return sdkFrame(t, payload, ":message-type", "exception", ":exception-type", name, ":content-type", "application/json")
	}
	failed := func(code, message string) string {
		return sdkFrame(t, "", ":message-type", "error", ":error-code", code, ":error-message", message)
	}
	tests := []struct {
		name, frame, code string
		kind              Kind
		status            int
	}{
		{"throttling", exception("throttlingException", `{"message":"Too many requests"}`), "throttlingException", KindRateLimited, 429},
		{"throttling, as a header spells it", exception("ThrottlingException", `{}`), "ThrottlingException", KindRateLimited, 429},
		{"throttling by the day", exception("throttlingException", `{"message":"Too many tokens per day, please wait before trying again."}`), "throttlingException", KindQuota, 429},
		{"not ready", exception("modelNotReadyException", `{"message":"x"}`), "modelNotReadyException", KindLoading, 429},
		{"unavailable", exception("serviceUnavailableException", `{"message":"x"}`), "serviceUnavailableException", KindOverloaded, 503},
		{"internal", exception("internalServerException", `{"message":"x"}`), "internalServerException", KindServerError, 500},
		{"the model's stream", exception("modelStreamErrorException", `{"message":"x","originalMessage":"y","originalStatusCode":500}`), "modelStreamErrorException", KindServerError, 424},
		{"the model", exception("modelErrorException", `{"message":"x"}`), "modelErrorException", KindServerError, 424},
		{"the model's time", exception("modelTimeoutException", `{"message":"x"}`), "modelTimeoutException", KindTimeout, 408},
		{"a mistake", exception("validationException", `{"message":"1 validation error detected"}`), "validationException", KindBadRequest, 400},
		{"too long", exception("validationException", `{"message":"Input is too long for requested model."}`), "validationException", KindContextTooLong, 400},
		{"access", exception("accessDeniedException", `{"message":"x"}`), "accessDeniedException", KindAuth, 403},
		{"quota", exception("serviceQuotaExceededException", `{"message":"x"}`), "serviceQuotaExceededException", KindQuota, 400},
		{"gone", exception("resourceNotFoundException", `{"message":"x"}`), "resourceNotFoundException", KindModelMissing, 404},
		{"unknown", exception("surpriseException", `{"message":"x"}`), "surpriseException", KindServerError, 0},
		{"nothing said", exception("", ``), "", KindServerError, 0},
		{"an error", failed("ThrottlingException", "slow down, please"), "ThrottlingException", KindRateLimited, 429},
		{"an unknown error", failed("InternalFailure", "x"), "InternalFailure", KindServerError, 0},
		{"no kind of message", sdkFrame(t, `{}`, ":event-type", "messageStop"), "undecodable", KindMalformed, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, before := range []string{"", bedrockFrames(`messageStart {"role":"assistant"}`, `contentBlockDelta {"delta":{"text":"a"}}`)} {
				h := listen(bedrockStreamOf(strings.NewReader(before+tt.frame), "m"))
				requireKind(t, h.err, tt.kind, tt.status)
				require.Equal(t, tt.code, AsError(h.err).Code)
				require.Empty(t, h.finish)
			}
		})
	}
}

// Refusals before the stream: a status, a header that names the type, and a message.
func TestBedrockRefusals(t *testing.T) {
	tests := []struct {
		status        int
		kind, message string
		want          Kind
	}{
		{400, "ValidationException", "The provided model identifier is invalid.", KindModelMissing},
		{400, "ValidationException", "Invocation of model ID anthropic.claude-haiku-4-5-20251001-v1:0 with on-demand throughput isn\u2019t supported. Retry your request with the ID or ARN of an inference profile that contains this model.", KindModelMissing},
		{400, "ValidationException", "Input Tokens Exceeded: Number of input tokens exceeds maximum length.", KindContextTooLong},
		{400, "ValidationException", "The model returned the following errors: input length and `max_tokens` exceed context limit: 199999 + 8192 > 200000, decrease input length", KindContextTooLong},
		{400, "ValidationException", "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.", KindUnsupported},
		{400, "ValidationException", "Malformed input request: #: extraneous key [top_k] is not permitted, please reformat your input and try again.", KindUnsupported},
		{400, "ValidationException", "This model doesn't support tool use in streaming mode.", KindUnsupported},
		{400, "ValidationException", "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again.", KindUnsupported},
		{400, "ValidationException", "Output blocked by content filtering policy", KindContentPolicy},
		{400, "ValidationException", "A conversation must start with a user message. Try again with a conversation that starts with a user message.", KindBadRequest},
		{400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account.", KindQuota},
		{403, "UnrecognizedClientException", "The security token included in the request is invalid.", KindAuth},
		{403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", KindAuth},
		{403, "ExpiredTokenException", "The security token included in the request is expired", KindAuth},
		{404, "ResourceNotFoundException", "This model version has reached the end of its life.", KindModelMissing},
		{408, "ModelTimeoutException", "The model has timed out in processing the request.", KindTimeout},
		{424, "ModelErrorException", "The system encountered an unexpected error during processing.", KindServerError},
		{429, "ThrottlingException", "Too many tokens, please wait before trying again.", KindRateLimited},
		{429, "ThrottlingException", "Too many tokens per day, please wait before trying again.", KindQuota},
		{429, "ModelNotReadyException", "The model is not ready for inference.", KindLoading},
		{500, "InternalServerException", "The system encountered an unexpected error.", KindServerError},
		{503, "ServiceUnavailableException", "Bedrock is unable to process your request.", KindOverloaded},
	}
	for _, tt := range tests {
		t.Run(tt.message, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.Bedrock, providertest.Behaviour{
				Status: tt.status, Body: `{"message":` + string(appendString(nil, tt.message)) + `}`,
				Headers: map[string]string{"X-Amzn-Errortype": tt.kind + ":http://internal.amazon.com/coral/com.amazon.bedrock/", "Retry-After": "7"},
			})
			h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
			requireKind(t, h.err, tt.want, tt.status)
			require.Equal(t, tt.kind, AsError(h.err).Code)
			require.Equal(t, tt.status == 429 || tt.status == 503, AsError(h.err).RetryAfter > 0)
			require.NotContains(t, h.err.Error(), tt.message)
		})
	}
}

func TestBedrockUsage(t *testing.T) {
	tests := []struct{ name, usage, want string }{
		{"plain", `{"inputTokens":8,"outputTokens":10,"totalTokens":18}`, `{"prompt_tokens":8,"completion_tokens":10,"total_tokens":18}`},
		{
			"the cache counted apart", `{"inputTokens":3,"outputTokens":9,"totalTokens":252,"cacheReadInputTokens":40,"cacheWriteInputTokens":200}`,
			`{"prompt_tokens":243,"completion_tokens":9,"total_tokens":252,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":200}}`,
		},
		{"nothing", `{}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := listen(bedrockStreamOf(strings.NewReader(bedrockFrames(`contentBlockDelta {"delta":{"text":"a"}}`, `messageStop {"stopReason":"end_turn"}`, `metadata {"usage":`+tt.usage+`}`)), "m"))
			require.ErrorIs(t, h.err, io.EOF)
			if tt.want == "" {
				require.Empty(t, h.usage)
			} else {
				require.JSONEq(t, tt.want, h.usage)
			}
		})
	}
}

// The frames of the package's fake are AWS's own.
func TestFramesAreAWSs(t *testing.T) {
	headers := []string{":event-type", "messageStop", ":content-type", "application/json", ":message-type", "event"}
	require.Equal(t, sdkFrame(t, `{"a":1}`, headers...), providertest.Frame(`{"a":1}`, headers...))
	require.Equal(t, sdkFrame(t, ""), providertest.Frame(""))
}

func TestFramesThatAreBroken(t *testing.T) {
	good := bedrockFrames(`messageStart {"role":"assistant"}`)
	at := func(i int) string {
		b := []byte(good)
		b[i] ^= 1
		return string(b)
	}
	// prelude makes the head of a frame, its checksum right.
	prelude := func(length, headers uint32) string {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, length), headers)
		return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
	}
	tests := []struct {
		name, body, code string
		kind             Kind
	}{
		{"nothing", "", "", KindNone},
		{"half a prelude", good[:11], "", KindTruncated},
		{"half a frame", good[:len(good)-1], "", KindTruncated},
		{"a flipped bit of the length", at(3), "undecodable", KindMalformed},
		{"a flipped bit of the prelude's checksum", at(8), "undecodable", KindMalformed},
		{"a flipped bit of a header", at(14), "undecodable", KindMalformed},
		{"a flipped bit of the payload", at(len(good) - 6), "undecodable", KindMalformed},
		{"a flipped bit of the checksum", at(len(good) - 1), "undecodable", KindMalformed},
		{"shorter than itself", prelude(15, 0) + "xxxx", "undecodable", KindMalformed},
		{"headers beyond its end", prelude(20, 5) + "xxxxxxxx", "undecodable", KindMalformed},
		{"headers without end", prelude(1<<20, 1<<32-1), "undecodable", KindMalformed},
		{"at the cap, and cut", prelude(maxEvent, 0) + "xxxx", "", KindTruncated},
		{"beyond the cap", prelude(maxEvent+1, 0) + "xxxx", "too_large", KindMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newFrameReader(iotest.OneByteReader(strings.NewReader(good + tt.body)))
			f, err := r.next()
			require.NoError(t, err)
			require.Equal(t, frame{kind: "event", name: "messageStart", data: []byte(`{"role":"assistant"}`)}, f)
			_, err = r.next()
			if tt.kind == KindNone {
				require.Equal(t, io.EOF, err)
				return
			}
			requireKind(t, err, tt.kind, 0)
			require.Equal(t, tt.code, AsError(err).Code)
		})
	}
}

// A frame is given as soon as its last byte is there.
func TestFramesComeAtOnce(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	r := newFrameReader(in)
	for range 3 {
		go func() { _, _ = io.WriteString(out, bedrockFrames(`messageStart {"role":"assistant"}`)) }()
		f, err := r.next()
		require.NoError(t, err)
		require.Equal(t, "messageStart", f.name)
	}
}

func TestBedrockEndsSoonAfterItsMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := bedrockFrames(`contentBlockDelta {"delta":{"text":"a"}}`, `messageStop {"stopReason":"end_turn"}`, `metadata {"usage":{"inputTokens":1,"outputTokens":1}}`)
		u := providertest.New(providertest.Bedrock, providertest.Behaviour{Body: body, End: providertest.EndHang})
		p, err := New(Settings{Dialect: "bedrock", BaseURL: "http://memory", APIKey: "sk-secret", Transport: u.Memory(t)})
		require.NoError(t, err)
		start := time.Now()
		h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
		require.ErrorIs(t, h.err, io.EOF)
		require.Equal(t, "a", h.text)
		require.Equal(t, int64(1), gjson.Get(h.usage, "completion_tokens").Int())
		require.Equal(t, drainLimit, time.Since(start))
	})
}

// FuzzBedrockStream checks what holds for every stream.
func FuzzBedrockStream(f *testing.F) {
	for _, r := range bedrockRecordings() {
		f.Add(nativeFile(f, r.name))
	}
	f.Add([]byte(providertest.Frame(`{"message":"x"}`, ":message-type", "exception", ":exception-type", "throttlingException")))
	f.Add([]byte(bedrockFrames(`contentBlockStart {"start":{"toolUse":{"name":"f"}}}`, `contentBlockStop {}`, `messageStop {}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		requireSound(t, bedrockStreamOf(bytes.NewReader(body), "anthropic.claude-sonnet-4-5-v1:0"), bytes.Contains(body, []byte("message")))
	})
}

// FuzzFrames puts checksums right, so that what lies behind them is reached too.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x0d:message-type\x07\x00\x05event\x0b:event-type\x07\x00\x0bmessageStop"), []byte(`{"stopReason":"end_turn"}`))
	f.Add([]byte("\x01a\x00\x01b\x01\x01c\x02\x00\x01d\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01e\x06\x00\x01x"), []byte{})
	f.Add([]byte("\x01a\x07\xff\xffx"), []byte(`{}`))
	f.Fuzz(func(t *testing.T, headers, payload []byte) {
		b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		b = append(append(b, headers...), payload...)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		r := newFrameReader(bytes.NewReader(append(b, b...)))
		first, err := r.next()
		if err != nil {
			require.Equal(t, KindMalformed, AsError(err).Kind)
			return
		}
		require.Equal(t, string(payload), string(first.data))
		second, err := r.next()
		require.NoError(t, err)
		require.Equal(t, first, second)
		_, err = r.next()
		require.Equal(t, io.EOF, err)
	})
}
