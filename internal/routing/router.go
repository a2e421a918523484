package routing

import (
	"context"
	"fmt"
	"math/rand/v2"

	"holdfast/internal/routing/breaker"
)

// Router answers requests. It is immutable: a new configuration makes a new one. Safe for concurrent use.
type Router struct {
	settings Settings
	gate     breaker.Gate
	cache    LastResort // nil: no cache
	heads    []string   // candidates that a request without wishes may ask first
	draws    draws
}

// New makes a router. cache may be nil.
func New(s Settings, gate breaker.Gate, cache LastResort) *Router {
	return &Router{settings: s, gate: gate, cache: cache, heads: s.heads(), draws: newDraws(s.Candidates)}
}

// unknownModel is what a caller hears of a model that isn't one of his: the same whether it is another's or nobody's.
const unknownModel = "The model `%s` does not exist. GET /v1/models lists what does; leave model out or use auto to let the configuration choose."

// Prepare starts reading the state of the breakers that a request may meet first, in one read, so that it overlaps
// with decoding. It doesn't wait. The rest of a chain is read when its turn comes.
func (r *Router) Prepare(ctx context.Context) { r.gate.Refresh(ctx, r.heads...) }

// Answer answers a request. It never returns nil; a well-formed request gets tier model, cache or fallback, the
// caller's own mistakes an answer with Failure set. ctx is the caller's: its end stops everything at once. The
// caller must Close the answer.
func (r *Router) Answer(ctx context.Context, req *Request) *Answer {
	trace := Trace{RouteID: req.RouteID, Config: r.settings.Version}
	plan, known := r.settings.plan(req, rand.Float64)
	if !known {
		return refuse(trace, &Failure{
			Status: 404, Type: invalidRequest, Code: "model_not_found", Param: "model",
			Message: fmt.Sprintf(unknownModel, shorten(req.Model)),
		})
	}
	trace.Chain, trace.Rule = plan.chain, plan.rule.name()
	trace.Drawn, trace.Share = plan.drawn.id, plan.drawn.share
	r.draws.add(plan.drawn.id)
	b := newBudget(ctx, req, r.settings.Budget)
	if hit := r.front(ctx, req, plan.links, b); hit != nil {
		return cached(req, trace, hit)
	}
	w := &walk{r: r, ctx: ctx, req: req, budget: b, links: plan.links, trace: &trace}
	a, c := w.run()
	switch {
	case a != nil:
		return r.committed(trace, a, c, req)
	case w.left():
		return refuse(trace, &Failure{Status: 499, Type: invalidRequest, Code: "canceled", Message: "The caller left."})
	case w.stop != nil && inability(w.stop):
		return refuse(trace, callerFailure(w.stop))
	case w.unable != nil && !w.fault:
		return refuse(trace, w.unable)
	}
	return r.lastTiers(ctx, req, trace, last{b, plan.rule})
}

// committed is the answer of a model.
func (r *Router) committed(trace Trace, a *attempt, c *Candidate, req *Request) *Answer {
	trace.Tier = TierModel
	trace.Candidate, trace.Provider, trace.Model = c.ID, c.Provider, c.Model
	answer := &Answer{Trace: trace}
	entry := &answer.Trace.Attempts[len(answer.Trace.Attempts)-1]
	answer.source = &live{attempt: a, entry: entry, foreign: req.Foreign}
	return answer
}

// Listing is one line of /v1/models.
type Listing struct {
	ID       string // candidate id or chain name
	Provider string // "holdfast" for a chain
}

// Models lists the candidates and named chains that a tenant may name.
func (r *Router) Models(tenant string) []Listing {
	var out []Listing
	for i := range r.settings.Candidates {
		c := &r.settings.Candidates[i]
		if skip := c.off(); !c.Unlisted && (skip == "" || skip == SkipNoClient) && c.serves(tenant) {
			out = append(out, Listing{c.ID, c.Provider})
		}
	}
	for _, chain := range r.settings.chainsOf(tenant) {
		if chain.Name != chain.Primary {
			out = append(out, Listing{chain.Name, "holdfast"})
		}
	}
	return out
}

// CandidateStatus is one candidate in /v1/status.
type CandidateStatus struct {
	Candidate Candidate
	Breaker   breaker.Status
	Skip      Skip // why it takes no calls whatever the request: disabled, denied, no_client; else ""
	// Share is its part of the weights of its priority, Drawn its part of the draws among these equals that this
	// router has made. 0 where it is in no default order, or nothing was drawn.
	Share, Drawn float64
}

// Status is what /v1/status tells.
type Status struct {
	Config     string
	Candidates []CandidateStatus // those that the tenant may call, as configured
	Chains     []Chain           // with no other candidates than those
}

// Status tells the state of every candidate as this process sees it.
func (r *Router) Status(ctx context.Context, tenant string) Status {
	out := Status{Config: r.settings.Version, Chains: r.settings.chainsOf(tenant)}
	var ids []string
	for i := range r.settings.Candidates {
		if c := &r.settings.Candidates[i]; c.serves(tenant) {
			ids = append(ids, c.ID)
			out.Candidates = append(out.Candidates, CandidateStatus{Candidate: *c, Skip: c.off()})
		}
	}
	r.draws.shares(out.Candidates)
	for i, s := range r.gate.Snapshot(ctx, ids...) {
		if i < len(out.Candidates) {
			out.Candidates[i].Breaker = s
		}
	}
	return out
}

// shorten keeps what a caller wrote out of proportion out of an error.
func shorten(s string) string {
	if runes := []rune(s); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return s
}
