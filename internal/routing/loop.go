package routing

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// walk is one request on its way down the chain.
type walk struct {
	r      *Router
	ctx    context.Context //nolint:containedctx // the walk is the call
	req    *Request
	budget budget
	links  []link
	trace  *Trace

	before *providers.Error // the failure just before; nil: that candidate was skipped, or there was none
	window int              // only larger windows make sense after a request was too long for one; 0: any
	fault  bool             // something failed or refused that might answer another time
	unable *Failure         // why nobody can do it, for the caller
	stop   *providers.Error // a failure that ends the walk

	refusals []refusal // of the breakers
	called   bool      // a candidate was called
	once     bool      // no retries
}

// refusal is a candidate that its breaker refused.
type refusal struct {
	link
	why *breaker.Refusal
}

// run asks the candidates one after another and gives the committed attempt, or nil.
func (w *walk) run() (*attempt, *Candidate) {
	for i := 0; i < len(w.links) && !w.left(); i++ { // links may be put in another order on the way
		l := w.links[i]
		permit, skip := w.admit(l)
		if skip != "" {
			w.skip(l, skip)
			continue
		}
		if a := w.try(l, i, permit); a != nil {
			return a, l.Candidate
		}
		if w.stop != nil {
			return nil, nil
		}
	}
	return w.insist()
}

// try calls a candidate and reports its failure. nil: it failed.
func (w *walk) try(l link, at int, permit breaker.Permit) *attempt {
	w.called = true
	a, failure := w.call(l, at, permit)
	if failure == nil {
		return a
	}
	permit.Done(outcome(failure, w.req.Foreign))
	w.failed(l, at, failure)
	return nil
}

// insist tries the candidate whose breaker opens first, once, where breakers refused all that could be called.
func (w *walk) insist() (*attempt, *Candidate) {
	if !w.r.settings.EarliestOpen || w.called || w.left() || !w.budget.fits(0) {
		return nil, nil
	}
	slices.SortStableFunc(w.refusals, func(a, b refusal) int { return a.why.Until.Compare(b.why.Until) })
	for _, l := range w.refusals {
		if permit := l.why.Insist(); permit != nil {
			w.once = true
			return w.try(l.link, len(w.links)-1, permit), l.Candidate
		}
	}
	return nil, nil
}

// left says whether the caller has left. A deadline of his is the budget's business.
func (w *walk) left() bool { return errors.Is(w.ctx.Err(), context.Canceled) }

// admit says whether a candidate may be called now: with a permit, or with the reason why it is skipped.
func (w *walk) admit(l link) (breaker.Permit, Skip) {
	if skip := w.skips(l, w.before); skip != "" {
		return nil, skip
	}
	ctx, cancel := context.WithDeadline(w.ctx, w.budget.models)
	defer cancel()
	permit, err := w.r.gate.Enter(ctx, l.ID, l.lease(w.budget))
	if err == nil && !w.budget.fits(0) { // the breaker's store took the time
		permit.Done(breaker.Outcome{Class: breaker.Cancelled})
		return nil, SkipBudget
	}
	if err == nil {
		return permit, ""
	}
	var why *breaker.Refusal
	if !errors.As(err, &why) {
		return nil, SkipBreakerOpen
	}
	w.refusals = append(w.refusals, refusal{l, why})
	if why.Cooling {
		return nil, SkipCooling
	}
	return nil, SkipBreakerOpen
}

// skips is admit without the breaker: why a candidate isn't asked, given the failure just before it.
func (w *walk) skips(l link, before *providers.Error) Skip {
	if !l.entry.fires(before) {
		return SkipTrigger
	}
	if off := l.off(); off != "" {
		return off
	}
	if unable := l.unable(w.req); unable != "" {
		return unable
	}
	if w.window > 0 && l.Window > 0 && l.Window <= w.window {
		return SkipWindow
	}
	if !w.budget.fits(0) {
		return SkipBudget
	}
	return ""
}

// lease bounds a trial: until the first token, as far as the budget lets it run.
func (l link) lease(b budget) time.Duration {
	d := b.left()
	if l.Timeouts.FirstToken > 0 {
		d = min(d, l.Timeouts.FirstToken)
	}
	return d
}

// call tries a candidate, again where the failure and the retries allow it.
func (w *walk) call(l link, at int, permit breaker.Permit) (*attempt, *providers.Error) {
	for tries := 0; ; tries++ {
		start := time.Now()
		a, failure := w.r.begin(w.ctx, l.Candidate, w.req, w.budget, permit)
		w.trace.Attempts = append(w.trace.Attempts, record(l.ID, a, failure, time.Since(start)))
		if failure == nil {
			return a, nil
		}
		wait, again := w.r.settings.Retries.again(failure, tries)
		if !again || w.once || permit.Trial() || tries >= w.retries(l, at, failure) || !w.budget.fits(wait) || !sleep(w.ctx, wait) {
			return nil, failure
		}
	}
}

// retries is how many more attempts a candidate gets after a failure: fewer, as a rule, where another can be asked.
func (w *walk) retries(l link, at int, failure *providers.Error) int {
	if l.entry != nil && l.entry.MaxRetries != nil {
		return *l.entry.MaxRetries
	}
	if w.more(at+1, failure) {
		return w.r.settings.Retries.Max
	}
	return w.r.settings.Retries.Last
}

// more says whether a candidate after the failed one could be tried now.
func (w *walk) more(from int, before *providers.Error) bool {
	for _, l := range w.links[from:] {
		skip := w.skips(l, before)
		if skip == "" && !w.refused(l) {
			return true
		}
		if skip != SkipTrigger {
			before = nil
		}
	}
	return false
}

// refused says whether the breaker would refuse a candidate, without asking for a permit.
func (w *walk) refused(l link) bool {
	for _, s := range w.r.gate.Snapshot(w.ctx, l.ID) {
		return s.Refuses
	}
	return false
}

func (w *walk) skip(l link, why Skip) {
	w.trace.Attempts = append(w.trace.Attempts, Attempt{Candidate: l.ID, Skipped: why})
	switch why {
	case SkipTrigger:
		return
	case SkipBreakerOpen, SkipCooling, SkipBudget:
		w.fault = true
	case SkipThinking, SkipWindow, SkipFeature:
		w.cannot(l, why)
	}
	w.before = nil
}

// failed notes a candidate's failure and what it means for the rest.
func (w *walk) failed(l link, at int, failure *providers.Error) {
	w.before = failure
	if inability(failure) {
		w.refusedBy(failure)
	} else {
		w.fault = true
	}
	if failure.Kind == providers.KindContextTooLong {
		w.window = max(w.window, l.Window)
		unknownLast(w.links[at+1:])
	}
	if !w.r.settings.switches(failure) {
		w.stop = failure
	}
}

// unknownLast moves candidates of an unknown window behind those that are known to be larger.
func unknownLast(links []link) {
	known := make([]link, 0, len(links))
	var unknown []link
	for _, l := range links {
		if l.Window > 0 {
			known = append(known, l)
		} else {
			unknown = append(unknown, l)
		}
	}
	copy(links, append(known, unknown...))
}

func record(id string, a *attempt, failure *providers.Error, d time.Duration) Attempt {
	if failure == nil {
		return Attempt{Candidate: id, Outcome: OutcomeOK, Status: 200, Duration: d, TTFT: a.ttft}
	}
	return Attempt{
		Candidate: id, Outcome: failure.Kind.String(), Status: failure.Status,
		Duration: d, Ended: true, Code: failure.Code, Stack: stackOf(failure), Cost: a.cost(a.bill.said(a.held)),
	}
}

// sleep waits, false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
