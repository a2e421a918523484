package breaker

import (
	"context"
	"errors"
	"math"
	"time"
)

// Sampling are the settings of the fleet's sample: a failure opens one, the next Size calls of all processes are its
// tickets, and how they end decides whether the breaker opens (modes window and hybrid).
type Sampling struct {
	Size        int           // calls; 20
	MinCalls    int           // before it is judged; 5, Size at most
	FailureRate float64       // share of failures that opens; 0.5
	SlowAfter   time.Duration // a call without a first token by then is slow; 0: none is
	SlowRate    float64       // share of slow calls that opens; 1
}

const (
	sampleGap    = 1800 * time.Millisecond // between the starts of two samples
	sampleAge    = 10 * time.Second        // a full sample is over then, or when the latest first token would have come
	sampleLife   = 10 * time.Minute        // any sample is over then
	sampleMemory = 30 * time.Minute        // a calm sample makes those that begin within it harder to convince
	moreIfCalm   = 3                       // by so many failures
	shutFor      = 2 * time.Second         // a run in one process closes the candidate off there
)

func (s Sampling) withDefaults() Sampling {
	s.Size = orDefault(s.Size, 20)
	s.MinCalls = min(orDefault(s.MinCalls, 5), s.Size)
	if s.FailureRate <= 0 {
		s.FailureRate = 0.5
	}
	if s.SlowRate <= 0 {
		s.SlowRate = 1
	}
	return s
}

// whole is how much of a full sample a share is.
func (s Sampling) whole(rate float64) int64 {
	return min(max(int64(math.Ceil(rate*float64(s.Size)-1e-9)), 1), int64(s.Size))
}

// need is how many of n tickets must be bad: on the line from all of MinCalls to whole of Size, and after a calm
// sample some more. It says false while there are too few tickets to judge.
func (s Sampling) need(n, whole int64, afterCalm bool) (int64, bool) {
	least, size := int64(s.MinCalls), int64(s.Size)
	if afterCalm {
		least, whole = min(least+moreIfCalm, size), min(whole+moreIfCalm, size)
	}
	switch {
	case n < least:
		return 0, false
	case least >= whole:
		return whole, true
	}
	line := (n - least) * (whole - least)
	return least + (line+size-least-1)/(size-least), true
}

// reached says that bad of n tickets are as many as a rate asks for.
func (s Sampling) reached(bad, n int64, rate float64, afterCalm bool) bool {
	need, judged := s.need(n, s.whole(rate), afterCalm)
	return judged && bad >= need
}

// failing and slow say that the sample opens the breaker.
func (s Sampling) failing(w Window) bool {
	return s.reached(w.Failed, w.Tickets, s.FailureRate, w.AfterCalm)
}

func (s Sampling) slow(w Window) bool {
	return s.SlowAfter > 0 && s.reached(w.Slow, w.Tickets, s.SlowRate, w.AfterCalm)
}

// calm: the candidate answered, and would not have been opened even without what samples remember.
func (s Sampling) calm(w Window) bool {
	w.AfterCalm = false
	return w.OK > 0 && !s.failing(w) && !s.slow(w)
}

// decided says that the sample can't open the breaker any more. age is how old a full one may be, in ms; by more no clock
// is wrong.
func (s Sampling) decided(w Window, now, age int64) bool {
	size := int64(s.Size)
	good := w.OK > size-s.whole(s.FailureRate)
	if s.SlowAfter > 0 {
		good = good && w.OK+w.Failed-w.Slow > size-s.whole(s.SlowRate)
	}
	return good || now >= w.Start+sampleLife.Milliseconds() || now <= w.Start-age
}

// over says that the next sample may take its place: it is decided, or full and three quarters settled. Some callers
// leave and some processes die; waiting for those would hide an outage that began under the sample. One that isn't
// full goes on, however slowly the calls come.
func (s Sampling) over(w Window, now, age int64) bool {
	full := w.Tickets >= int64(s.Size)
	return full && (4*(w.OK+w.Failed) >= 3*w.Tickets || now >= w.Start+age) || s.decided(w, now, age)
}

// gives says that the record's sample has a ticket for a call that begins now.
func (s Sampling) gives(r Record, now, age int64) bool {
	return r.State == Closed && r.Window.Tickets < int64(s.Size) && !s.over(r.Window, now, age)
}

// sampling says that the next call would ask for a ticket.
func (s *Settings) sampling(e *entry, now int64) bool {
	return s.Mode != ModeConsecutive && e.rec.Window.Start > 0 && s.Sample.gives(e.rec, now, e.age())
}

// suspicion is the change that opens a sample, if the time for one has come.
func (s Sampling) suspicion(r Record, now, age int64) (Change, bool) {
	w := r.Window
	soon := now < w.Start+sampleGap.Milliseconds() && now > w.Start-age
	if r.State != Closed || w.Start > 0 && (soon || !s.over(w, now, age)) {
		return Change{}, false
	}
	c := Change{Op: Suspect, Gen: r.Gen, Now: now, Window: Window{Start: w.Start}}
	c.Window.AfterCalm = w.Start > 0 && now-w.Start <= sampleMemory.Milliseconds() && s.calm(w)
	return c, true
}

// verdict is the change that a sample asks for, if it does. why is the kind of a failure.
func (s Settings) verdict(r Record, why string, now int64) (Change, bool) {
	slow := s.Sample.slow(r.Window)
	if r.State != Closed || !slow && !s.Sample.failing(r.Window) {
		return Change{}, false
	}
	if slow {
		why = "slow"
	}
	return s.opening(Trip, r, Outcome{Class: Failure, Why: why}, now), true
}

// age is how old a full sample of this candidate may be in ms, by the longest first token allowed to a call of this
// process.
func (e *entry) age() int64 { return max(sampleAge, e.lease+leaseMargin).Milliseconds() }

// ticket is a call's place in the sample. Its writes follow one another, beside the call. entry.mu guards it.
type ticket struct {
	gen, window int64
	asked       bool
	lost        bool          // there is none, or what became of it isn't known: nothing more is told
	todo        []Window      // to be added
	done        chan struct{} // closed when the writes under way have ended; nil: there are none
}

// next is the ticket's next write, as far as e knows. Where the record has moved on it would fail, and a decided sample
// learns nothing from it.
func (t *ticket) next(e *entry, s Sampling, now int64) (Change, bool) {
	r := e.rec
	t.lost = t.lost || r.State != Closed || r.Gen != t.gen || r.Window.Start != t.window || s.decided(r.Window, now, e.age())
	t.lost = t.lost || !t.asked && r.Window.Tickets >= int64(s.Size)
	c := Change{Op: Ticket, Gen: t.gen, Now: now, Window: Window{Start: t.window, Tickets: int64(s.Size)}}
	switch {
	case !t.asked && !t.lost:
		t.asked = true
	case t.lost || len(t.todo) == 0:
		close(t.done)
		t.done = nil
		return Change{}, false
	default:
		c.Op, c.Window = Count, t.todo[0]
		c.Window.Start = t.window
		t.todo = t.todo[1:]
	}
	return c, true
}

// mark has the ticket ask for its place, or tell how its call goes.
func (b *Breakers) mark(e *entry, t *ticket, add ...Window) {
	e.mu.Lock()
	t.todo = append(t.todo, add...)
	idle := t.done == nil && !t.lost
	if idle {
		t.done = make(chan struct{})
	}
	e.mu.Unlock()
	if idle {
		b.spawn(func() { b.follow(e, t) })
	}
}

// follow makes the ticket's writes until none is left, each after a look: in a large fleet the last ticket goes before
// others' copies say so, and most samples are over by the time that a call of theirs ends.
func (b *Breakers) follow(e *entry, t *ticket) {
	for {
		e.mu.Lock()
		old := !t.lost && (!t.asked || len(t.todo) > 0) && e.older(unixMilli(b.world))
		e.mu.Unlock()
		if old {
			b.reread(e)
		}
		e.mu.Lock()
		c, more := t.next(e, b.settings.Sample, unixMilli(b.world))
		e.mu.Unlock()
		if !more {
			return
		}
		a := b.write(e, c)
		if !a.applied {
			e.mu.Lock()
			t.lost = true
			e.mu.Unlock()
		}
		b.heard(e, a)
	}
}

// heard takes over the answer to a write of the sample, and opens the breaker if the sample asks for it: whoever sees
// that first.
func (b *Breakers) heard(e *entry, a told) {
	e.mu.Lock()
	if a.err != nil {
		e.mute++
		e.mu.Unlock()
		return
	}
	e.mute, e.lookedAt = 0, a.at
	now := unixMilli(b.world)
	var seq uint64
	c, more := e.learn(a.rec, a.at, now)
	if !more && e.writes == 0 && !e.dirty && e.rec.Gen == a.rec.Gen {
		if c, more = b.settings.verdict(e.rec, e.why, now); more {
			seq, more = e.make(c)
		}
	}
	e.mu.Unlock()
	if more {
		b.deliver(e, c, seq, Failure)
	}
}

// suspect opens a sample, if the time for one has come. The channel, nil if there is nothing to do, is closed when
// that is done.
func (b *Breakers) suspect(e *entry) <-chan struct{} {
	e.mu.Lock()
	now := unixMilli(b.world)
	_, due := b.settings.Sample.suspicion(e.rec, now, e.age())
	if !due || e.suspecting {
		e.mu.Unlock()
		return nil
	}
	e.suspecting = true
	old := e.older(now)
	e.mu.Unlock()
	done := make(chan struct{})
	b.spawn(func() {
		defer close(done)
		b.open(e, old)
		e.mu.Lock()
		e.suspecting = false
		e.mu.Unlock()
	})
	return done
}

// open opens a sample: on a copy that is old only after another look, since others have seen failures too.
func (b *Breakers) open(e *entry, old bool) {
	if old && !b.reread(e) {
		return
	}
	e.mu.Lock()
	c, due := b.settings.Sample.suspicion(e.rec, unixMilli(b.world), e.age())
	e.mu.Unlock()
	if !due {
		return
	}
	a := b.write(e, c)
	if a.err == nil && !a.applied && c.holds(a.rec) {
		a.err = errUnwritable
	}
	b.heard(e, a)
}

// older says that the copy is too old to write by.
func (e *entry) older(now int64) bool {
	return e.lookedAt == 0 || e.lookedAt > now || now-e.lookedAt > ageSample
}

// errUnwritable: the store refuses what its own record allows. There is no sample to be had with such an item.
var errUnwritable = errors.New("breaker: item is not ours to write")

func (b *Breakers) reread(e *entry) bool {
	at := unixMilli(b.world)
	if !b.link.ready(at) {
		b.heard(e, told{err: errAway})
		return false
	}
	ctx, cancel := b.world.within(context.Background(), storeDeadline)
	defer cancel()
	r, err := b.link.look(ctx, e.id)
	if err != nil {
		b.heard(e, told{err: errAway})
		return false
	}
	e.mu.Lock()
	e.lookedAt = at
	c, more := e.learn(r, at, unixMilli(b.world))
	e.mu.Unlock()
	if more {
		b.deliver(e, c, 0, Failure)
	}
	return true
}

// flush waits, no longer than for a read, until the writes that these channels stand for have ended: a process may be
// frozen once its answer is out.
func (b *Breakers) flush(writes ...<-chan struct{}) {
	until := b.world.now().Add(b.link.wait())
	for _, done := range writes {
		if done != nil {
			b.world.wait(context.Background(), done, until.Sub(b.world.now()))
		}
	}
}
