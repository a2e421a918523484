package providers

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   Kind
		shown  int // the status of the error, where it isn't the response's
		code   string
	}{
		// OpenAI
		{"wrong key", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, KindAuth, 0, "invalid_api_key"},
		{"no such model", 404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, KindModelMissing, 0, "model_not_found"},
		{"too long", 400, `{"error":{"message":"x","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, KindContextTooLong, 0, "context_length_exceeded"},
		{"unsupported parameter", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens'","type":"invalid_request_error","code":"unsupported_parameter"}}`, KindUnsupported, 0, "unsupported_parameter"},
		{"a caller's mistake", 400, `{"error":{"message":"bad value","type":"invalid_request_error","param":"x","code":null}}`, KindBadRequest, 0, "invalid_request_error"},
		{"window of time", 429, `{"error":{"message":"Rate limit reached on tokens per min","type":"tokens","code":"rate_limit_exceeded"}}`, KindRateLimited, 0, "rate_limit_exceeded"},
		{"quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, KindQuota, 0, "insufficient_quota"},
		{"spend limit", 429, `{"error":{"message":"x","type":"insufficient_quota","code":"project_spend_limit_exceeded"}}`, KindQuota, 0, "project_spend_limit_exceeded"},
		{"daily cap", 429, `{"error":{"message":"Rate limit reached on requests per day (RPD): Limit 200","type":"requests","code":"rate_limit_exceeded"}}`, KindQuota, 0, "rate_limit_exceeded"},
		{"slow down", 503, `{"error":{"message":"Slow down","code":"slow_down"}}`, KindOverloaded, 0, "slow_down"},
		{"slow down as 429", 429, `{"error":{"message":"Slow down","code":"slow_down"}}`, KindOverloaded, 0, "slow_down"},
		{"server error", 500, `{"error":{"message":"The server had an error","type":"server_error"}}`, KindServerError, 0, "server_error"},
		{"in a stream", 0, `{"error":{"message":"The server had an error","type":"server_error"}}`, KindServerError, 0, "server_error"},
		{"a generic type under 429", 429, `{"error":{"message":"no","type":"invalid_request_error"}}`, KindRateLimited, 0, "invalid_request_error"},
		{"a generic type under 500", 500, `{"error":{"message":"no","type":"invalid_request_error"}}`, KindServerError, 0, "invalid_request_error"},
		{"a generic type under 400", 400, `{"error":{"message":"no","type":"server_error"}}`, KindBadRequest, 0, "server_error"},
		{"a generic type alone", 0, `{"error":{"message":"no","type":"invalid_request_error"}}`, KindBadRequest, 0, "invalid_request_error"},

		// Azure
		{"Azure: key", 401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key"}}`, KindAuth, 0, "401"},
		{"Azure: window", 429, `{"error":{"code":"RateLimitReached","message":"x","details":"y"}}`, KindRateLimited, 0, "RateLimitReached"},
		{"Azure: deployment", 404, `{"error":{"code":"DeploymentNotFound","message":"x"}}`, KindModelMissing, 0, "DeploymentNotFound"},
		{"Azure: filter", 400, `{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, KindContentPolicy, 0, "content_filter"},

		// Anthropic
		{"Anthropic: too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 3333404 tokens > 200000 maximum"}}`, KindContextTooLong, 0, "invalid_request_error"},
		{"Anthropic: credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API"}}`, KindQuota, 0, "invalid_request_error"},
		{"Anthropic: overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, KindOverloaded, 0, "overloaded_error"},
		{"Anthropic: overloaded in a stream", 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, KindOverloaded, 0, "overloaded_error"},
		{"Anthropic: too large", 413, `<html>cloudflare</html>`, KindContextTooLong, 0, ""},

		// DashScope
		{"DashScope: key", 401, `{"code":"InvalidApiKey","message":"Invalid API-key provided.","request_id":"r"}`, KindAuth, 0, "InvalidApiKey"},
		{"DashScope: arrears", 400, `{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}`, KindQuota, 0, "Arrearage"},
		{"DashScope: window", 429, `{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded"}`, KindRateLimited, 0, "Throttling.RateQuota"},
		{"DashScope: allocation", 429, `{"code":"Throttling.AllocationQuota","message":"Allocated quota exceeded"}`, KindRateLimited, 0, "Throttling.AllocationQuota"},
		{"DashScope: free allocation", 429, `{"code":"Throttling.AllocationQuota","message":"Free allocated quota exceeded."}`, KindQuota, 0, "Throttling.AllocationQuota"},
		{"DashScope: free tier", 403, `{"code":"AllocationQuota.FreeTierOnly","message":"The free tier of the model has been exhausted."}`, KindQuota, 0, "AllocationQuota.FreeTierOnly"},
		{"DashScope: content", 400, `{"code":"DataInspectionFailed","message":"Input data may contain inappropriate content."}`, KindContentPolicy, 0, "DataInspectionFailed"},
		{"DashScope: content, newer", 400, `{"error":{"message":"<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content.","type":"invalid_request_error","code":"data_inspection_failed"}}`, KindContentPolicy, 0, "data_inspection_failed"},
		{"DashScope: too long", 400, `{"code":"InvalidParameter","message":"Range of input length should be [1, 30720]"}`, KindContextTooLong, 0, "InvalidParameter"},
		{"DashScope: thinking", 400, `{"code":"InvalidParameter","message":"parameter.enable_thinking must be set to false for non-streaming calls"}`, KindUnsupported, 0, "InvalidParameter"},
		{"DashScope: a mistake", 400, `{"code":"InvalidParameter","message":"temperature must be in [0, 2)"}`, KindBadRequest, 0, "InvalidParameter"},
		{"DashScope: serving", 500, `{"code":"InternalError.Algo.ModelServingError","message":"<5000202> x","status_code":503}`, KindOverloaded, 0, "InternalError.Algo.ModelServingError"},
		{"DashScope: internal", 500, `{"code":"InternalError.Algo","message":"An internal error has occurred"}`, KindServerError, 0, "InternalError.Algo"},

		// SiliconFlow, DeepSeek
		{"SiliconFlow: model", 400, `{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}`, KindModelMissing, 0, "20012"},
		{"SiliconFlow: balance", 403, `{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}`, KindQuota, 0, "30001"},
		{"SiliconFlow: real name", 403, `{"code":30003,"message":"Please complete real-name verification","data":null}`, KindAuth, 0, "30003"},
		{"SiliconFlow: RPM", 429, `{"message":"Request was rejected due to rate limiting. Details:RPM limit reached.","data":null}`, KindRateLimited, 0, ""},
		{"SiliconFlow: TPD", 429, `{"message":"Request was rejected due to rate limiting. Details:TPD limit reached.","data":null}`, KindQuota, 0, ""},
		{"DeepSeek: balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, KindQuota, 0, "invalid_request_error"},
		{"DeepSeek: too long", 400, `{"error":{"message":"This model's maximum context length is 1048565 tokens","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, KindContextTooLong, 0, "invalid_request_error"},
		{"DeepSeek: a mistake", 422, `{"error":{"message":"Failed to deserialize","type":"invalid_request_error"}}`, KindBadRequest, 0, "invalid_request_error"},

		// Google
		{"Google: key", 400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, KindAuth, 0, "INVALID_ARGUMENT"},
		{"Google: by minute", 429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]}]}}`, KindRateLimited, 0, "RESOURCE_EXHAUSTED"},
		{"Google: by day", 429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}`, KindQuota, 0, "RESOURCE_EXHAUSTED"},
		{"Google: too long", 400, `{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed","status":"INVALID_ARGUMENT"}}`, KindContextTooLong, 0, "INVALID_ARGUMENT"},
		{"Google: in an array", 503, `[{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}]`, KindOverloaded, 0, "UNAVAILABLE"},

		// OpenRouter, Groq, xAI, Mistral, Cohere
		{"OpenRouter: credits", 402, `{"error":{"message":"This request requires more credits","code":402},"user_id":"u"}`, KindQuota, 0, "402"},
		{"OpenRouter: moderation", 403, `{"error":{"message":"Your chosen model requires moderation","code":403,"metadata":{"reasons":["violence"],"flagged_input":"x"}}}`, KindContentPolicy, 0, "403"},
		{"OpenRouter: in a stream", 0, `{"error":{"code":502,"message":"Provider returned error"},"choices":[]}`, KindServerError, 502, "502"},
		{"OpenRouter: what is behind", 0, `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"is temporarily rate-limited upstream"}}}`, KindRateLimited, 429, "429"},
		{"OpenRouter: no model with tools", 404, `{"error":{"message":"No endpoints found that support tool use","code":404}}`, KindUnsupported, 0, "404"},
		{"Groq: tool", 0, `{"error":{"message":"Tool call validation failed","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"x","status_code":400}}`, KindToolFailed, 400, "tool_use_failed"},
		{"xAI: key", 400, `{"code":"invalid-argument","error":"Incorrect API key provided: sk***23"}`, KindAuth, 0, "invalid-argument"},
		{"Mistral: key", 401, `{"detail":"Unauthorized"}`, KindAuth, 0, ""},
		{"Mistral: fields", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}`, KindUnsupported, 0, "extra_forbidden"},
		{"Cohere: key", 401, `{"id":"x","message":"Incorrect API key provided"}`, KindAuth, 0, ""},

		// Ollama, vLLM, llama.cpp, llama-box
		{"Ollama: model", 404, `{"error":"model \"x\" not found, try pulling it first"}`, KindModelMissing, 0, ""},
		{"Ollama: tools", 400, `{"error":"registry.ollama.ai/library/x does not support tools"}`, KindUnsupported, 0, ""},
		{"Ollama: in a stream", 0, `{"error":"llama runner process has terminated"}`, KindServerError, 0, ""},
		{"vLLM: too long", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","param":null,"code":400}`, KindContextTooLong, 0, "BadRequestError"},
		{"SGLang: too long", 400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequest","param":null,"code":400}`, KindContextTooLong, 0, "BadRequest"},
		{"SGLang: too long in a stream", 0, `{"error":{"object":"error","message":"Requested token count exceeds the model's maximum context length of 8192 tokens.","type":"BadRequestError","code":400}}`, KindContextTooLong, 400, "BadRequestError"},
		{"vLLM: in a stream", 0, `{"error":{"message":"x","type":"InternalServerError","code":500}}`, KindServerError, 500, "InternalServerError"},
		{"llama.cpp: loading", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, KindLoading, 0, "unavailable_error"},
		{"llama.cpp: too long", 0, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, KindContextTooLong, 400, "exceed_context_size_error"},
		{"llama-box: error line", 0, `{"detail":"x","error":{"message":"context shift is disabled"}}`, KindServerError, 0, ""},

		// Bedrock, Moonshot, z.ai, Volcengine
		{"Bedrock: model", 400, `{"message":"The provided model identifier is invalid."}`, KindModelMissing, 0, ""},
		{"Bedrock: key", 403, `{"message":"The security token included in the request is invalid."}`, KindAuth, 0, ""},
		{"Bedrock: too long", 400, `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length."}`, KindContextTooLong, 0, ""},
		{"Moonshot: overloaded", 429, `{"error":{"type":"engine_overloaded_error","message":"The engine is currently overloaded"}}`, KindOverloaded, 0, "engine_overloaded_error"},
		{"Moonshot: quota", 429, `{"error":{"type":"exceeded_current_quota_error","message":"x"}}`, KindQuota, 0, "exceeded_current_quota_error"},
		{"Moonshot: risk", 400, `{"error":{"type":"content_filter","message":"The request was rejected because it was considered high risk"}}`, KindContentPolicy, 0, "content_filter"},
		{"Moonshot: too long", 400, `{"error":{"type":"invalid_request_error","message":"Invalid request: Your request exceeded model token limit: 8192"}}`, KindContextTooLong, 0, "invalid_request_error"},
		{"z.ai: arrears", 429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package."}}`, KindQuota, 0, "1113"},
		{"z.ai: window", 429, `{"error":{"code":"1302","message":"High concurrency usage of this API"}}`, KindRateLimited, 0, "1302"},
		{"z.ai: busy", 429, `{"error":{"code":"1305","message":"x"}}`, KindOverloaded, 0, "1305"},
		{"z.ai: sensitive", 400, `{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}`, KindContentPolicy, 0, "1301"},
		{"Volcengine: risk", 400, `{"error":{"code":"InputTextRiskDetection","message":"x"}}`, KindContentPolicy, 0, "InputTextRiskDetection"},
		{"Volcengine: model", 404, `{"error":{"code":"InvalidEndpointOrModel.NotFound","message":"x"}}`, KindModelMissing, 0, "InvalidEndpointOrModel.NotFound"},
		{"Volcengine: closed", 400, `{"error":{"code":"InvalidEndpoint.ClosedEndpoint","message":"x"}}`, KindModelMissing, 0, "InvalidEndpoint.ClosedEndpoint"},
		{"Volcengine: overdue", 403, `{"error":{"code":"AccountOverdueError","message":"x"}}`, KindQuota, 0, "AccountOverdueError"},

		// relays
		{"JSON in a string", 500, `{"error":"{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"x\"}}"}`, KindQuota, 0, "insufficient_quota"},
		{"a real status behind a 400", 400, `{"error":{"code":429,"message":"upstream"}}`, KindRateLimited, 0, "429"},
		{"an event under a status", 400, "event:error\n:HTTP_STATUS/400\ndata:{\"code\":\"DataInspectionFailed\",\"message\":\"x\"}\n\n", KindContentPolicy, 0, "DataInspectionFailed"},
		{"success false", 400, `{"success":false,"code":"PRE-006","message":"x","detailMessage":"y"}`, KindBadRequest, 0, "PRE-006"},
		{"plain text", 404, "Not Found", KindModelMissing, 0, ""},
		{"a page with words", 502, "<html>the model is overloaded, rate limit</html>", KindServerError, 0, ""},
		{"nothing", 504, "", KindTimeout, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := classify(tt.status, nil, []byte(tt.body))
			require.Equal(t, tt.want.String(), e.Kind.String())
			shown := tt.shown
			if shown == 0 && tt.status != 200 {
				shown = tt.status
			}
			require.Equal(t, shown, e.Status)
			require.Equal(t, tt.code, e.Code)
		})
	}
}

// The last paragraph of the contract's table: where content names no kind, the status decides.
func TestClassifyByStatus(t *testing.T) {
	for status, want := range map[int]Kind{
		400: KindBadRequest, 401: KindAuth, 402: KindQuota, 403: KindAuth, 404: KindModelMissing, 405: KindBadRequest,
		408: KindTimeout, 409: KindBadRequest, 413: KindContextTooLong, 422: KindBadRequest, 429: KindRateLimited,
		499: KindBadRequest, 500: KindServerError, 501: KindServerError, 502: KindServerError, 503: KindOverloaded,
		504: KindTimeout, 520: KindServerError, 524: KindServerError, 529: KindOverloaded, 599: KindServerError,
	} {
		for _, body := range []string{"", "x", "<html>", `{"error":{"message":"x","type":"server_error","code":null}}`, `{"error":{"message":"x","type":"invalid_request_error"}}`} {
			e := classify(status, nil, []byte(body))
			require.Equal(t, want.String(), e.Kind.String(), "%d %s", status, body)
			require.Equal(t, status, e.Status)
		}
	}
}

func TestClassifyRecordedErrors(t *testing.T) {
	for file, want := range map[string]struct {
		status int
		kind   Kind
	}{
		"openai-chat-08-err.json":      {401, KindAuth},
		"openai-chat-09-err.json":      {404, KindModelMissing},
		"azure-06-err.json":            {401, KindAuth},
		"anthropic-09-err.json":        {400, KindContextTooLong},
		"gemini-07-err.json":           {400, KindAuth},
		"gemini-08-err.json":           {429, KindRateLimited},
		"bedrock-converse-08-err.json": {400, KindModelMissing},
		"bedrock-converse-09-err.json": {403, KindAuth},
		"deepseek-07-err.json":         {401, KindAuth},
		"ollama-v1-03-err.json":        {401, KindAuth},
		"cohere-01-err.json":           {401, KindAuth},
	} {
		body, err := os.ReadFile("testdata/openai/" + file)
		require.NoError(t, err)
		e := classify(want.status, nil, body)
		require.Equal(t, want.kind.String(), e.Kind.String(), file)
		require.Equal(t, want.status, e.Status, file)
	}
}

// What a caller wrote may come back in a message, and must not make the failure one of our account.
func TestClassifyIgnoresWhatIsQuoted(t *testing.T) {
	for _, text := range []string{
		"Invalid value: 'rate limit'. Supported values are: 'auto'.",
		"Invalid role \"incorrect api key provided\"",
		"Unexpected `insufficient balance` in messages",
		"expected one of [\"a\"], got \"the model is overloaded\"",
	} {
		e := classify(400, nil, []byte(`{"error":{"message":`+string(appendString(nil, text))+`}}`))
		require.Equal(t, KindBadRequest.String(), e.Kind.String(), text)
	}
}

func TestClassifyAmazonHeader(t *testing.T) {
	h := http.Header{"X-Amzn-Errortype": {"ThrottlingException:http://internal.amazon.com/coral/"}}
	require.Equal(t, KindRateLimited, classify(400, h, []byte(`{"message":"slow"}`)).Kind)
}

func TestRetryAfter(t *testing.T) {
	date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	google := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"48.5s"}]}}`
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   time.Duration
	}{
		{"seconds", 429, http.Header{"Retry-After": {"7"}}, "", 7 * time.Second},
		{"a fraction", 503, http.Header{"Retry-After": {"0.25"}}, "", 250 * time.Millisecond},
		{"milliseconds win", 429, http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"1500"}}, "", 1500 * time.Millisecond},
		{"no milliseconds", 429, http.Header{"Retry-After": {"1"}, "Retry-After-Ms": {"0"}}, "", time.Second},
		{"date by the server's clock", 529, http.Header{"Retry-After": {date.Add(time.Minute).Format(http.TimeFormat)}, "Date": {date.Format(http.TimeFormat)}}, "", time.Minute},
		{"a date that is past", 429, http.Header{"Retry-After": {date.Format(http.TimeFormat)}}, "", 0},
		{"Google's", 429, nil, google, 48500 * time.Millisecond},
		{"Google's inside a 200", 0, nil, google, 48500 * time.Millisecond},
		{"huge", 429, http.Header{"Retry-After": {"1e300"}}, "", maxRetryAfter},
		{"negative", 429, http.Header{"Retry-After": {"-5"}}, "", 0},
		{"nonsense", 429, http.Header{"Retry-After": {"soon"}}, "", 0},
		{"no number", 429, http.Header{"Retry-After": {"NaN"}}, "", 0},
		{"on another status", 500, http.Header{"Retry-After": {"7"}}, "", 0},
		{"on a 200", 0, http.Header{"Retry-After": {"7"}}, `{"error":"x"}`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, classify(tt.status, tt.header, []byte(tt.body)).RetryAfter)
		})
	}
}

func TestCleanMessage(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing to hide", "Invalid value for 'user_messages': must alternate.", "Invalid value for 'user_messages': must alternate."},
		{"key", "key sk-proj-abc123DEF456 is wrong", "key [removed] is wrong"},
		{"masked key", "Incorrect API key provided: test_ope*******_key. See docs.", "Incorrect API key provided: [removed] See docs."},
		{"masked key by its word", "Your api key: ****-key is invalid", "Your api key: [removed] is invalid"},
		{"organization", "for gpt-4o in organization org-AbC123456 on tokens", "for gpt-4o in organization [removed] on tokens"},
		{"account by its word", "account_id=my-account-x is closed", "account_id=[removed] is closed"},
		{"bearer", "got Bearer abcdefghijk", "got [removed]"},
		{"Google's", "AIzaSyA1234567890abcdef is not valid", "[removed] is not valid"},
		{"Amazon's", "arn:aws:bedrock:us-east-1:123456789012:model/x denied", "[removed] denied"},
		{"account number", "account 123456789012 is closed", "account [removed] is closed"},
		{"big numbers stay", "max is 9223372036854775807", "max is 9223372036854775807"},
		{"mail", "ask me@example.com", "ask [removed]"},
		{"uuid", "project 123e4567-e89b-12d3-a456-426614174000", "project [removed]"},
		{"control characters", "a\x00\x1b[31mb", "a[31mb"},
		{"1 KB at most", strings.Repeat("é", 1000), strings.Repeat("é", 512)},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, cleanMessage(tt.in)) })
	}
	for in, want := range map[string]string{
		"model_not_found": "model_not_found", "Throttling.RateQuota": "Throttling.RateQuota", "a b": "", "sk-abcdef123456": "",
		strings.Repeat("x", 65): "",
	} {
		require.Equal(t, want, cleanCode(in))
	}
	require.Equal(t, "messages[0].content", cleanParam("messages[0].content"))
	require.Empty(t, cleanParam("<script>"))
}

// Whatever comes, classify gives a kind, a short message and a code fit for a log.
func FuzzClassify(f *testing.F) {
	f.Add(400, []byte(`{"error":{"message":"x","code":1,"details":[{}],"metadata":{"reasons":[]}}}`))
	f.Add(0, []byte("event: error\ndata: [{\"error\":\"{\\\"error\\\":{}}\"}]\n\n"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := classify(status, http.Header{}, body)
		require.NotEqual(t, KindNone, e.Kind)
		require.LessOrEqual(t, len(e.Message), maxMessage)
		require.LessOrEqual(t, len(e.Code), maxCode)
	})
}

// A key of a usual shape never gets through, wherever in the text it stands.
func TestCleanMessageProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := "sk-" + rapid.StringMatching(`[A-Za-z0-9]{20,48}`).Draw(t, "key")
		before := rapid.StringMatching(`([a-z ]{0,20}[ :"'])?`).Draw(t, "before")
		require.NotContains(t, cleanMessage(before+key+" after"), key[3:])
	})
}
