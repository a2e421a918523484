package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

const (
	// trailing is how long a caller who asked for usage waits for it after the finish reason; one who didn't waits
	// only for what is as good as there.
	trailing      = 2 * time.Second
	trailingQuick = 250 * time.Millisecond
)

// exchange is one request that reached routing, and what becomes of its answer.
type exchange struct {
	h      *handler
	w      *writer
	draft  *draft
	cancel context.CancelFunc // ends the answer
	answer *routing.Answer
	tally  tally
	done   Done
	ended  bool // the answer was written to its end, or given up in order
}

// chat answers POST /v1/chat/completions.
func (h *handler) chat(w *writer, r *http.Request, tenant string) error {
	received, id := time.Now(), routeID()
	w.Header().Set("Holdfast-Route-Id", id)
	h.prepare(r.Context(), tenant)
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	d, err := decode(body)
	if err == nil {
		err = d.headers(r.Header)
	}
	if err != nil {
		return err
	}
	if err := h.capped(r.Context(), tenant); err != nil {
		return err
	}
	d.req.RouteID, d.req.Tenant, d.req.Received = id, tenant, received
	d.req.Tokens = h.deps.Correction.tokens(d.tokens)
	ctx, cancel := context.WithCancel(r.Context())
	x := &exchange{h: h, w: w, draft: d, cancel: cancel}
	defer x.finish(r.Context())
	x.run(ctx)
	return nil
}

func (x *exchange) run(ctx context.Context) {
	x.answer = x.h.deps.Router.Answer(ctx, x.draft.req)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		x.done.Err = &providers.Error{Kind: providers.KindCanceled}
	case x.answer.Failure != nil:
		x.refuse()
	case x.draft.stream:
		x.stream()
	default:
		x.collect()
	}
	x.ended = true
}

// finish closes the answer and has told, after the last byte, what became of it. It runs in a panic too.
func (x *exchange) finish(ctx context.Context) {
	trace := routing.Trace{RouteID: x.draft.req.RouteID}
	if x.answer != nil {
		x.charge()
		x.answer.Close()
		trace = x.answer.Trace
	}
	x.cancel()
	d := &x.done
	d.Panicked = !x.ended
	d.Status, d.Bytes = x.w.status, x.w.bytes
	d.Complete = x.tally.finish != "" // whatever comes after that
	d.Finish, d.ToolCalls, d.Refusal = x.tally.finish, x.tally.tools, x.tally.refusal
	d.Duration = time.Since(x.draft.req.Received)
	x.learn(trace.Tier)
	done, t := x.done, &x.tally
	x.h.deps.After(ctx, func(ctx context.Context) {
		text, short := t.content()
		done.Text, done.TooLong = text, !short
		x.h.deps.Finished(ctx, x.draft.req, trace, done)
	})
}

// refuse writes an answer that is an error.
func (x *exchange) refuse() {
	f := x.answer.Failure
	x.done.Failure = f
	status := f.Status
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	tellHeaders(x.w.Header(), &x.answer.Trace)
	retryAfter(x.w.Header(), f.RetryAfter)
	writeJSON(x.w, status, failureBody(f, status, describeTrace(&x.answer.Trace)))
}

// collect writes the answer as one JSON body.
func (x *exchange) collect() {
	c := newCollector()
	for {
		chunk, err := x.answer.Next()
		if err != nil {
			x.broke(err)
			break
		}
		if x.tally.finish == "" {
			c.add(chunk.Data)
		}
		x.tally.add(chunk)
	}
	x.answer.Close() // a slow caller keeps no provider waiting
	trace := &x.answer.Trace
	tellHeaders(x.w.Header(), trace)
	x.settle()
	meta := describeTrace(trace)
	if x.done.Err != nil {
		writeJSON(x.w, http.StatusBadGateway, broken(x.done.Err, meta))
		return
	}
	meta.UsageEstimated = x.done.UsageEstimated
	if trace.Tier != routing.TierModel {
		c.model = x.answer.Model
	}
	writeJSON(x.w, http.StatusOK, c.render(x.done.Usage, meta))
}

// broke notes why the chunks ended before their time. After a finish reason nothing does.
func (x *exchange) broke(err error) {
	switch {
	case x.tally.finish != "":
	case errors.Is(err, io.EOF):
		x.done.Err = &providers.Error{Kind: providers.KindTruncated}
	default:
		x.done.Err = providers.AsError(err)
	}
}

// settle decides on the usage. What no model answered costs nothing.
func (x *exchange) settle() {
	prompt, completion := x.draft.req.Tokens, x.tally.tokens.tokens()
	ofModel := x.answer.Trace.Tier == routing.TierModel
	if !ofModel {
		prompt, completion = 0, 0
	}
	usage, estimated := settleUsage(x.tally.usage, prompt, completion)
	x.done.Usage, x.done.UsageEstimated = usage, estimated && ofModel
	x.charge()
}

// charge notes what the answer cost, as far as that is known.
func (x *exchange) charge() { x.answer.Charge(x.tally.tokens.tokens()) }
