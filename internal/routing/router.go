package routing

import (
	"context"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// Router answers requests. It is immutable: a new configuration makes a new one. Safe for concurrent use.
type Router struct {
	settings Settings
	gate     breaker.Gate
	cache    LastResort // nil: no cache
}

// New makes a router. cache may be nil.
func New(s Settings, gate breaker.Gate, cache LastResort) *Router {
	return &Router{settings: s, gate: gate, cache: cache}
}

// Prepare starts reading the breakers' states, so that it overlaps with decoding the request. It doesn't wait.
func (r *Router) Prepare(ctx context.Context) {}

// Answer answers a request. It never returns nil; a well-formed request gets tier model, cache or fallback, the
// caller's own mistakes an answer with Failure set. The caller must Close the answer.
func (r *Router) Answer(ctx context.Context, req *Request) *Answer {
	return &Answer{source: nothing{}}
}

// Listing is one line of /v1/models.
type Listing struct {
	ID       string // candidate id or chain name
	Provider string // "holdfast" for a chain
}

// Models lists the candidates and named chains that a tenant may name.
func (r *Router) Models(tenant string) []Listing { return nil }

// CandidateStatus is one candidate in /v1/status.
type CandidateStatus struct {
	Candidate Candidate
	Breaker   breaker.Status
	Skip      Skip // why it takes no calls whatever the request: disabled, denied, no_client; else ""
}

// Status is what /v1/status tells.
type Status struct {
	Config     string
	Candidates []CandidateStatus // those that the tenant may call, by priority
	Chains     []Chain
}

// Status tells the state of every candidate as this process sees it.
func (r *Router) Status(ctx context.Context, tenant string) Status { return Status{} }

type nothing struct{}

func (nothing) Next() (providers.Chunk, error) { return providers.Chunk{}, nil }
func (nothing) Close()                         {}
