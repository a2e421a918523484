package breaker

import "time"

// The rules: pure functions from a record and what happened to the change it asks for. Locks, clocks and stores
// are elsewhere.

type verdict uint8

const (
	admit verdict = iota
	refuse
	try // a trial is due; whoever acquires it may call
)

// judge says what a call gets. due is when an opening is over for this process.
func (r *Record) judge(now, due int64) verdict {
	switch {
	case r.State == ForcedOpen && !r.closed(now):
		return refuse
	case r.State == Closed, r.State == ForcedOpen, r.State == ForcedClosed:
		return admit
	case r.State == Open && now < due, r.State == HalfOpen && now < r.LeaseUntil:
		return refuse
	default:
		return try
	}
}

// afterCall is the change after a call of a closed breaker whose run of failures is now run.
func (s Settings) afterCall(r Record, o Outcome, run int, now int64) (Change, bool) {
	switch {
	case o.Class == Cool, o.Class == Hard, o.Class == Failure && run >= s.FailureThreshold:
		return s.opening(Trip, r, o, now), true
	default:
		return Change{}, false
	}
}

// afterTrial is the change that settles the trial which token and holder name. Every class has one: no trial is
// kept by an outcome that says nothing about the model.
func (s Settings) afterTrial(r Record, o Outcome, t trial, now int64) Change {
	c := Change{Op: Release, Now: now}
	switch o.Class {
	case Success:
		c.Op = Pass
		if r.Passed+1 >= int64(s.HalfOpenSuccesses) {
			c.Op = Close
		}
	case Failure, Cool, Hard:
		c = s.opening(Reopen, r, o, now)
	case Sample, Excluded, Cancelled:
	}
	c.Gen, c.Token, c.Holder = t.gen, t.token, t.nonce
	return c
}

// afterCool is the change when a provider asks for more time than an open breaker gives: the later deadline holds.
func (s Settings) afterCool(r Record, o Outcome, now int64) (Change, bool) {
	c := Change{Op: Extend, Gen: r.Gen, Now: now, Until: now + coolFor(o).Milliseconds()}
	return c, c.holds(r)
}

func (s Settings) opening(op Op, r Record, o Outcome, now int64) Change {
	c := Change{Op: op, Gen: r.Gen, Now: now, Opens: r.Opens + 1, Why: o.Why}
	switch o.Class {
	case Cool:
		c.Opens = r.Opens
		c.Until = now + coolFor(o).Milliseconds()
		return c
	case Hard:
		c.OpenFor = s.MaxOpenDuration
	default:
		c.OpenFor = s.openFor(c.Opens)
	}
	c.OpenFor = max(c.OpenFor.Truncate(time.Millisecond), time.Millisecond)
	c.Until = now + c.OpenFor.Milliseconds()
	return c
}

func coolFor(o Outcome) time.Duration {
	return min(orDefault(o.RetryAfter, defaultCool), longestCool)
}
