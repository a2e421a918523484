package routing

import (
	"context"
	"time"
)

// minAttempt is what must remain of the budget for an attempt to start (contract §3).
const minAttempt = 200 * time.Millisecond

// budget is the time of one request: models may use it until models, everything else until end.
type budget struct {
	models, end time.Time
}

// newBudget computes the contract's B and its reserve. ctx carries the platform's deadline, if there is one.
func newBudget(ctx context.Context, req *Request, b Budget) budget {
	total := b.Total
	if req.Hint > 0 {
		total = min(total, req.Hint)
	}
	end := req.Received.Add(total)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	reserve := min(b.Reserve, end.Sub(req.Received)/5)
	return budget{models: end.Add(-reserve), end: end}
}

// left is what models may still use.
func (b budget) left() time.Duration { return time.Until(b.models) }

// fits says whether an attempt may start after a wait.
func (b budget) fits(wait time.Duration) bool { return b.left()-wait >= minAttempt }

// last is the deadline of the last tiers: a little before the end, so that their answer can still be written.
func (b budget) last() time.Time {
	return b.end.Add(-min(100*time.Millisecond, b.end.Sub(b.models)/4))
}
