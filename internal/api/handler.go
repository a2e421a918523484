package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// Settings are the API's share of the configuration.
type Settings struct {
	Keys      []Key  // who may call; several keys may name one tenant
	Anonymous bool   // callers without a key are let in, as tenant "anonymous"
	MaxBody   int64  // bytes of a request's body; 0: 10 MiB
	Version   string // of the build, for /healthz and /v1/status
}

// Key is the hash of one caller's key.
type Key struct {
	Tenant string
	SHA256 string // 64 hex digits
}

// Router is what the API asks of routing. *routing.Router implements it.
type Router interface {
	Prepare(ctx context.Context)
	Answer(ctx context.Context, req *routing.Request) *routing.Answer
	Models(tenant string) []routing.Listing
	Status(ctx context.Context, tenant string) routing.Status
}

// Caps are what tenants may spend on a day.
type Caps interface {
	// Prepare starts reading what a tenant has spent. It doesn't wait.
	Prepare(ctx context.Context, tenant string)
	// Reached says whether a tenant has spent it, and until when that holds.
	Reached(ctx context.Context, tenant string) (until time.Time, reached bool)
}

// Deps are the parts that the API stands on.
type Deps struct {
	Router Router
	Caps   Caps // nil: none
	// After runs work once the caller has the last byte: in a goroutine that somebody owns, or in Lambda's hook. It
	// is called at the end of a handler and must not wait for the work. ctx is the request's, which may have ended.
	// nil: the work is done at once.
	After func(ctx context.Context, work func(context.Context))
	// Finished is told, inside After, of each request that reached routing: once, whatever became of it. nil: nobody.
	Finished func(ctx context.Context, req *routing.Request, trace routing.Trace, done Done)
	// Correction corrects the estimates of prompts, and learns from answers. nil: estimates stay as they are.
	Correction *Correction
	// Ready says whether /healthz may say so. nil: always.
	Ready func() bool
	// Log is told of panics, without a word of the request. nil: nowhere.
	Log *slog.Logger
}

// Done is what became of an answer.
type Done struct {
	Status         int    // HTTP status; 0 if nothing was written, as the caller had left
	Complete       bool   // the answer came to its proper end
	Finish         string // finish reason, "" if it had none
	Text           string // the content: all of it, or nothing if TooLong; part of it if not Complete
	TooLong        bool   // the content has more than 64 KiB
	ToolCalls      bool   // it has tool calls
	Refusal        bool   // it has a refusal
	Usage          []byte // OpenAI's usage object: the provider's, or an estimate
	UsageEstimated bool
	Bytes          int              // of the body that were written
	Failure        *routing.Failure // where the answer was an error envelope
	Err            *providers.Error // why a stream broke
	Panicked       bool
	Duration       time.Duration // since the request was received
}

const defaultMaxBody = 10 << 20

type handler struct {
	settings Settings
	keys     []keyHash
	deps     Deps
	started  time.Time
}

// New makes the handler of the whole HTTP surface. Settings are taken as valid. It is safe for concurrent use.
func New(s Settings, d Deps) http.Handler {
	if s.MaxBody <= 0 {
		s.MaxBody = defaultMaxBody
	}
	if d.After == nil {
		d.After = func(ctx context.Context, work func(context.Context)) { work(ctx) }
	}
	if d.Finished == nil {
		d.Finished = func(context.Context, *routing.Request, routing.Trace, Done) {}
	}
	if d.Ready == nil {
		d.Ready = func() bool { return true }
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return &handler{settings: s, keys: hashes(s.Keys), deps: d, started: time.Now()}
}

// ServeHTTP serves one request. A panic becomes an error answer, also in the middle of a stream.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &writer{ResponseWriter: w}
	defer h.recovered(out)
	if r.ContentLength != 0 { // the server reads a body that nobody wants before it sends the refusal
		_ = http.NewResponseController(out).SetReadDeadline(time.Now().Add(drainTime))
	}
	if err := h.serve(out, r); err != nil {
		h.fail(out, err)
	}
}

// serve finds the handler. It is no ServeMux, as that redirects paths and has error pages of its own.
func (h *handler) serve(w *writer, r *http.Request) error {
	const completions, models = "/v1/chat/completions", "/v1/models"
	switch path := r.URL.Path; {
	case path == completions:
		return h.authorized(w, r, h.chat, http.MethodPost)
	case strings.HasPrefix(path, completions+"/"):
		return h.authorized(w, r, h.stored, http.MethodGet, http.MethodHead)
	case path == models:
		return h.authorized(w, r, h.models, http.MethodGet, http.MethodHead)
	case strings.HasPrefix(path, models+"/"):
		return h.authorized(w, r, h.model, http.MethodGet, http.MethodHead)
	case path == "/v1/status":
		return h.authorized(w, r, h.status, http.MethodGet, http.MethodHead)
	case path == "/healthz":
		if err := allow(w, r, http.MethodGet, http.MethodHead); err != nil {
			return err
		}
		return h.healthz(w, r)
	}
	return &fault{
		status: http.StatusNotFound, code: "not_found",
		message: "There is nothing at this path. The API is under /v1: POST /v1/chat/completions, GET /v1/models, GET /v1/status.",
	}
}

// authorized lets a request with one of the methods and a good key pass.
func (h *handler) authorized(w *writer, r *http.Request, next func(*writer, *http.Request, string) error, methods ...string) error {
	if err := allow(w, r, methods...); err != nil {
		return err
	}
	tenant, err := h.tenant(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
		return err
	}
	return next(w, r, tenant)
}

func allow(w http.ResponseWriter, r *http.Request, methods ...string) error {
	for _, m := range methods {
		if r.Method == m {
			return nil
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return &fault{
		status: http.StatusMethodNotAllowed, code: "method_not_allowed",
		message: "This path takes " + strings.Join(methods, " or ") + " only.",
	}
}

// recovered turns a panic into an error that the caller can see. A half-written JSON body can't be mended: the
// connection is cut, so that nobody takes it for whole.
func (h *handler) recovered(w *writer) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	h.deps.Log.Error("panic in a handler", "what", describe(p), "stack", string(debug.Stack()))
	switch {
	case w.status == 0:
		h.fail(w, errInternal)
	case w.streaming:
		w.event(envelopeOf(errInternal, nil))
	default:
		panic(http.ErrAbortHandler)
	}
}

// describe says what a panic was, but for values that may hold a caller's words.
func describe(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", p)
}
