package breaker

import (
	"context"
	"fmt"
	"time"
)

// simWatch is what sees all: it counts the figures of one run and says where the protocol broke a promise.
type simWatch struct {
	fleet *simFleet
	simFigures
	wrong []string // the first broken promises

	trials  int           // in flight
	outage  time.Duration // of the model, began then; 0: none, or it was noticed
	healing time.Duration // the model is well since then, the breaker not closed yet; 0: it is
	due     time.Duration // when a healing breaker has to be closed
	opened  time.Duration
	changed time.Duration // the state, last
	owed    time.Duration // the sample says open since then; 0: it doesn't
	writes  int           // since the second began
}

// simFigures are the figures of one run, or of many.
type simFigures struct {
	calls, falseTrips, missed       int
	trialsAtOnce, refused, admitted int
	well, denied                    int // calls while the model was well and not just back, those of them refused
	dead                            int // trials whose process died
	detection, recovery             simSpread
	healthy                         simSpread // writes in a second, while the model was well and the breaker closed
	idle                            int       // most of those, a minute after all was over
	peak                            int       // most writes in a second
	waited                          time.Duration
	lasted                          time.Duration
}

// simSpread is a number of values, their sum and the greatest.
type simSpread struct {
	n   int
	sum float64
	max float64
}

func (s *simSpread) add(v float64) {
	s.n++
	s.sum += v
	s.max = max(s.max, v)
}

func (s *simSpread) join(o simSpread) {
	s.n += o.n
	s.sum += o.sum
	s.max = max(s.max, o.max)
}

func (s simSpread) mean() float64 { return s.sum / float64(max(s.n, 1)) }

func (f *simFigures) join(o simFigures) {
	f.calls += o.calls
	f.falseTrips += o.falseTrips
	f.missed += o.missed
	f.refused += o.refused
	f.admitted += o.admitted
	f.dead += o.dead
	f.well += o.well
	f.denied += o.denied
	f.trialsAtOnce = max(f.trialsAtOnce, o.trialsAtOnce)
	f.detection.join(o.detection)
	f.recovery.join(o.recovery)
	f.healthy.join(o.healthy)
	f.peak, f.idle = max(f.peak, o.peak), max(f.idle, o.idle)
	f.waited = max(f.waited, o.waited)
	f.lasted += o.lasted
}

func newSimWatch(f *simFleet) *simWatch { return &simWatch{fleet: f, changed: -time.Hour} }

func (w *simWatch) blame(format string, args ...any) {
	if len(w.wrong) < 10 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s at %v: %s", w.fleet.name, w.fleet.now, fmt.Sprintf(format, args...)))
	}
}

// clean says that nothing goes wrong on the way to the store, so that its promises hold without exception.
func (w *simWatch) clean() bool {
	t := w.fleet.trouble
	return t.slow+t.throttled+t.lostBefore+t.lostAfter == 0 && len(t.away) == 0
}

// ill says that the model fails, or did so recently enough for its failures to be heard of only now.
func (w *simWatch) ill() bool {
	grace := w.fleet.model.patience + 15*time.Second
	for _, o := range w.fleet.model.outages {
		if (span{o.from, o.to + grace}).has(w.fleet.now) {
			return true
		}
	}
	return false
}

// entered: a request asked for a permit at the time at.
func (w *simWatch) entered(c *simCall, permit Permit, at time.Duration) {
	w.waits(w.fleet.now-at, patience+storeDeadline)
	w.obeyed(permit)
	well := w.healing == 0 && !w.ill()
	if well {
		w.well++
	}
	if permit == nil {
		w.refused++
		if well {
			w.denied++
		}
		return
	}
	w.admitted++
	p := permit.(*permitOf)
	c.trial, c.gen = p.trial != nil && p.trial.nonce == w.fleet.store.record.Holder, p.entry.rec.Gen
	if c.trial {
		c.nonce = p.trial.nonce
		w.trials++
		w.trialsAtOnce = max(w.trialsAtOnce, w.trials)
		if w.trials > 1 {
			w.blame("%d trials at once", w.trials)
		}
		return
	}
	r, late := w.fleet.store.record, ageClosed*time.Millisecond+w.fleet.trouble.stale+patience
	if w.clean() && p.trial == nil && r.State == Open && w.opened+late < w.fleet.now {
		w.blame("admitted %v after the opening %+v", w.fleet.now-w.opened, r)
	}
}

// permitOf is the permit's type where a parameter has its name.
type permitOf = permit

// settles: the change tells a trial's result.
func (c Change) settles() bool {
	return c.Op == Close || c.Op == Pass || c.Op == Reopen || c.Op == Release
}

// forced: by an operator.
func (r Record) forced() bool { return r.State == ForcedOpen || r.State == ForcedClosed }

// obeyed: a forced state holds everywhere, as soon as copies are as old as they may get.
func (w *simWatch) obeyed(p Permit) {
	r, known := w.fleet.store.record, w.changed+ageOpen*time.Millisecond+w.fleet.trouble.stale+patience
	over := r.OpenUntil > 0 && time.UnixMilli(r.OpenUntil).Sub(simEpoch)-2*w.fleet.skew < w.fleet.now
	if !w.clean() || over || w.fleet.now < known {
		return
	}
	if r.State == ForcedOpen && p != nil || r.State == ForcedClosed && p == nil {
		w.blame("%+v was not obeyed", r)
	}
}

// settled: a call's first token came, or it ended, or it died; from here on it is no trial any more.
func (w *simWatch) settled(c *simCall) {
	if c.trial {
		w.trials--
		c.trial = false
	}
}

// told: a call's end is known to its breaker, whatever it was. A trial is nobody's any more.
func (w *simWatch) told(c *simCall) {
	if w.clean() && c.nonce != "" && w.fleet.store.record.Holder == c.nonce {
		w.blame("an outcome of class %d kept its trial", c.outcome.Class)
	}
}

// died: the process went away under its call.
func (w *simWatch) died(c *simCall) {
	if c.trial {
		w.dead++
	}
	w.settled(c)
}

// waits checks how long the breaker held a request up.
func (w *simWatch) waits(d, bound time.Duration) {
	w.waited = max(w.waited, d)
	if d > bound+time.Millisecond {
		w.blame("a request waited %v for its breaker", d)
	}
}

// sent checks that a call's end writes only what it may.
func (w *simWatch) sent(c *simCall, change Change) {
	if !c.ending || !w.clean() {
		return
	}
	switch class := c.outcome.Class; {
	case (class == Cancelled || class == Excluded) && change.Op != Release && change.Op != Ticket:
		w.blame("a neutral outcome wrote %+v", change)
	case change.Op == Trip && !c.started && change.Gen != c.gen:
		w.blame("a result of generation %d wrote %+v", c.gen, change)
	}
}

// wrote checks a write that reached the store, and what it changed.
func (w *simWatch) wrote(c Change, before, after Record, applied bool) {
	w.writes++
	if !applied {
		return
	}
	switch {
	case after.Gen < before.Gen, after.Token < before.Token:
		w.blame("%+v fell to %+v", before, after)
	case before.State == Open && after.State == Open && c.Op != Extend && after.Gen == before.Gen &&
		after.OpenUntil != before.OpenUntil:
		w.blame("%+v extended %+v", c, before)
	case after.State == Closed && (after.Opens != 0 || after.Holder != ""):
		w.blame("closed with a past: %+v", after)
	case c.settles() && (c.Token != before.Token || c.Holder != before.Holder):
		w.blame("%+v settled another's trial: %+v", c, before)
	case after.Window.Tickets > int64(w.fleet.settings.withDefaults().Sample.Size):
		w.blame("more tickets than there are: %+v", after)
	case c.Op != Force && before.forced() && before.at(c.Now).forced():
		w.blame("%+v changed what an operator had set: %+v", c, before)
	}
	if w.owed == 0 && after.State == Closed && w.fleet.settings.Mode != ModeConsecutive &&
		w.fleet.settings.Sample.withDefaults().failing(after.Window) {
		w.owed = w.fleet.now
	}
	if before.State != after.State {
		w.turned(before, after)
	}
	w.due = w.dueOf(after)
}

func (w *simWatch) turned(before, after Record) {
	now := w.fleet.now
	w.changed, w.owed = now, 0
	switch {
	case after.State == Open:
		w.opened = now
		w.openedNow(before, after)
	case after.State == Closed && w.healing > 0:
		w.recovery.add((now - w.healing).Seconds())
		if w.clean() && w.fleet.stalls == 0 && now > w.due {
			w.blame("closed %v too late", now-w.due)
		}
		w.healing = 0
	}
}

func (w *simWatch) openedNow(before, after Record) {
	switch {
	case before.State == HalfOpen, after.cooling():
	case !w.ill():
		w.falseTrips++
	case w.outage > 0:
		w.detection.add((w.fleet.now - w.outage).Seconds())
		w.outage = 0
	}
}

// dueOf is when a breaker is closed at the latest, of a model that is well: what remains of its open time and 10 %, or of
// a lease, then the next request and its first token.
func (w *simWatch) dueOf(r Record) time.Duration {
	f := w.fleet
	until := r.OpenUntil + int64(openJitter*float64(r.OpenFor.Milliseconds()))
	if r.State == HalfOpen {
		until = r.LeaseUntil
	}
	next := time.Duration(25 / f.rate * float64(time.Second))
	return time.UnixMilli(until).Sub(simEpoch) + 2*f.skew + f.trouble.stale + storeDeadline + next + f.model.patience
}

// fails begins an outage of the model, to be noticed if it is called at all; heals ends it.
func (w *simWatch) fails() {
	if s := w.fleet.store.record.State; s == Closed || s == ForcedClosed {
		w.outage = w.fleet.now
	}
}

func (w *simWatch) heals() {
	if w.outage > 0 {
		w.missed++
		w.outage = 0
	}
	if w.fleet.store.record.State != Closed {
		w.healing = w.fleet.now
	}
}

// second ends a second.
func (w *simWatch) second() {
	w.peak = max(w.peak, w.writes)
	if now := w.fleet.now; !w.ill() && w.fleet.store.record.State == Closed && w.changed+2*time.Second < now {
		w.healthy.add(float64(w.writes))
		if w.changed+time.Minute < now {
			w.idle = max(w.idle, w.writes)
		}
	}
	if w.owed > 0 && w.clean() && w.owed+5*time.Second < w.fleet.now {
		w.blame("a trip was lost: %+v", w.fleet.store.record)
	}
	w.writes = 0
}

// end asks every process what it knows: all have come to agree with the store.
func (w *simWatch) end() {
	w.calls, w.lasted = w.fleet.calls, w.fleet.length
	if w.trials != 0 {
		w.blame("%d trials never ended", w.trials)
	}
	f, rounds := w.fleet, 1
	if !w.clean() {
		rounds = 4 // a process may hold the store for dead, and then has to tell it what happened meanwhile
	}
	var found []Status
	for range rounds {
		found = found[:0]
		t := f.now + longestPause + ageOpen*time.Millisecond
		for _, p := range f.idle {
			f.at(t, func() {
				f.spawn(func() {
					p.wake()
					p.gate.Snapshot(context.Background(), model)
					f.sleep(time.Second)
					found = append(found, p.gate.Snapshot(context.Background(), model)...)
					p.awake = false
				})
			})
		}
		f.store.simTrouble = simTrouble{}
		f.run(t + time.Minute)
	}
	for _, s := range found {
		if s.Generation != f.store.record.Gen {
			w.blame("no agreement: %+v, %+v", s, f.store.record)
		}
	}
}
