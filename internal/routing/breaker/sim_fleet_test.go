package breaker

import (
	"context"
	"log/slog"
	"math"
	"time"
)

// simModel is the upstream: when it fails, how, and how long things take.
type simModel struct {
	errors   float64 // background, of all calls
	late     float64 // of those: the stream breaks after it began
	outages  []span
	share    float64       // of calls that fail in an outage
	hangs    bool          // an outage shows as time-outs, not as fast errors
	limits   []span        // calls are rate-limited
	leave    float64       // callers who leave, of all calls
	patience time.Duration // the first token's clock
	length   time.Duration // mean time from first to last token
}

// simFleet is one run: a model, a store, processes that each have one request at a time, and their traffic.
type simFleet struct {
	*simWorld
	simPlan
	store  *simStore
	watch  *simWatch
	idle   []*process
	born   int
	calls  int
	turned int // arrivals that found no idle process
}

// simPlan says what a run is.
type simPlan struct {
	name      string
	settings  Settings
	model     simModel
	trouble   simTrouble
	processes int
	rate      float64       // requests a second
	skew      time.Duration // how wrong a clock may be, either way
	trialDies float64       // trials whose process dies under them
	callDies  float64
	stalls    float64 // calls whose process stands still for up to a minute before it tells how they ended
	length    time.Duration
}

// simCall is a request as the checks see it.
type simCall struct {
	trial, started bool
	nonce          string // of a trial
	gen            int64
	outcome        Outcome
	ending         bool
}

func newSimFleet(p simPlan, seed, run uint64) *simFleet {
	w := newSimWorld(seed, run)
	f := &simFleet{simWorld: w, simPlan: p}
	f.watch = newSimWatch(f)
	f.store = &simStore{simWorld: w, simTrouble: p.trouble, watch: f.watch}
	for range p.processes {
		f.idle = append(f.idle, f.process())
	}
	return f
}

// process is a new one, its gate cold.
func (f *simFleet) process() *process {
	f.born++
	p := &process{simWorld: f.simWorld, skew: f.between(-f.skew, f.skew)}
	p.path = &simPath{process: p, store: f.store}
	p.gate = newIn(p, f.settings, p.path, slog.New(slog.DiscardHandler))
	return p
}

// play runs the plan to its end, lets all calls end, and asks every process what it knows.
func (f *simFleet) play() {
	defer f.close()
	f.at(0, f.arrive)
	for t := time.Second; t < f.length; t += time.Second {
		f.at(t, f.watch.second)
	}
	for _, o := range f.model.outages {
		f.at(o.from, f.watch.fails)
		f.at(o.to, f.watch.heals)
	}
	f.run(math.MaxInt64)
	f.watch.end()
}

// arrive takes a request, and waits for the next: a Poisson process.
func (f *simFleet) arrive() {
	next := f.now + time.Duration(f.rng.ExpFloat64()/f.rate*float64(time.Second))
	if next < f.length {
		f.at(next, f.arrive)
	}
	f.calls++
	n := len(f.idle)
	if n == 0 {
		f.turned++
		return
	}
	i := f.rng.IntN(n)
	p := f.idle[i]
	f.idle[i] = f.idle[n-1]
	f.idle = f.idle[:n-1]
	f.spawn(func() {
		p.wake()
		if f.request(p) {
			p.awake = false
		} else {
			p = f.process() // the old one is dead: what it had in flight ends, and nobody hears of it
		}
		f.idle = append(f.idle, p)
	})
}

// request is one request from its arrival to its end. It says false if the process died under it.
func (f *simFleet) request(p *process) (alive bool) {
	ctx := context.Background()
	call := &simCall{gen: -1}
	p.path.call = call
	at := f.now
	p.gate.Refresh(ctx, model)
	permit, err := p.gate.Enter(ctx, model, f.model.patience)
	f.watch.entered(call, permit, at)
	if err != nil {
		f.sleep(f.between(time.Second, 2*f.model.length)) // another candidate answers
		return true
	}
	a := f.answer()
	if f.hit(f.dies(call)) {
		f.sleep(f.between(0, a.first))
		f.watch.died(call)
		return false
	}
	f.sleep(a.first)
	f.watch.settled(call)
	if f.hit(f.stalls) {
		f.sleep(f.between(0, time.Minute))
	}
	if a.begins {
		call.started = true
		f.report(permit.Started)
		f.sleep(a.rest)
	}
	call.outcome, call.ending = a.outcome, true
	f.report(func() { permit.Done(a.outcome) })
	f.watch.told(call)
	return true
}

func (f *simFleet) dies(c *simCall) float64 {
	if c.trial {
		return f.trialDies
	}
	return f.callDies
}

// report tells the breaker a fact, and the checks how long that took.
func (f *simFleet) report(fact func()) {
	at := f.now
	fact()
	f.watch.waits(f.now-at, patience)
}

// simAnswer is what the model will do to one call.
type simAnswer struct {
	first   time.Duration // until the first token, or until the failure before it
	begins  bool
	rest    time.Duration
	outcome Outcome
}

func (f *simFleet) answer() simAnswer {
	m := f.model
	a := simAnswer{first: f.firstToken(), begins: true, rest: time.Duration(f.rng.ExpFloat64() * float64(m.length))}
	end := f.now + a.first + a.rest
	switch {
	case inAny(m.outages, f.now) && f.hit(m.share):
		a.fail(f.between(200*time.Millisecond, 400*time.Millisecond))
		if m.hangs {
			a.first = m.patience
		}
	case inAny(m.limits, f.now):
		a.fail(100 * time.Millisecond)
		a.outcome = Outcome{Class: Cool, RetryAfter: 20 * time.Second, Why: "rate_limited"}
	case m.breaks(f.now, end) > 0 && f.hit(m.share/2):
		a.cut(m.breaks(f.now, end) - f.now + f.between(0, time.Second))
	case f.hit(m.errors * m.late):
		a.cut(a.first + time.Duration(f.rng.Float64()*float64(a.rest)))
	case f.hit(m.errors * (1 - m.late)):
		a.fail(f.between(200*time.Millisecond, 400*time.Millisecond))
	case f.hit(m.leave):
		a.outcome = Outcome{Class: Cancelled}
		a.first, a.begins = time.Duration(f.rng.Float64()*float64(a.first)), false
	}
	return a
}

// fail makes the answer a failure before the first token.
func (a *simAnswer) fail(after time.Duration) { a.first, a.begins, a.outcome = after, false, failed }

// cut ends the answer that long after its call, with a failure.
func (a *simAnswer) cut(after time.Duration) {
	if after <= a.first {
		a.fail(after)
		return
	}
	a.rest, a.outcome = after-a.first, failed
}

// breaks gives the beginning of an outage in that time, 0 for none.
func (m simModel) breaks(from, to time.Duration) time.Duration {
	for _, o := range m.outages {
		if from < o.from && o.from < to {
			return o.from
		}
	}
	return 0
}

// firstToken is log-normal around 0.7 s.
func (f *simFleet) firstToken() time.Duration {
	d := time.Duration(0.7 * math.Exp(0.5*f.rng.NormFloat64()) * float64(time.Second))
	return min(max(d, 100*time.Millisecond), f.model.patience*9/10)
}
