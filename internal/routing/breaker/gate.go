package breaker

import (
	"context"
	"time"
)

// Class is what an outcome means to a breaker.
type Class uint8

const (
	Success   Class = iota
	Failure         // counts in the run and in the sample
	Sample          // counts in the sample only
	Cool            // no failure: skipped until RetryAfter, 10 s where none is given
	Hard            // opens at once for MaxOpenDuration
	Excluded        // counts nowhere
	Cancelled       // counts nowhere, gives a trial back
)

// Outcome is how a call ended, told once a call whatever its retries.
type Outcome struct {
	Class      Class
	RetryAfter time.Duration // for Cool
	Why        string        // the kind's name; never user text
}

// State of a breaker, as in every library.
type State uint8

const (
	Closed State = iota
	Open
	HalfOpen
	ForcedOpen   // by an operator: no call
	ForcedClosed // by an operator: every call, and nothing is counted
)

// String is the state's name in /v1/status, logs and metrics: closed, open, half-open, forced-open, forced-closed.
func (s State) String() string {
	return [...]string{"closed", "open", "half-open", "forced-open", "forced-closed"}[s]
}

// Refusal says why a candidate may not be called now. It is an error so that it can travel as one.
type Refusal struct {
	State   State
	Cooling bool      // rate-limited or loading, not failed
	Until   time.Time // when it may be asked again, as far as is known; zero: forced open without an end

	gate  *Breakers
	entry *entry
}

// Error implements error.
func (r *Refusal) Error() string { return "breaker " + r.State.String() }

// Insist gives a permit all the same, to a caller who has nobody else to ask. What comes of it moves no open breaker,
// but for a longer Retry-After. nil: an operator has closed the candidate off, or its trial runs or is due.
func (r *Refusal) Insist() Permit {
	if r.gate == nil {
		return nil
	}
	return r.gate.insist(r.entry)
}

// Status is one breaker as /v1/status shows it.
type Status struct {
	Candidate  string
	State      State
	Cooling    bool
	Generation int64
	Until      time.Time // open, cooling or forced until; zero: closed, or forced without an end
	Why        string    // last reason
	Local      bool      // open in this process only
	Refuses    bool      // a call would be refused now: not where a trial is due, nor while breakers only observe
	Mode       Mode
	Sample     Window // the latest, zero for none
}

// Permit is the right to make one call. Both methods may be called more than once and in defer; only the first
// call of each counts. They may write to the store, for at most the store's own deadline.
type Permit interface {
	// Trial says that this is the one half-open call of the fleet.
	Trial() bool
	// Started tells that the first token came: it settles a trial.
	Started()
	// Done tells how the call ended. A failure after Started counts in the generation that holds then.
	Done(Outcome)
}

// Gate admits calls. Safe for concurrent use.
type Gate interface {
	// Refresh starts reading those of the candidates' items whose copies are too old, without waiting. Enter
	// waits for that reading, 50 ms after its start at most.
	Refresh(ctx context.Context, candidates ...string)
	// Enter gives a permit, or a *Refusal as the error. lease bounds how long a trial may take until its first
	// token; a trial that isn't settled by then, with some margin, is given to another.
	Enter(ctx context.Context, candidate string, lease time.Duration) (Permit, error)
	// Snapshot tells the states as this process sees them; it asks the store only for copies that are too old.
	Snapshot(ctx context.Context, candidates ...string) []Status
}
