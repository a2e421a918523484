package breaker

import "sync/atomic"

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
	gate  *Breakers
	entry *entry
	trial *trial // nil for an ordinary call
	era   uint64 // guarded by entry.mu
	stage atomic.Uint32
}

func (p *permit) Trial() bool { return p.trial != nil }

func (p *permit) Started() {
	if p.stage.CompareAndSwap(entered, started) && p.trial != nil {
		p.settle(Outcome{Class: Success})
	}
}

func (p *permit) Done(o Outcome) {
	was := p.stage.Swap(ended)
	switch {
	case was == ended:
	case was == entered && p.trial != nil && p.settle(o):
	default:
		p.report(o, was == started)
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

// report moves the run. Results of another era are stale, except that a stream that broke late, after it had
// started, is a fresh failure of the model as it is now.
func (p *permit) report(o Outcome, late bool) {
	e := p.entry
	e.mu.Lock()
	if o.Class == Success {
		if p.era == e.era {
			e.run = 0
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
	e, now := p.entry, unixMilli(p.gate.world)
	e.expire(now)
	switch {
	case e.rec.State == Open && o.Class == Cool:
		c, ok = p.gate.settings.afterCool(e.rec, o, now)
	case e.rec.State == Closed && current:
		if o.Class == Failure {
			e.run++
		}
		c, ok = p.gate.settings.afterCall(e.rec, o, e.run, now)
	}
	if ok {
		seq, ok = e.make(c)
	}
	return c, seq, ok
}

// free is the permit of a breaker that is switched off.
type free struct{}

func (free) Trial() bool  { return false }
func (free) Started()     {}
func (free) Done(Outcome) {}
