package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// Every failure, at each phase of a call, before every family of providers: what it is to the rest of Holdfast.

// families are the dialects that call somebody, each with the wire that its upstream speaks.
func families() map[string]providertest.Dialect {
	return map[string]providertest.Dialect{
		"openai": providertest.OpenAI, "azure": providertest.OpenAI, "dashscope": providertest.DashScope, "ollama": providertest.Ollama,
		"anthropic": providertest.Anthropic, "bedrock": providertest.Bedrock, "gemini": providertest.Gemini,
	}
}

// providerKey is the key of all providers here. Bodies and texts quote it, as real ones do.
const providerKey = "live.7Hq2bV9xK4mZ1pTz"

// phase is one way to fail.
type phase struct {
	name  string
	b     providertest.Behaviour
	kind  Kind
	token bool // text comes before the failure
	leave leaving
}

// leaving says when the caller's context ends, if it does.
type leaving uint8

const (
	stays       leaving = iota
	atHeaders           // the call has reached the provider
	beforeToken         // Stream has returned
	afterToken          // the first text came
)

var errLeft = errors.New("the caller's reason")

// phases are those that need no words of a family's own.
func phases() []phase {
	ends := providertest.Ends
	event := func(status int, chunks ...string) providertest.Behaviour {
		b := ends(providertest.EndErrorEvent, chunks...)
		b.Error = providertest.Failure{Status: status, Message: "it failed for " + providerKey}
		return b
	}
	body := event(500)
	body.End = providertest.EndErrorBody
	return []phase{
		{name: "dropped before the first byte", b: ends(providertest.EndDrop), kind: KindConnect},
		{name: "hang at headers", b: ends(providertest.EndHangHeaders), kind: KindCanceled, leave: atHeaders},
		{name: "hang before the first token", b: ends(providertest.EndHang), kind: KindCanceled, leave: beforeToken},
		{name: "hang in mid-stream", b: ends(providertest.EndHang, "a"), kind: KindCanceled, token: true, leave: afterToken},
		{name: "200 with an error in JSON", b: body, kind: KindServerError},
		{name: "200 with a page", b: ends(providertest.EndHTML), kind: KindMalformed},
		{name: "200 with nothing", b: providertest.Behaviour{NoRole: true, End: providertest.EndEOF}, kind: KindTruncated},
		{name: "200 with what is no protocol", b: providertest.Behaviour{Body: "SSH-2.0 " + providerKey + "\n\n"}, kind: KindMalformed},
		{name: "error event before the first token", b: event(500), kind: KindServerError},
		{name: "error event after it", b: event(500, "a"), kind: KindServerError, token: true},
		{name: "limit as an event before the first token", b: event(429), kind: KindRateLimited},
		{name: "overload as an event after it", b: event(503, "a"), kind: KindOverloaded, token: true},
		{name: "cut before the first token", b: ends(providertest.EndCut), kind: KindTruncated},
		{name: "cut after it", b: ends(providertest.EndCut, "a"), kind: KindTruncated, token: true},
		{name: "clean end without the marker", b: ends(providertest.EndEOF, "a"), kind: KindTruncated, token: true},
		{name: "clean end before the first token", b: ends(providertest.EndEOF), kind: KindTruncated},
		{name: "empty completion", b: ends(providertest.EndEmpty), kind: KindEmpty},
	}
}

// inner is what an error inside a 200 is, where a family says less than the phase: Ollama's are a text alone, without
// status or code.
func inner(family string, p phase) Kind {
	if family == "ollama" && p.b.Error.Status != 0 {
		return KindServerError
	}
	return p.kind
}

// innerStatus is the status that an error inside a 200 tells: OpenAI's and Ollama's have none, Anthropic's and
// Bedrock's is that of the type, Gemini's stands in it, DashScope's in a comment of the event.
func innerStatus(family string, p phase) int {
	status := p.b.Error.Status
	switch {
	case family == "openai" || family == "azure" || family == "ollama":
		return 0
	case family == "dashscope" && p.b.End == providertest.EndErrorBody:
		return 0
	case family == "anthropic" && status == 503:
		return 529
	}
	return status
}

func TestFailuresByPhase(t *testing.T) {
	for family, wire := range families() {
		for _, p := range phases() {
			t.Run(family+" "+p.name, func(t *testing.T) {
				if wire == providertest.OpenAI && p.kind == KindOverloaded {
					p.b.Error.Code = "slow_down" // it has no status to tell it by
				}
				u := providertest.Start(t, wire, p.b)
				text, err := callUntil(t, family, u, p.leave)
				require.Equal(t, p.token, text != "", "text before the failure")
				requireFailure(t, err, inner(family, p), innerStatus(family, p), 0)
				require.Equal(t, p.leave != stays, errors.Is(err, errLeft), "%v", err)
				require.Equal(t, 1, u.Calls())
			})
		}
		t.Run(family+" connection refused", func(t *testing.T) {
			gone := httptest.NewServer(http.NotFoundHandler())
			gone.Close()
			_, err := callUntil(t, family, &providertest.Upstream{URL: gone.URL}, stays)
			requireFailure(t, err, KindConnect, 0, 0)
		})
	}
}

// callUntil makes one call, leaves it when it is to, and gives its text and how it ended.
func callUntil(t *testing.T, family string, u *providertest.Upstream, when leaving) (string, error) {
	tr := newTransport()
	t.Cleanup(tr.CloseIdleConnections)
	p, err := New(Settings{Name: "mine", Dialect: family, BaseURL: u.URL, APIKey: providerKey, Region: "eu-west-1", Transport: tr})
	require.NoError(t, err)
	ctx, leave := context.WithCancelCause(t.Context())
	defer leave(nil)
	if when == atHeaders {
		left := make(chan struct{})
		defer func() { <-left }()
		go func() {
			defer close(left)
			u.Await(t, "the call", func(s providertest.Seen) bool { return s.Calls == 1 })
			leave(errLeft)
		}()
	}
	s, err := p.Stream(ctx, nativeCall(t, nativeHi))
	if err != nil {
		return "", err
	}
	if when == beforeToken {
		leave(errLeft)
	}
	h := listen(&leaver{Stream: s, leave: func() {
		if when == afterToken {
			leave(errLeft)
		}
	}})
	return h.text, h.err
}

// leaver calls leave at the first text.
type leaver struct {
	Stream
	leave func()
}

func (l *leaver) Next() (Chunk, error) {
	c, err := l.Stream.Next()
	if c.Signal == SignalContent {
		l.leave()
	}
	return c, err
}

// requireFailure asserts what an error says, and that it doesn't tell the key.
func requireFailure(t *testing.T, err error, kind Kind, status int, wait time.Duration) {
	t.Helper()
	require.Error(t, err)
	require.NotEqual(t, io.EOF, err, "a whole answer")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, kind.String(), e.Kind.String(), "%+v", e)
	require.Equal(t, status, e.Status, "%+v", e)
	require.Equal(t, wait, e.RetryAfter)
	require.NotContains(t, fmt.Sprint(e.Message, e.Code, e.Param, e.Error()), providerKey)
}

// refusalCase is an error status, by what it means. Its status and kind are the usual ones; a family may have its own.
type refusalCase struct {
	name   string
	status int
	kind   Kind
	header string // Retry-After
	wait   time.Duration
}

func refusals() []refusalCase {
	return []refusalCase{
		{name: "bad request", status: 400, kind: KindBadRequest},
		{name: "key refused", status: 401, kind: KindAuth},
		{name: "quota", status: 402, kind: KindQuota},
		{name: "no such model", status: 404, kind: KindModelMissing},
		{name: "upstream timeout", status: 408, kind: KindTimeout},
		{name: "too large", status: 413, kind: KindContextTooLong},
		{name: "too long", status: 400, kind: KindContextTooLong},
		{name: "limit", status: 429, kind: KindRateLimited},
		{name: "limit with Retry-After", status: 429, kind: KindRateLimited, header: "7", wait: 7 * time.Second},
		{name: "fault", status: 500, kind: KindServerError, header: "7"},
		{name: "bad gateway", status: 502, kind: KindServerError},
		{name: "overload", status: 503, kind: KindOverloaded, header: "7", wait: 7 * time.Second},
		{name: "gateway timeout", status: 504, kind: KindTimeout},
		{name: "overload, 529", status: 529, kind: KindOverloaded, header: "7", wait: 7 * time.Second},
	}
}

// wording is a family's own way to say something: its body, and its status and kind where they are not the usual ones.
type wording struct {
	body   string
	status int
	kind   Kind
}

// wordings are the bodies of each family, $KEY standing for the key. What is not here is said by a gateway before the
// family: with the usual status, and a page.
func wordings() map[string]map[string]wording {
	openai := func(kind, code, message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, code)
	}
	azure := func(code, message string) string {
		return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, message)
	}
	dash := func(code, message string) string {
		return fmt.Sprintf(`{"code":%q,"message":%q,"request_id":"r"}`, code, message)
	}
	ollama := func(message string) string { return fmt.Sprintf(`{"error":%q}`, message) }
	anthropic := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"r"}`, kind, message)
	}
	bedrock := func(kind, message string) string {
		return fmt.Sprintf(`{"__type":"com.amazon.coral.service#%s","message":%q}`, kind, message)
	}
	gemini := func(code int, status, message, details string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"status":%q,"message":%q,"details":[%s]}}`, code, status, message, details)
	}
	return map[string]map[string]wording{
		"openai": {
			"bad request":            {body: openai("invalid_request_error", "decimal_above_max_value", "Invalid 'temperature' of $KEY.")},
			"key refused":            {body: openai("invalid_request_error", "invalid_api_key", "Incorrect API key provided: $KEY.")},
			"quota":                  {body: openai("insufficient_quota", "insufficient_quota", "You exceeded your current quota, $KEY."), status: 429},
			"no such model":          {body: openai("invalid_request_error", "model_not_found", "The model `x` does not exist or $KEY has no access.")},
			"too long":               {body: openai("invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens, $KEY.")},
			"limit":                  {body: openai("requests", "rate_limit_exceeded", "Rate limit reached for $KEY on requests per min.")},
			"limit with Retry-After": {body: openai("tokens", "rate_limit_exceeded", "Rate limit reached for $KEY.")},
			"fault":                  {body: openai("server_error", "", "The server had an error, $KEY.")},
			"overload":               {body: openai("server_error", "slow_down", "The engine is overloaded, $KEY.")},
		},
		"azure": {
			"bad request":            {body: azure("BadRequest", "Invalid value for 'temperature' of $KEY.")},
			"key refused":            {body: azure("401", "Access denied due to invalid subscription key $KEY.")},
			"quota":                  {body: azure("insufficient_quota", "You exceeded your current quota, $KEY."), status: 429},
			"no such model":          {body: azure("DeploymentNotFound", "The API deployment of $KEY does not exist.")},
			"upstream timeout":       {body: azure("Timeout", "The operation was timeout, $KEY.")},
			"too long":               {body: azure("context_length_exceeded", "This model's maximum context length is 8192 tokens, $KEY.")},
			"limit":                  {body: azure("RateLimitReached", "Requests have exceeded the call rate limit of $KEY.")},
			"limit with Retry-After": {body: azure("429", "Requests have exceeded the token rate limit of $KEY.")},
			"fault":                  {body: azure("InternalServerError", "Backend returned unexpected response, $KEY.")},
			"overload":               {body: azure("ServiceUnavailable", "The service is temporarily unable, $KEY.")},
		},
		"dashscope": {
			"bad request":            {body: dash("InvalidParameter", "temperature should be in [0.0, 2.0), $KEY")},
			"key refused":            {body: dash("InvalidApiKey", "Invalid API-key provided: $KEY")},
			"quota":                  {body: dash("Arrearage", "Access denied, please make sure your account $KEY is in good standing."), status: 400},
			"no such model":          {body: dash("ModelNotFound", "Model can not be found for $KEY.")},
			"upstream timeout":       {body: dash("RequestTimeOut", "Request timed out, $KEY.")},
			"too long":               {body: dash("InvalidParameter", "Range of input length should be [1, 30720], $KEY")},
			"limit":                  {body: dash("Throttling.RateQuota", "Requests rate limit exceeded, $KEY.")},
			"limit with Retry-After": {body: dash("Throttling.AllocationQuota", "Allocated quota exceeded for $KEY.")},
			"fault":                  {body: dash("InternalError", "An internal error has occurred, $KEY.")},
			"overload":               {body: dash("ModelUnavailable", "Model $KEY is unavailable, please try again later.")},
		},
		"ollama": {
			"bad request":      {body: ollama("invalid options: temperature of $KEY")},
			"key refused":      {body: `{"error":{"message":"Unauthorized $KEY","type":"api_error"}}`},
			"no such model":    {body: ollama("model $KEY not found, try pulling it first")},
			"too long":         {body: ollama("prompt too long; exceeded max context length by 12 tokens, $KEY")},
			"fault":            {body: ollama("llama runner process has terminated: $KEY")},
			"bad gateway":      {body: ollama("upstream of $KEY unreachable")},
			"overload":         {body: ollama("server busy, please try again. maximum pending requests exceeded $KEY")},
			"limit":            {body: ollama("too many concurrent requests of $KEY")},
			"upstream timeout": {body: ollama("$KEY took too long")},
		},
		"anthropic": {
			"bad request":            {body: anthropic("invalid_request_error", "temperature: range: -1..1, $KEY")},
			"key refused":            {body: anthropic("authentication_error", "invalid x-api-key $KEY")},
			"quota":                  {body: anthropic("invalid_request_error", "Your credit balance is too low, $KEY"), status: 400},
			"no such model":          {body: anthropic("not_found_error", "model: x of $KEY")},
			"too large":              {body: anthropic("request_too_large", "Request exceeds the maximum size, $KEY")},
			"too long":               {body: anthropic("invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum, $KEY")},
			"limit":                  {body: anthropic("rate_limit_error", "This request would exceed the rate limit of $KEY")},
			"limit with Retry-After": {body: anthropic("rate_limit_error", "Number of requests of $KEY")},
			"fault":                  {body: anthropic("api_error", "Internal server error, $KEY")},
			"gateway timeout":        {body: anthropic("timeout_error", "Request timed out, $KEY")},
			"overload, 529":          {body: anthropic("overloaded_error", "Overloaded, $KEY")},
		},
		"bedrock": {
			"bad request":            {body: bedrock("ValidationException", "Malformed input request of $KEY")},
			"key refused":            {body: bedrock("UnrecognizedClientException", "The security token $KEY is invalid."), status: 403},
			"quota":                  {body: bedrock("ServiceQuotaExceededException", "The quota of $KEY is used up."), status: 400},
			"no such model":          {body: bedrock("ValidationException", "The provided model identifier is invalid, $KEY."), status: 400},
			"upstream timeout":       {body: bedrock("ModelTimeoutException", "The model of $KEY took too long.")},
			"too long":               {body: bedrock("ValidationException", "Input Tokens Exceeded: $KEY")},
			"limit":                  {body: bedrock("ThrottlingException", "Too many requests of $KEY")},
			"limit with Retry-After": {body: bedrock("ModelNotReadyException", "The model is not ready for $KEY"), kind: KindLoading},
			"fault":                  {body: bedrock("InternalServerException", "Internal failure, $KEY")},
			"bad gateway":            {body: bedrock("ModelErrorException", "The model of $KEY failed"), status: 424},
			"overload":               {body: bedrock("ServiceUnavailableException", "$KEY: try again")},
		},
		"gemini": {
			"bad request":            {body: gemini(400, "INVALID_ARGUMENT", "Invalid value at 'generation_config.temperature', $KEY", "")},
			"key refused":            {body: gemini(400, "INVALID_ARGUMENT", "API key $KEY not valid.", `{"reason":"API_KEY_INVALID"}`), status: 400},
			"quota":                  {body: gemini(429, "RESOURCE_EXHAUSTED", "You exceeded the quota of $KEY.", `{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}`), status: 429},
			"no such model":          {body: gemini(404, "NOT_FOUND", "models/x is not found for $KEY", "")},
			"too long":               {body: gemini(400, "INVALID_ARGUMENT", "The input token count (2) exceeds the maximum number of tokens allowed (1), $KEY.", "")},
			"limit":                  {body: gemini(429, "RESOURCE_EXHAUSTED", "You exceeded the quota of $KEY.", `{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]}`)},
			"limit with Retry-After": {body: gemini(429, "RESOURCE_EXHAUSTED", "Resource of $KEY has been exhausted.", "")},
			"fault":                  {body: gemini(500, "INTERNAL", "An internal error has occurred, $KEY.", "")},
			"overload":               {body: gemini(503, "UNAVAILABLE", "The model is overloaded, $KEY.", "")},
			"gateway timeout":        {body: gemini(504, "DEADLINE_EXCEEDED", "Deadline of $KEY expired.", "")},
		},
	}
}

func TestFailuresByStatus(t *testing.T) {
	all := wordings()
	for family, wire := range families() {
		for _, r := range refusals() {
			t.Run(family+" "+r.name, func(t *testing.T) {
				words, own := all[family][r.name]
				delete(all[family], r.name)
				if !own {
					words.body = "<html><body><h1>Request of $KEY failed</h1></body></html>"
				}
				if own && words.status != 0 {
					r.status = words.status
				}
				if words.kind != KindNone {
					r.kind = words.kind
				}
				b := providertest.Behaviour{Status: r.status, Body: strings.ReplaceAll(words.body, "$KEY", providerKey)}
				if r.header != "" {
					b.Headers = map[string]string{"Retry-After": r.header}
				}
				u := providertest.Start(t, wire, b)
				_, err := callUntil(t, family, u, stays)
				requireFailure(t, err, r.kind, r.status, r.wait)
				require.Equal(t, 1, u.Calls())
			})
		}
		require.Empty(t, all[family], "words for no refusal")
	}
}
