package breaker

import (
	"sync/atomic"
	"time"
)

// trial names the half-open call in the store: its result counts only while all three are the record's own.
type trial struct {
	gen, token int64
	nonce      string
}

// The stages of a permit, in order.
const (
	entered uint32 = iota
	started
	ended
)

// permit is the right to make one call.
type permit struct {
	gate   *Breakers
	entry  *entry
	trial  *trial        // nil for an ordinary call
	ticket *ticket       // nil for one that is in no sample
	era    uint64        // guarded by entry.mu
	began  time.Duration // since the gate was made; where slow calls count
	first  bool          // the first call after this process had shut the candidate off
	stage  atomic.Uint32
}

func (p *permit) Trial() bool { return p.trial != nil }

func (p *permit) Started() {
	if !p.stage.CompareAndSwap(entered, started) {
		return
	}
	if p.trial != nil {
		p.settle(Outcome{Class: Success})
	} else if p.gate.settings.Mode != ModeConsecutive {
		p.sample(Outcome{Class: Success}, false)
	}
}

func (p *permit) Done(o Outcome) {
	was := p.stage.Swap(ended)
	if was == ended || was == entered && p.trial != nil && p.settle(o) {
		return
	}
	if p.gate.settings.Mode == ModeConsecutive {
		p.report(o, was == started)
		return
	}
	var suspicion <-chan struct{}
	if was == entered || o.Class != Success {
		suspicion = p.sample(o, was == started)
	}
	p.report(o, was == started)
	if p.ticket != nil || suspicion != nil {
		p.gate.flush(p.writing(), suspicion)
	}
}

// settle tells the trial's result. It says false if the trial is not this permit's any more.
func (p *permit) settle(o Outcome) bool {
	e, now := p.entry, unixMilli(p.gate.world)
	e.mu.Lock()
	c := p.gate.settings.afterTrial(e.rec, o, *p.trial, now)
	seq, ok := e.make(c)
	if ok {
		p.era = e.era // a trial that closed the breaker goes on in the generation it made
	}
	e.mu.Unlock()
	if ok {
		p.gate.send(e, c, seq, o.Class)
	}
	return ok
}

// sample tells the fleet's sample how the call began or failed; without a sample a bad call opens one. late: it had
// begun well. The channel is closed when a sample has been opened.
func (p *permit) sample(o Outcome, late bool) <-chan struct{} {
	bad := o.Class == Failure || o.Class == Sample
	if !bad && o.Class != Success {
		return nil
	}
	slow := !late && p.slow()
	if !bad && !slow && !p.first && p.ticket == nil {
		return nil
	}
	if p.ticket != nil {
		p.gate.mark(p.entry, p.ticket, count(bad, slow, late))
	}
	e := p.entry
	e.mu.Lock()
	current := e.rec.State == Closed && (late || p.era == e.era)
	if current && p.first && !bad {
		e.shut = 0
	}
	if bad {
		e.why = o.Why
	}
	e.mu.Unlock()
	if current && (bad || slow) {
		return p.gate.suspect(e)
	}
	return nil
}

// count is what a call adds to the sample. One that began well and ends badly takes its good beginning back.
func count(bad, slow, late bool) Window {
	var w Window
	if bad {
		w.Failed = 1
		if late {
			w.OK = -1
		}
	} else {
		w.OK = 1
	}
	if slow {
		w.Slow = 1
	}
	return w
}

func (p *permit) slow() bool {
	after := p.gate.settings.Sample.SlowAfter
	return after > 0 && p.gate.world.now().Sub(p.gate.made)-p.began > after
}

// writing is closed when the ticket's writes have ended, nil if none is under way.
func (p *permit) writing() <-chan struct{} {
	if p.ticket == nil {
		return nil
	}
	p.entry.mu.Lock()
	defer p.entry.mu.Unlock()
	return p.ticket.done
}

// report moves the run. Results of another era are stale, except that a stream that broke late, after it had
// started, is a fresh failure of the model as it is now.
func (p *permit) report(o Outcome, late bool) {
	e := p.entry
	if o.Class == Success && !e.failing.Load() {
		return // the usual end, without a lock
	}
	e.mu.Lock()
	if o.Class == Success {
		if p.era == e.era {
			e.count(0)
		}
		e.mu.Unlock()
		return
	}
	c, seq, ok := p.judge(o, late || p.era == e.era)
	e.mu.Unlock()
	if ok {
		p.gate.send(e, c, seq, o.Class)
	}
}

// judge makes the change that an ordinary call's bad end asks for, if it does. current: it counts in this era.
func (p *permit) judge(o Outcome, current bool) (c Change, seq uint64, ok bool) {
	e, s, now := p.entry, p.gate.settings, unixMilli(p.gate.world)
	e.expire(now)
	switch {
	case e.rec.State == Open && o.Class == Cool:
		c, ok = s.afterCool(e.rec, o, now)
	case e.rec.State == Closed && current:
		if o.Class == Failure {
			e.count(e.run + 1)
		}
		if p.first && e.isShut(now) {
			e.shut = now // the next call is the first again, unless the run says otherwise
		}
		if o.Class == Failure && s.Mode != ModeConsecutive {
			p.alone(o, now)
			return Change{}, 0, false
		}
		c, ok = s.afterCall(e.rec, o, e.run, now)
	}
	if ok {
		seq, ok = e.make(c)
	}
	return c, seq, ok
}

// alone does what a run means where the fleet's sample decides: with the store away, and no sample to be had, this
// process opens for itself; in hybrid, or where samples can't be written, it stops calling for a moment.
func (p *permit) alone(o Outcome, now int64) {
	e, s := p.entry, p.gate.settings
	switch {
	case e.run < s.FailureThreshold:
	case p.gate.link.dead():
		c := s.opening(Trip, e.rec, o, now)
		if _, ok := e.make(c); ok {
			e.writes--
			e.own = true
			p.gate.tell(e, c, o.Class, errAway)
		}
	case (s.Mode == ModeHybrid || e.mute >= missesToAway) && !e.isShut(now):
		e.shut = now + shutFor.Milliseconds()
	}
}

// free is the permit of a breaker that is switched off.
type free struct{}

func (free) Trial() bool  { return false }
func (free) Started()     {}
func (free) Done(Outcome) {}
