package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// fault is an error answer of our own, made before routing: the caller reads what is wrong, where, and how to mend it.
type fault struct {
	status               int
	kind                 string // OpenAI's error type; "": the status's
	code, param, message string
	retry                time.Duration // when it may be right to come back; 0: not said
}

func (f *fault) Error() string { return f.message }

var errInternal = &fault{
	status: http.StatusInternalServerError, code: "internal_error",
	message: "Something went wrong inside the gateway. The request may be sent again.",
}

// envelope is OpenAI's error body, with the metadata beside it where the request got as far as routing.
type envelope struct {
	Error    problem   `json:"error"`
	Holdfast *metadata `json:"holdfast,omitempty"`
}

type problem struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e envelope) bytes() []byte {
	b, _ := json.Marshal(e) // strings and numbers always marshal
	return b
}

func envelopeOf(f *fault, m *metadata) []byte {
	p := problem{Message: f.message, Type: cmp.Or(f.kind, typeOf(f.status)), Param: orNull(f.param), Code: orNull(f.code)}
	return envelope{p, m}.bytes()
}

// typeOf is OpenAI's error type for a status.
func typeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// fail answers with an error of our own.
func (h *handler) fail(w *writer, err error) {
	f := errInternal
	var misused *misuse
	switch {
	case errors.As(err, &misused):
		f = &fault{status: http.StatusBadRequest, code: misused.code, param: shorten(misused.param), message: misused.Error()}
	case errors.As(err, &f):
	default:
		h.deps.Log.Error("handler failed", "error", err)
	}
	retryAfter(w.Header(), f.retry)
	writeJSON(w, f.status, envelopeOf(f, nil))
}

// failureBody is the envelope of an answer that is an error.
func failureBody(f *routing.Failure, status int, m *metadata) []byte {
	p := problem{Message: f.Message, Type: f.Type, Param: orNull(f.Param), Code: orNull(f.Code)}
	if p.Type == "" {
		p.Type = typeOf(status)
	}
	return envelope{p, m}.bytes()
}

// retryAfter tells clients when to come back, and keeps SDKs from coming back at once.
func retryAfter(header http.Header, d time.Duration) {
	if d > 0 {
		seconds := max(1, int64((d+time.Second-1)/time.Second))
		header.Set("Retry-After", strconv.FormatInt(seconds, 10))
		header.Set("X-Should-Retry", "false")
	}
}

// broken is the error event of a stream that broke after its first token. It has no word of the provider's.
func broken(err *providers.Error, m *metadata) []byte {
	text := "The answer broke off here and is incomplete (" + err.Kind.String() + "). It was not continued by another model; the request may be sent again."
	code := "stream_" + err.Kind.String()
	return envelope{problem{Message: text, Type: "server_error", Code: &code}, m}.bytes()
}

func writeJSON(w *writer, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.deliver(body)
}

// shorten keeps a caller's words in an error from becoming the error.
func shorten(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i > most-4 {
			return s[:i] + "…"
		}
	}
	return s
}
