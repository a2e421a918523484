package routing

import (
	"context"
	"time"
)

// Front is what routing asks of a cache that answers before any model.
type Front interface {
	// Answered gives what a candidate has answered to the very same request, or nil. It respects ctx's deadline.
	Answered(ctx context.Context, req *Request, by *Candidate) *CacheHit
}

// frontTime is how long a request waits for that at most.
const frontTime = 150 * time.Millisecond

// front asks the cache for what the first candidate would say, within a time that no attempt will miss.
func (r *Router) front(ctx context.Context, req *Request, links []link, b budget) *CacheHit {
	wait := min(frontTime, (b.left()-minAttempt)/2)
	if r.settings.Front == nil || req.NoCache || wait <= 0 {
		return nil
	}
	first := firstAble(links, req)
	if first == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	hit := r.settings.Front.Answered(ctx, req, first)
	if hit != nil {
		hit.Front = true
	}
	return hit
}

// firstAble is the first candidate that can do what is asked; how its breaker is doesn't matter. nil: there is none.
func firstAble(links []link, req *Request) *Candidate {
	for _, l := range links {
		if l.off() == "" && l.unable(req) == "" {
			return l.Candidate
		}
	}
	return nil
}
