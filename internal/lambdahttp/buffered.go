package lambdahttp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"unicode/utf8"
)

const (
	maxAnswer   = 5_500_000 // bytes of a body that Buffered holds
	maxEnvelope = 6 << 20   // what Lambda takes of a buffered answer
)

// Envelope is one whole answer as Function URLs, HTTP APIs and (payload 1.0) REST APIs read it. These refuse fields they
// don't know, so only one of Cookies and MultiValueHeaders is ever set.
type Envelope struct {
	StatusCode        int                 `json:"statusCode"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// Whole is an [Envelope] on its way to Lambda: aws-lambda-go sends what Read gives, and calls Close afterwards, which
// is when [AfterResponse]'s work runs.
type Whole struct {
	*bytes.Reader
	end func()
}

// ContentType tells aws-lambda-go what it sends.
func (*Whole) ContentType() string { return "application/json" }

// MarshalJSON refuses, which makes aws-lambda-go read and close the value instead.
func (*Whole) MarshalJSON() ([]byte, error) {
	return nil, errors.New("lambdahttp: a whole answer is read, not marshalled")
}

// Close does the work that was registered for after the response, once.
func (w *Whole) Close() error {
	w.end()
	return nil
}

// Buffered gives lambda.Start the function for every caller that wants one whole answer: a URL whose InvokeMode is
// BUFFERED, an HTTP or REST API, Invoke with such an event. h sees what it would see under [Streamed].
//
// A body above 5.5 MB, or one that Lambda's 6 MB can't carry once it is quoted, becomes a 413 in OpenAI's envelope.
func Buffered(h http.Handler, o Options) func(context.Context, json.RawMessage) (*Whole, error) {
	return func(ctx context.Context, raw json.RawMessage) (*Whole, error) {
		c, err := newCall(ctx, raw, o)
		if err != nil {
			return nil, err
		}
		body := &boundedBuffer{}
		w := newWriter(c.request.Method, body)
		switch err := c.serve(h, w); {
		case err != nil:
			w, body = failed(http.StatusInternalServerError, internalError())
		case body.full:
			w, body = failed(http.StatusRequestEntityTooLarge, tooLarge())
		default:
			w.Flush()
		}
		c.cancel()
		end := func() { c.after.run(ctx, bufferedWork, c.log) }
		return &Whole{Reader: bytes.NewReader(c.envelope(w, body)), end: sync.OnceFunc(end)}, nil
	}
}

// failed is a fresh answer in place of one that can't be given.
func failed(status int, message []byte) (*writer, *boundedBuffer) {
	body := &boundedBuffer{}
	w := newWriter("", body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(message)
	return w, body
}

func tooLarge() []byte {
	return errorBody("The answer is larger than a buffered function can return; ask the streaming function.", "invalid_request_error", "response_too_large")
}

func (c *call) envelope(w *writer, body *boundedBuffer) []byte {
	e := Envelope{StatusCode: w.status}
	e.Headers, e.Cookies = w.flattened()
	if c.old && len(e.Cookies) > 0 {
		e.MultiValueHeaders, e.Cookies = map[string][]string{"Set-Cookie": e.Cookies}, nil
	}
	e.Body, e.IsBase64Encoded = text(body.Bytes())
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // every byte counts against the limit
	if err := enc.Encode(e); err != nil {
		panic(err) // strings always marshal
	}
	if out.Len() > maxEnvelope {
		w, body = failed(http.StatusRequestEntityTooLarge, tooLarge())
		return c.envelope(w, body)
	}
	return out.Bytes()
}

// text is a body as JSON carries it: itself, or base64 where it isn't UTF-8.
func text(body []byte) (s string, base64Encoded bool) {
	if utf8.Valid(body) {
		return string(body), false
	}
	return base64.StdEncoding.EncodeToString(body), true
}

// boundedBuffer takes whole writes until one would not fit, and none from then on.
type boundedBuffer struct {
	bytes.Buffer
	full bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.full || b.Len()+len(p) > maxAnswer {
		b.full = true
		return 0, errors.New("lambdahttp: the answer is larger than a buffered function can return")
	}
	return b.Buffer.Write(p)
}
