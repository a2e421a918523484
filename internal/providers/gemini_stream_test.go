package providers

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

// geminiSays is one response with parts and, where it isn't "", a finish reason.
func geminiSays(parts, finish string) string {
	if finish != "" {
		finish = `,"finishReason":` + finish
	}
	return sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]}%s,"index":0}]}`, parts, finish)
}

func geminiEvents(data ...string) string {
	return "data: " + strings.Join(data, "\r\n\r\ndata: ") + "\r\n\r\n"
}

func TestGeminiAnswers(t *testing.T) {
	const a, b = `{"text":"a"}`, `{"text":"b"}`
	call := func(name, args, more string) string {
		return sprintf(`{"functionCall":{"name":%q,"args":%s}%s}`, name, args, more)
	}
	piece := func(of string) string { return `{"functionCall":{` + of + `}}` }
	finish := func(reason string) string { return geminiEvents(geminiSays(a, ""), geminiSays(b, reason)) }
	tests := []struct {
		name, body string
		want       heard
		tools      []string // without ids
		kind       Kind
		status     int
	}{
		{name: "text", body: finish(`"STOP"`), want: heard{text: "ab", finish: "stop"}},
		{name: "length", body: finish(`"MAX_TOKENS"`), want: heard{text: "ab", finish: "length"}},
		{name: "a number", body: finish(`1`), want: heard{text: "ab", finish: "stop"}},
		{name: "another number", body: finish(`2`), want: heard{text: "ab", finish: "length"}},
		{name: "safety", body: finish(`"SAFETY"`), want: heard{text: "ab", finish: "content_filter"}},
		{name: "recitation", body: finish(`"RECITATION"`), want: heard{text: "ab", finish: "content_filter"}},
		{name: "safety's number", body: finish(`3`), want: heard{text: "ab", finish: "content_filter"}},
		{name: "an image's safety", body: finish(`"IMAGE_PROHIBITED_CONTENT"`), want: heard{text: "ab", finish: "content_filter"}},
		{name: "safety, and nothing said", body: geminiEvents(`{"candidates":[{"finishReason":"SAFETY","safetyRatings":[]}]}`), want: heard{finish: "content_filter"}},
		{name: "a call that is none", body: finish(`"MALFORMED_FUNCTION_CALL"`), want: heard{text: "a"}, kind: KindToolFailed},
		{name: "a call that is none, as a number", body: finish(`10`), want: heard{text: "a"}, kind: KindToolFailed},
		{name: "cut short for no reason", body: finish(`"OTHER"`), want: heard{text: "a"}, kind: KindServerError},
		{name: "a reason in every chunk", body: geminiEvents(geminiSays(a, `"STOP"`), geminiSays(b, `"STOP"`)), want: heard{text: "ab", finish: "stop"}},
		{name: "a finish by itself", body: geminiEvents(geminiSays(a, ""), `{"candidates":[{"finishReason":"STOP"}]}`, `{"usageMetadata":{"promptTokenCount":1}}`), want: heard{text: "a", finish: "stop"}},
		{name: "unspecified so far", body: geminiEvents(geminiSays(a, `"FINISH_REASON_UNSPECIFIED"`), geminiSays(b, `"STOP"`)), want: heard{text: "ab", finish: "stop"}},
		{name: "thoughts", body: geminiEvents(geminiSays(`{"text":"hm","thought":true},{"text":"a","thought":false}`, `"STOP"`)), want: heard{text: "a", reasoning: "hm", finish: "stop"}},
		{name: "other candidates", body: geminiEvents(`{"candidates":[{"index":1,"content":{"parts":[{"text":"x"}]}},{"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`), want: heard{text: "a", finish: "stop"}},
		{name: "what the server ran", body: geminiEvents(geminiSays(`{"executableCode":{"code":"1"}},{"codeExecutionResult":{"output":"1"}},{"text":"a"}`, `"STOP"`)), want: heard{text: "a", finish: "stop"}},
		{name: "tool calls", body: geminiEvents(geminiSays(call("f", `{"a": 1.10}`, ""), ""), geminiSays(call("g", `null`, ""), `"STOP"`)), tools: []string{`f {"a": 1.10}`, `g {}`}, want: heard{finish: "tool_calls"}},
		{
			name: "arguments value by value", tools: []string{`f {"city":"New York","n":1.5,"steps":[{"on":true},{"x":null}],"a.b":"z"}`, `g {}`, `h {"k":"v"}`}, want: heard{finish: "tool_calls"},
			body: geminiEvents(geminiSays(piece(`"name":"f","willContinue":true`), ""), geminiSays(piece(`"partialArgs":[{"jsonPath":"$.city","stringValue":"New","willContinue":true}],"willContinue":true`), ""),
				geminiSays(piece(`"partialArgs":[{"jsonPath":"$.city","stringValue":" York"},{"jsonPath":"$.n","numberValue":1.5},{"jsonPath":"$.steps[0].on","boolValue":true}],"willContinue":true`), ""),
				geminiSays(piece(`"partialArgs":[{"jsonPath":"$.steps[1].x","nullValue":"NULL_VALUE"},{"jsonPath":"$['a.b']","stringValue":"z"}],"willContinue":true`), ""), geminiSays(piece(``), ""),
				geminiSays(piece(`"name":"g","willContinue":true`), ""), geminiSays(piece(`"name":"h","willContinue":true`), ""), geminiSays(piece(`"partialArgs":[{"jsonPath":"$.k","stringValue":"v","willContinue":true}],"willContinue":true`), ""), geminiSays(``, `"STOP"`)),
		},
		{name: "a value that has no place", body: geminiEvents(geminiSays(piece(`"name":"f","partialArgs":[{"jsonPath":"$.a[999999999]","stringValue":"x"}]`), `"STOP"`)), kind: KindMalformed},
		{name: "a piece of no call", body: geminiEvents(geminiSays(piece(``)+`,{"text":"a"}`, `"STOP"`)), want: heard{text: "a", finish: "stop"}},
		{name: "LF, and [DONE]", body: strings.ReplaceAll(finish(`"STOP"`), "\r", "") + "data: [DONE]\n\n", want: heard{text: "ab", finish: "stop"}},
		{name: "[DONE] behind a reason in every chunk", body: geminiEvents(geminiSays(a, `"STOP"`), geminiSays(b, `"STOP"`), "[DONE]"), want: heard{text: "ab", finish: "stop"}},
		{name: "an array", body: "[" + geminiSays(a, "") + "\n,\r\n" + geminiSays(b, `"STOP"`) + "\n]", want: heard{text: "ab", finish: "stop"}},
		{name: "an array without its end", body: "[" + geminiSays(a, "") + ",\n" + geminiSays(b, `"STOP"`), want: heard{text: "ab"}, kind: KindTruncated},
		{name: "an array broken off", body: "[" + geminiSays(a, "") + ",\n" + `{"candidates":`, want: heard{text: "a"}, kind: KindTruncated},
		{name: "an array of other things", body: `[1]`, kind: KindMalformed},
		{name: "an empty array", body: `[]`, kind: KindTruncated},
		{name: "an error in an array", body: `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, kind: KindOverloaded, status: 503},
		{name: "one body", body: " " + geminiSays(a, `"STOP"`), want: heard{text: "a", finish: "stop"}},
		{name: "one body without a reason", body: geminiSays(a, ""), want: heard{text: "a", finish: "stop"}},
		{name: "one body broken off", body: `{"candidates":[{"content":{"parts":[{"text":"a"`, kind: KindTruncated},
		{name: "no finish", body: geminiEvents(geminiSays(a, "")), want: heard{text: "a"}, kind: KindTruncated},
		{name: "nothing said", body: geminiEvents(geminiSays("", `"STOP"`)), want: heard{finish: "stop"}, kind: KindEmpty},
		{name: "another protocol", body: geminiEvents(`{"choices":[]}`), kind: KindMalformed},
		{name: "a prompt that is refused", body: geminiEvents(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5}}`), kind: KindContentPolicy},
		{name: "a refused prompt as a body", body: `{"promptFeedback":{"blockReason":"SAFETY"}}`, kind: KindContentPolicy},
		{name: "a prompt that isn't refused", body: geminiEvents(`{"promptFeedback":{"safetyRatings":[]},"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`), want: heard{text: "a", finish: "stop"}},
		{name: "an error later", body: geminiEvents(geminiSays(a, ""), `{"error":{"code":500,"message":"x","status":"INTERNAL"}}`), want: heard{text: "a"}, kind: KindServerError, status: 500},
		{name: "an error behind the finish", body: geminiEvents(geminiSays(a, `"STOP"`), `{"error":{"code":500,"message":"x","status":"INTERNAL"}}`), want: heard{text: "a", finish: "stop"}},
		{name: "an error behind a reason in every chunk", body: geminiEvents(geminiSays(a, `"STOP"`), geminiSays(b, `"STOP"`), `{"error":{"code":500,"status":"INTERNAL"}}`), want: heard{text: "ab"}, kind: KindServerError, status: 500},
		{name: "an error in words", body: "event: error\r\ndata: {oh\r\n\r\n", kind: KindServerError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.Gemini, providertest.Behaviour{Body: tt.body})
			h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
			var tools []string
			for _, c := range toolCalls(chunks) {
				id, rest, _ := strings.Cut(c, " ")
				require.Regexp(t, `^call_\S+$`, id)
				tools = append(tools, rest)
			}
			require.Equal(t, tt.tools, tools)
			requireHeard(t, h, chunks, tt.want, toolCalls(chunks))
			requireKind(t, h.err, tt.kind, tt.status)
			if tt.kind == KindContentPolicy {
				require.Contains(t, AsError(h.err).Message, "blocked")
				require.NotEmpty(t, AsError(h.err).Code)
			}
			byBytes := listen(nativeStreamOf(providertest.Gemini, iotest.OneByteReader(strings.NewReader(tt.body)), Options{}))
			require.Equal(t, tt.want.text, byBytes.text)
			requireKind(t, byBytes.err, tt.kind, tt.status)
		})
	}
}

func TestSjsonPath(t *testing.T) {
	for path, want := range map[string]string{
		"$.a": "a", "$.a.b": "a.b", "$.a[0].b": "a.0.b", "$.a[0][1]": "a.0.1", "$['a b'].c": "a b.c", `$["a.b"]`: `a\.b`, "$.7": ":7", "$.*": `\*`,
		"": "", "$": "", "a": "", "$.": "", "$..a": "", "$.a[": "", "$.a[]": "", "$.a[-1]": "", "$.a[x]": "", "$.a[5000]": "", "$a": "",
	} {
		got, ok := sjsonPath(path)
		require.Equal(t, want != "", ok, path)
		if ok {
			require.Equal(t, want, got)
		}
	}
}

func TestGeminiSignatures(t *testing.T) {
	body := geminiEvents(
		geminiSays(`{"functionCall":{"id":"x1","name":"f","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"x2","name":"g"}}`, ""),
		geminiSays(`{"text":"","thoughtSignature":"dGV4dA=="}`, `"STOP"`))
	p, _ := nativeTest(t, providertest.Gemini, providertest.Behaviour{Body: body})
	h, chunks := nativeAsk(t, p, nativeCall(t, nativeHi))
	require.ErrorIs(t, h.err, io.EOF)
	requireStrict(t, chunks)
	require.Equal(t, []string{"x1 f {}", "x2 g {}"}, toolCalls(chunks))
	require.Equal(t, "c2ln", gjson.Get(chunks[0], "choices.0.delta.tool_calls.0.extra_content.google.thought_signature").Str)
	require.False(t, gjson.Get(chunks[0], "choices.0.delta.tool_calls.1.extra_content").Exists())
	require.Equal(t, "dGV4dA==", gjson.Get(chunks[1], "choices.0.delta.extra_content.google.thought_signature").Str)
}

func TestGeminiUsage(t *testing.T) {
	for counts, want := range map[string]string{
		`{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":12}`:                                                                                `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}`,
		`{"promptTokenCount":10,"candidatesTokenCount":2,"thoughtsTokenCount":5,"toolUsePromptTokenCount":3,"cachedContentTokenCount":4,"totalTokenCount":20}`: `{"prompt_tokens":13,"completion_tokens":7,"total_tokens":20,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}`,
		`{"promptTokenCount":10,"totalTokenCount":10}`:                                                                                                         `{"prompt_tokens":10,"completion_tokens":0,"total_tokens":10}`,
		`{}`: ``,
	} {
		body := geminiEvents(geminiSays(`{"text":"a"}`, `"STOP"`), `{"candidates":[],"usageMetadata":`+counts+`}`)
		h := listen(nativeStreamOf(providertest.Gemini, strings.NewReader(body), Options{}))
		require.ErrorIs(t, h.err, io.EOF)
		if want == "" {
			require.Empty(t, h.usage)
			continue
		}
		require.JSONEq(t, want, h.usage)
	}
}

// A reason in every chunk is no end: a body that breaks off after a later one isn't whole.
func TestGeminiReasonInEveryChunkIsNoEnd(t *testing.T) {
	reset := iotest.ErrReader(&Error{Kind: KindTruncated, Err: errors.New("reset")})
	every := geminiEvents(geminiSays(`{"text":"a"}`, `"STOP"`), geminiSays(`{"text":"b"}`, `"STOP"`))
	h := listen(nativeStreamOf(providertest.Gemini, io.MultiReader(strings.NewReader(every), reset), Options{}))
	requireKind(t, h.err, KindTruncated, 0)
	last := geminiEvents(geminiSays(`{"text":"a"}`, ""), geminiSays(`{"text":"b"}`, `"STOP"`))
	h = listen(nativeStreamOf(providertest.Gemini, io.MultiReader(strings.NewReader(last), reset), Options{}))
	requireKind(t, h.err, KindNone, 0)
}

// An array cut before its end is truncated, wherever.
func TestGeminiArrayCutAnywhere(t *testing.T) {
	body := "[" + geminiSays(`{"text":"a"}`, `"STOP"`) + "\n,\r\n" + geminiSays(`{"text":"b"}`, `"STOP"`) + "]"
	for n := range body {
		h := listen(nativeStreamOf(providertest.Gemini, strings.NewReader(body[:n]), Options{}))
		requireKind(t, h.err, KindTruncated, 0)
	}
}

// The first element of an array is told before the second one came.
func TestGeminiArrayIsReadAsItComes(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go func() { _, _ = io.WriteString(out, "["+geminiSays(`{"text":"a"}`, "")) }()
	s := nativeStreamOf(providertest.Gemini, in, Options{})
	c, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, "a", gjson.GetBytes(c.Data, "choices.0.delta.content").Str)
}

func TestGeminiGoesOnForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		go func() {
			for range 3 {
				_, _ = io.WriteString(out, geminiEvents(geminiSays(`{"text":"a"}`, `"STOP"`)))
				time.Sleep(afterFinish - time.Second) //nolint:forbidigo // the bubble's time
			}
			_ = out.Close()
		}()
		h := listen(nativeStreamOf(providertest.Gemini, in, Options{}))
		requireKind(t, h.err, KindNone, 0)
		require.Equal(t, "aaa", h.text)
	})
}

func TestGeminiErrors(t *testing.T) {
	body := func(code int, status, message string) string {
		return sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, code, message, status)
	}
	tests := []struct {
		name   string
		status int
		body   string
		kind   Kind
		retry  time.Duration
	}{
		{"recorded: bad key", 400, string(nativeFile(t, "openai/gemini-07-err.json")), KindAuth, 0},
		{"recorded: quota of a minute", 429, string(nativeFile(t, "openai/gemini-08-err.json")), KindRateLimited, 48 * time.Second},
		{"quota of a day", 429, `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"30s"}]}}]`, KindQuota, 30 * time.Second},
		{"overloaded", 503, body(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), KindOverloaded, 0},
		{"late", 504, body(504, "DEADLINE_EXCEEDED", "Deadline expired"), KindTimeout, 0},
		{"internal", 500, body(500, "INTERNAL", "An internal error has occurred."), KindServerError, 0},
		{"cancelled over there", 499, body(499, "CANCELLED", "The operation was cancelled."), KindServerError, 0},
		{"denied", 403, body(403, "PERMISSION_DENIED", "Permission denied."), KindAuth, 0},
		{"not from here", 400, body(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), KindAuth, 0},
		{"no such model", 404, body(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta"), KindModelMissing, 0},
		{"too long", 400, body(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), KindContextTooLong, 0},
		{"not so much", 400, body(400, "INVALID_ARGUMENT", "it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive)."), KindUnsupported, 0},
		{"no such field", 400, body(400, "INVALID_ARGUMENT", `Invalid JSON payload received. Unknown name "min_p": Cannot find field.`), KindUnsupported, 0},
		{"no JSON beside tools", 400, body(400, "INVALID_ARGUMENT", "Function calling with a response mime type: 'application/json' is unsupported"), KindUnsupported, 0},
		{"no thoughtless answer", 400, body(400, "INVALID_ARGUMENT", "Budget 0 is invalid. This model only works in thinking mode."), KindUnsupported, 0},
		{"a mistake", 400, body(400, "INVALID_ARGUMENT", "Please ensure that function call turn comes immediately after a user turn."), KindBadRequest, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := nativeTest(t, providertest.Gemini, providertest.Behaviour{Status: tt.status, Body: tt.body})
			h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
			requireKind(t, h.err, tt.kind, tt.status)
			require.Equal(t, tt.retry, AsError(h.err).RetryAfter)
		})
	}
}

// FuzzGeminiStream checks what holds for every stream.
func FuzzGeminiStream(f *testing.F) {
	for _, r := range nativeRecordings() {
		if r.dialect() == providertest.Gemini {
			f.Add(nativeFile(f, r.name))
		}
	}
	f.Add([]byte("[" + geminiSays(`{"text":"a"}`, "") + "\n," + geminiSays(`{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}`, `"STOP"`) + "]"))
	f.Add([]byte(geminiSays(`{"text":"a","thought":true}`, "2")))
	f.Add([]byte(geminiEvents(geminiSays(`{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a[1].b","stringValue":"x","willContinue":true}]}}`, ""), geminiSays(``, "1"))))
	f.Add([]byte(geminiEvents(`{"promptFeedback":{"blockReason":"SAFETY"}}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		couldEnd := bytes.Contains(body, []byte("finishReason")) || bytes.Contains(body, []byte("candidates"))
		requireSound(t, nativeStreamOf(providertest.Gemini, bytes.NewReader(body), Options{}), couldEnd)
	})
}
