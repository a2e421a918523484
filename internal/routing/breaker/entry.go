package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// entry is what this process knows about one candidate: a copy of the shared record, ahead of it by the changes
// whose writes haven't been answered. mu guards all of it; no store is called under it.
type entry struct {
	id      string
	world   world
	failing atomic.Bool // run isn't 0: readable without mu

	mu        sync.Mutex
	rec       Record
	base      int64  // generation last heard from the store
	dirty     bool   // rec holds a change that the store hasn't confirmed
	own       bool   // that change is nobody else's business: the run of one process, while there is no sample
	era       uint64 // rises with every entry to open or closed as seen here; permits carry it
	run       int    // failures in a row in this era; count sets it
	shut      int64  // Unix ms: closed, but this process doesn't call until then, and then one call first; 0: it does
	jitter    float64
	seq       uint64 // rises with every change made here
	writes    int    // unanswered
	acquiring bool   // a call of ours is trying to become the trial
	// unanswered is the nonce of such tries that the store didn't answer: it may hold the lease. silence counts them.
	unanswered string
	silence    int

	// What the sample needs to know.
	lease      time.Duration // the longest first token allowed to a call
	why        string        // kind of the latest failure here
	mute       int           // writes of samples in a row that came to nothing
	suspecting bool          // a sample is being opened

	// The age of the copy, by wall clock, so that a process frozen in between knows how old it is.
	readAt    int64 // the record held then; 0: never read
	triedAt   int64 // a read was tried then
	lookedAt  int64 // the copy was then no older than the store
	changedAt int64 // rec changed then
	early     float64
	reading   *reading // in flight
}

// reading is one read of the store for several candidates that any number of calls wait for.
type reading struct {
	done  chan struct{}
	at    int64     // it began, Unix ms
	until time.Time // no call waits for longer
}

// told is what a write of the store gave, and when the write began.
type told struct {
	rec     Record
	applied bool
	err     error
	at      int64 // Unix ms
}

// asked says that a read is on its way that may still be answered: not one that the process was frozen under.
func (e *entry) asked(now int64) bool {
	return e.reading != nil && e.reading.at <= now && now-e.reading.at < storeDeadline.Milliseconds()
}

// fresh says that the copy needs no reading.
func (e *entry) fresh(now int64, s *Settings) bool {
	at := max(e.readAt, e.triedAt)
	return at != 0 && at <= now && float64(now-at) < float64(e.limit(now, s))*(1-e.early)
}

// tooOld says that a call should wait for the reading in flight.
func (e *entry) tooOld(now int64, s *Settings) bool {
	return e.readAt == 0 || e.readAt > now || now-e.readAt >= e.limit(now, s)
}

// limit is the age in ms from which the copy is too old.
func (e *entry) limit(now int64, s *Settings) int64 {
	switch {
	case s.sampling(e, now):
		return ageSample
	case e.rec.State == Closed, e.rec.State == ForcedClosed, e.dirty:
		return ageClosed
	case e.rec.State == ForcedOpen, e.rec.State == Open && now < e.due():
		return ageOpen
	default:
		return ageDue
	}
}

// due is when this process holds the opening for over.
func (e *entry) due() int64 {
	return e.rec.OpenUntil + int64(e.jitter*float64(e.rec.OpenFor.Milliseconds()))
}

// judge says what a call gets now.
func (e *entry) judge(now int64) verdict {
	e.expire(now)
	v := e.rec.judge(now, e.due())
	if v == try && e.acquiring || v == admit && e.rec.State == Closed && e.isShut(now) {
		return refuse
	}
	return v
}

// isShut: this process doesn't call for now. An end further ahead than any was set is that of a clock put back since.
func (e *entry) isShut(now int64) bool { return now < e.shut && e.shut <= now+e.age() }

// expire closes what was forced and is over.
func (e *entry) expire(now int64) {
	if e.rec.State == ForcedOpen || e.rec.State == ForcedClosed {
		e.take(e.rec, now)
	}
}

func (e *entry) count(run int) {
	e.run = run
	e.failing.Store(run > 0)
}

// take makes r the record to go by. A deadline, once heard of, is not forgotten within its generation.
func (e *entry) take(r Record, now int64) {
	r = r.at(now)
	if r == e.rec {
		return
	}
	if r.Gen != e.rec.Gen && !r.created(e.rec) || (r.State == Closed) != (e.rec.State == Closed) {
		e.era++
		e.count(0)
		e.shut = 0
		e.jitter = e.world.chance() * openJitter
	} else {
		r.OpenUntil = max(r.OpenUntil, e.rec.OpenUntil)
	}
	e.rec, e.changedAt = r, now
}

// make applies the change here and now, before the store has heard of it. The sequence number goes with the write.
func (e *entry) make(c Change) (seq uint64, ok bool) {
	r, ok := c.Apply(e.rec)
	if !ok {
		return 0, false
	}
	e.take(r, c.Now)
	e.dirty = true
	e.own = e.own && c.Op != Trip
	e.seq++
	e.writes++
	return e.seq, true
}

// learn takes over what a read found that began at the time at. It may give a change to send.
func (e *entry) learn(r Record, at, now int64) (Change, bool) {
	e.read(at, now)
	if e.writes > 0 || e.acquiring {
		return Change{}, false // the answer of a write is on its way, and knows better
	}
	older := r.before(e.rec)
	if e.dirty {
		older = r.Gen < e.base
	}
	if since := now - e.changedAt; older && 0 <= since && since < lag.Milliseconds() {
		return Change{}, false
	}
	return e.meet(r, now)
}

// read notes what the copy's age counts from: when a call of the store began, since a process may be frozen under it.
func (e *entry) read(at, now int64) {
	if at < e.readAt && e.readAt <= now {
		return // another, later one was faster
	}
	e.readAt = at
	e.early = e.world.chance() * readJitter
}

// answered takes over the answer to the write of the change numbered seq. It may give one more change to send.
func (e *entry) answered(seq uint64, a told, now int64) (Change, bool) {
	e.writes--
	if a.err != nil {
		return Change{}, false // the change stays here until the store is met again
	}
	r := a.rec
	e.read(a.at, now)
	if a.applied {
		e.base = r.Gen
		if seq == e.seq {
			e.dirty = false
			if r.Gen != e.rec.Gen || r.Token >= e.rec.Token { // else a trial of ours was heard of before
				e.take(r, now)
			}
			return Change{}, false
		}
	}
	if e.writes > 0 {
		return Change{}, false
	}
	return e.meet(r, now)
}

// meet settles what holds when the store says r: r, unless this process opened, unheard, in the very generation
// that is still closed there. Then the opening is told with its own end, and without raising the exponent.
func (e *entry) meet(r Record, now int64) (Change, bool) {
	r = r.at(now)
	same := r.Gen == e.base || r.created(Record{Gen: e.base})
	if e.dirty && !e.own && r.State == Closed && same && e.rec.State == Open && e.rec.OpenUntil > now {
		e.writes++
		return Change{
			Op: Trip, Gen: r.Gen, Now: now, Until: e.rec.OpenUntil,
			OpenFor: e.rec.OpenFor, Opens: r.Opens, Why: e.rec.Why,
		}, true
	}
	e.dirty, e.own, e.base = false, false, r.Gen
	e.take(r, now)
	return Change{}, false
}

// status is the entry as /v1/status shows it.
func (e *entry) status(now int64) Status {
	e.expire(now)
	s := Status{
		Candidate: e.id, State: e.rec.State, Cooling: e.rec.cooling(), Generation: e.rec.Gen, Why: e.rec.Why,
		Sample: e.rec.Window,
	}
	switch {
	case e.rec.State == Closed && e.isShut(now):
		s.State, s.Local, s.Until = Open, true, time.UnixMilli(e.shut)
	case e.rec.State != Closed && e.rec.State != HalfOpen:
		s.Local, s.Until = e.dirty, e.until()
	}
	return s
}

// until is the end of an opening or of a forced state as this process sees it, zero for none.
func (e *entry) until() time.Time {
	if e.rec.OpenUntil == 0 {
		return time.Time{}
	}
	return time.UnixMilli(e.due())
}

// refusal tells a caller why and until when, as far as is known.
func (e *entry) refusal() *Refusal {
	r := &Refusal{State: e.rec.State, Cooling: e.rec.cooling(), Until: e.until()}
	switch e.rec.State {
	case HalfOpen:
		r.Until = time.UnixMilli(e.rec.LeaseUntil)
	case Closed:
		r.State, r.Until = Open, time.UnixMilli(e.shut)
	}
	return r
}
