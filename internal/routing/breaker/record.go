package breaker

import "time"

// Record is the state of one candidate that the fleet shares. The zero Record is that of a candidate nobody ever
// wrote about: closed, generation 0. Times are Unix milliseconds of the writer's wall clock, 0 for none.
type Record struct {
	State      State
	Gen        int64         // +1 at every entry to closed or open; results carry the one they were admitted under
	OpenUntil  int64         // of a forced state its end, 0: none; 0 if closed
	OpenFor    time.Duration // of this opening, whole milliseconds; 0 in a cool-down
	Opens      int64         // consecutive openings for failures: the exponent
	Token      int64         // of the latest lease; never falls
	Holder     string        // nonce of the call that holds the trial, "" if none does
	LeaseUntil int64         // when the trial may be given to another, 0 at once
	Passed     int64         // trials passed in this half-open
	Window     Window
	Why        string // kind of the last failure that opened
	Updated    int64
}

// Window is the fleet's sample of the calls of one candidate: its start, the tickets given out and how their
// calls ended. It is emptied when a breaker closes.
type Window struct {
	Start, Tickets, Failed, OK, Slow int64
	AfterCalm                        bool // the sample before it was a calm one
}

// Op is one of the conditional writes of the protocol.
type Op uint8

// The writes. Trip and Extend also serve cool-downs: those have no OpenFor of their own.
const (
	Trip    Op = iota // closed → open
	Acquire           // open and over, or half-open with a free lease → half-open with this call as holder
	Close             // the trial passed, and it was the last one needed → closed
	Pass              // the trial passed, more are needed: the lease is free again
	Reopen            // the trial failed → open
	Release           // the trial proved nothing: the lease is free again
	Extend            // open → open for longer
	Suspect           // closed → closed, with a new and empty sample in place of the expected one
	Ticket            // one more call of the sample
	Count             // how a call of the sample ended
	Force             // an operator's word: any state → forced-open, forced-closed or closed
)

// Change is one conditional write: what it expects and what it makes. Fields that its Op doesn't use are ignored.
type Change struct {
	Op      Op
	Gen     int64         // expected generation
	Token   int64         // expected lease token, of the trial's own four
	Holder  string        // the trial's nonce: expected by its own four, set by Acquire
	Now     int64         // the writer's clock, Unix ms
	Until   int64         // open until (Trip, Reopen, Extend, Force) or leased until (Acquire), Unix ms
	OpenFor time.Duration // Trip, Reopen
	Opens   int64         // Trip, Reopen
	Why     string        // Trip, Reopen, Force
	State   State         // Force: ForcedOpen, ForcedClosed or Closed
	// Window names the expected sample by its Start. Suspect also has AfterCalm for the new one, Ticket in Tickets
	// the number that may be given out, Count what is to be added. Count{Failed: 1, OK: -1} is a call that began well.
	Window Window
}

// holds says whether the change may be made on r. A trip and a suspicion must also succeed on a candidate nobody
// wrote about.
func (c Change) holds(r Record) bool {
	switch c.Op {
	case Trip:
		return r.Gen == 0 || r.closed(c.Now) && r.Gen == c.Gen
	case Suspect:
		return r.Gen == 0 || r.closed(c.Now) && r.Gen == c.Gen && r.Window.Start == c.Window.Start
	case Ticket:
		return r.samples(c) && r.Window.Tickets < c.Window.Tickets
	case Count:
		return r.samples(c) && r.Window.OK >= -c.Window.OK
	case Force:
		return true
	case Acquire:
		return r.Gen == c.Gen && (r.State == Open && r.OpenUntil <= c.Now ||
			r.State == HalfOpen && r.LeaseUntil <= c.Now)
	case Extend:
		return r.State == Open && r.Gen == c.Gen && r.OpenUntil < c.Until
	default:
		return r.State == HalfOpen && r.Gen == c.Gen && r.Token == c.Token && c.Holder != "" && r.Holder == c.Holder
	}
}

// closed says whether calls pass and count: also once a forced state is over, which closes it in its generation.
func (r Record) closed(now int64) bool {
	forced := r.State == ForcedOpen || r.State == ForcedClosed
	return r.State == Closed || forced && 0 < r.OpenUntil && r.OpenUntil <= now
}

// at is the record as everybody has to read it at a time.
func (r Record) at(now int64) Record {
	if r.closed(now) {
		r.State, r.OpenUntil = Closed, 0
	}
	return r
}

// created: r is the item that a suspicion made of o, a candidate nobody had written about. Nothing else is new.
func (r Record) created(o Record) bool {
	return o.Gen == 0 && r.Gen == 1 && r.State == Closed && r.Window.Start > 0
}

// samples says whether the sample that the change expects is the one that runs.
func (r Record) samples(c Change) bool {
	return r.State == Closed && r.Gen > 0 && r.Gen == c.Gen && r.Window.Start == c.Window.Start
}

// Apply is the specification of the protocol: the record after the change, and whether its condition held. Every
// store must give the same.
func (c Change) Apply(r Record) (Record, bool) {
	if !c.holds(r) {
		return r, false
	}
	switch c.Op {
	case Trip, Reopen:
		r.State, r.Gen = Open, r.Gen+1
		r.OpenUntil, r.OpenFor, r.Opens, r.Why = c.Until, c.OpenFor, c.Opens, c.Why
		r.Holder, r.LeaseUntil, r.Passed = "", 0, 0
	case Acquire:
		r.State, r.Token, r.Holder, r.LeaseUntil = HalfOpen, r.Token+1, c.Holder, c.Until
	case Close:
		r.State, r.Gen, r.Opens, r.OpenUntil = Closed, r.Gen+1, 0, 0
		r.Holder, r.LeaseUntil, r.Passed, r.Window = "", 0, 0, Window{}
	case Pass:
		r.Holder, r.LeaseUntil, r.Passed = "", 0, r.Passed+1
	case Release:
		r.Holder, r.LeaseUntil = "", 0
	case Extend:
		r.OpenUntil = c.Until
	case Suspect:
		r.State, r.Gen, r.OpenUntil = Closed, max(r.Gen, 1), 0
		r.Window = Window{Start: c.Now, AfterCalm: c.Window.AfterCalm}
	case Ticket:
		r.Window.Tickets++
		return r, true
	case Count:
		r.Window.Failed += c.Window.Failed
		r.Window.OK += c.Window.OK
		r.Window.Slow += c.Window.Slow
		return r, true
	case Force:
		r = Record{State: c.State, Gen: r.Gen + 1, OpenUntil: c.Until, Token: r.Token, Why: c.Why}
	}
	r.Updated = c.Now
	return r, true
}

// made says that r is what the change makes: after a lost answer, or a second sending of the SDK's own, the
// condition fails although it was us.
func (c Change) made(r Record) bool {
	switch c.Op {
	case Acquire:
		return r.State == HalfOpen && r.Holder == c.Holder
	case Trip, Reopen:
		return r.State == Open && r.Gen == c.Gen+1 && r.Updated == c.Now && r.OpenUntil == c.Until
	case Close:
		return r.State == Closed && r.Gen == c.Gen+1 && r.Updated == c.Now
	case Suspect: // or another's of the same moment, which is as good
		return r.State == Closed && r.Window.Start == c.Now
	default:
		return false
	}
}

// before says that r is an older image of the same candidate than o.
func (r Record) before(o Record) bool {
	if r.Gen != o.Gen {
		return r.Gen < o.Gen
	}
	if r.Token != o.Token {
		return r.Token < o.Token
	}
	if r.Updated != o.Updated {
		return r.Updated < o.Updated
	}
	return r.Window.progress() < o.Window.progress()
}

// progress rises with every change of one sample.
func (w Window) progress() int64 { return w.Tickets + w.OK + 2*w.Failed }

// cooling: open because the provider asked for time, not because it failed.
func (r Record) cooling() bool { return (r.State == Open || r.State == HalfOpen) && r.OpenFor == 0 }
