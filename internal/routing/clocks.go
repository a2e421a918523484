package routing

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/internal/providers"
)

// The causes with which an attempt's clocks end it.
var (
	errHeader     = errors.New("no headers in time")
	errFirstToken = errors.New("no first token in time")
	errContent    = errors.New("no content in time after reasoning")
	errIdle       = errors.New("idle for too long")
	errTotal      = errors.New("total time is over")
	errBudget     = errors.New("budget is over")
)

// clocks end an attempt by cancelling its context. One timer runs at a time: for the clock that ends first.
type clocks struct {
	limits   Timeouts
	thinking time.Duration // to the first content once reasoning flows
	start    time.Time
	budget   time.Time // zero once committed
	content  time.Time // deadline of the first content, zero while no reasoning flows
	cancel   context.CancelCauseFunc
	timer    *time.Timer

	mu    sync.Mutex
	at    time.Time
	cause error
}

func startClocks(limits Timeouts, thinking time.Duration, budget time.Time, cancel context.CancelCauseFunc) *clocks {
	c := &clocks{limits: limits, thinking: thinking, start: time.Now(), budget: budget, cancel: cancel}
	c.timer = time.AfterFunc(time.Hour, c.expire)
	return c
}

// expire cancels the attempt, unless the clock was set anew in the meantime.
func (c *clocks) expire() {
	c.mu.Lock()
	late, cause := !c.at.IsZero() && !time.Now().Before(c.at), c.cause
	c.mu.Unlock()
	if late {
		c.cancel(cause)
	}
}

// limit is the end of one clock.
type limit struct {
	at    time.Time
	cause error
}

// run sets the timer for the earliest of the given clocks and those that always run: total and budget.
func (c *clocks) run(limits ...limit) {
	first := limit{c.budget, errBudget}
	first = earlier(first, after(c.start, c.limits.Total, errTotal))
	for _, l := range limits {
		first = earlier(first, l)
	}
	c.mu.Lock()
	c.at, c.cause = first.at, first.cause
	c.mu.Unlock()
	if first.at.IsZero() {
		c.timer.Stop()
		return
	}
	c.timer.Reset(time.Until(first.at))
}

func (c *clocks) forHeaders() {
	c.run(after(c.start, c.limits.Header, errHeader), after(c.start, c.limits.FirstToken, errFirstToken))
}

func (c *clocks) forFirstToken() { c.run(after(c.start, c.limits.FirstToken, errFirstToken)) }

// forChunk waits for one more chunk after the first token.
func (c *clocks) forChunk() {
	c.run(after(time.Now(), c.limits.Idle, errIdle), limit{c.content, errContent})
}

// pause stops all clocks but the total one, while nobody waits for the provider.
func (c *clocks) pause() { c.run() }

func (c *clocks) committed() { c.budget = time.Time{} }

func (c *clocks) stop() { c.timer.Stop() }

// heard notes what a chunk brought: reasoning starts the clock to the first content, content ends it.
func (c *clocks) heard(s providers.Signal) {
	switch {
	case s == providers.SignalContent:
		c.content, c.thinking = time.Time{}, 0
	case s == providers.SignalReasoning && c.thinking > 0 && c.content.IsZero():
		c.content = time.Now().Add(c.thinking)
	}
}

func after(start time.Time, d time.Duration, cause error) limit {
	if d <= 0 {
		return limit{}
	}
	return limit{start.Add(d), cause}
}

func earlier(a, b limit) limit {
	if a.at.IsZero() || !b.at.IsZero() && b.at.Before(a.at) {
		return b
	}
	return a
}

// blame gives the failure its kind by whose clock ended the attempt: ours, the budget, or the caller's own context.
// Any other failure is the provider's, as it says.
func blame(ctx context.Context, err error) *providers.Error {
	cause := context.Cause(ctx)
	if cause == nil {
		return ofProvider(err)
	}
	kind := providers.KindCanceled
	switch cause {
	case errHeader, errFirstToken, errContent, errIdle, errTotal: //nolint:errorlint // our own values, never wrapped
		kind = providers.KindTimeout
	case errBudget, context.DeadlineExceeded:
		kind = providers.KindDeadline
	}
	return &providers.Error{Kind: kind, Err: cause}
}

// ofProvider is an error that is the provider's own. Whether the caller left or the budget ended only we know; an
// adapter that says so, or says nothing, has failed.
func ofProvider(err error) *providers.Error {
	e := providers.AsError(err)
	switch e.Kind {
	case providers.KindNone, providers.KindCanceled, providers.KindDeadline:
		return &providers.Error{Kind: providers.KindServerError, Status: e.Status, Code: e.Code, Err: err}
	}
	return e
}
