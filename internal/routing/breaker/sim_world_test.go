package breaker

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// The fleet simulation runs the production code, thousands of processes of it, in one thread and in virtual time:
// what a seed gives once it gives always. A simWorld is its clock and its order of events. Work that waits is a
// strand, a coroutine that only the event which ends its wait resumes.
type simWorld struct {
	rng   *rand.Rand
	now   time.Duration // since simEpoch, by a clock that nobody has
	queue []simEvent    // a heap by time, then by order of arrival
	seq   uint64
	cur   *strand
	idle  []*strand
	all   []*strand
}

// simEvent resumes a strand, or does something.
type simEvent struct {
	at     time.Duration
	seq    uint64
	strand *strand
	do     func()
}

var simEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newSimWorld(seed, run uint64) *simWorld {
	return &simWorld{rng: rand.New(rand.NewPCG(seed, run))}
}

func (a simEvent) before(b simEvent) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (w *simWorld) at(t time.Duration, do func())            { w.push(simEvent{at: t, do: do}) }
func (w *simWorld) resumeAt(t time.Duration, strand *strand) { w.push(simEvent{at: t, strand: strand}) }

func (w *simWorld) push(e simEvent) {
	w.seq++
	e.seq = w.seq
	w.queue = append(w.queue, e)
	i := len(w.queue) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !w.queue[i].before(w.queue[up]) {
			return
		}
		w.queue[i], w.queue[up] = w.queue[up], w.queue[i]
		i = up
	}
}

func (w *simWorld) pop() simEvent {
	q := w.queue
	top, last := q[0], len(q)-1
	q[0], q[last] = q[last], simEvent{}
	q = q[:last]
	w.queue = q
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && q[down+1].before(q[down]) {
			down++
		}
		if !q[down].before(q[i]) {
			return top
		}
		q[i], q[down] = q[down], q[i]
		i = down
	}
}

// run lets the world go on until end, or until nothing is left to happen.
func (w *simWorld) run(end time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= end {
		e := w.pop()
		w.now = max(w.now, e.at)
		if e.strand != nil {
			w.resume(e.strand)
		} else {
			e.do()
		}
	}
}

// close ends the coroutines.
func (w *simWorld) close() {
	for _, s := range w.all {
		w.cur = s
		s.stop()
	}
}

// strand is a coroutine, used again for the next work when its own is done.
type strand struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	work  func()
}

// errSimOver unwinds the work of a frozen process that nobody wakes any more.
var errSimOver = errors.New("the simulation is over")

// do says whether the work was done to its end.
func (s *strand) do() (whole bool) {
	defer func() {
		if r := recover(); r != nil && r != errSimOver { //nolint:errorlint // it is the very value, not wrapped
			panic(r)
		}
	}()
	s.work()
	return true
}

// spawn begins work at once and returns when it ends or first waits.
func (w *simWorld) spawn(work func()) {
	var s *strand
	if n := len(w.idle); n > 0 {
		s, w.idle = w.idle[n-1], w.idle[:n-1]
	} else {
		s = &strand{}
		s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
			s.yield = yield
			for s.do() {
				w.idle = append(w.idle, s)
				if !yield(struct{}{}) {
					return
				}
			}
		})
		w.all = append(w.all, s)
	}
	s.work = work
	w.resume(s)
}

func (w *simWorld) resume(s *strand) {
	was := w.cur
	w.cur = s
	s.next()
	w.cur = was
}

// pause gives the thread away until an event resumes this strand.
func (w *simWorld) pause() {
	if !w.cur.yield(struct{}{}) {
		panic(errSimOver)
	}
}

func (w *simWorld) sleep(d time.Duration) {
	w.resumeAt(w.now+d, w.cur)
	w.pause()
}

func (w *simWorld) hit(p float64) bool { return p > 0 && w.rng.Float64() < p }

func (w *simWorld) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Float64()*float64(high-low))
}

// process is the world as one process sees it: with a clock that goes wrong by skew, and frozen while it has no
// request, as Lambda does it. What ends in a frozen process is heard of when it wakes.
type process struct {
	*simWorld
	skew    time.Duration
	gate    *Breakers
	path    *simPath
	awake   bool
	late    []simEvent
	waiters []simWaiter
}

type simWaiter struct {
	done   <-chan struct{}
	strand *strand
	id     uint64
}

var _ world = (*process)(nil)

func (p *process) now() time.Time  { return simEpoch.Add(p.simWorld.now + p.skew) }
func (p *process) chance() float64 { return p.rng.Float64() }

func (p *process) nonce() string {
	p.seq++
	return strconv.FormatUint(p.seq, 36)
}

func (p *process) spawn(work func()) {
	p.simWorld.spawn(func() {
		work()
		p.release()
	})
}

// release resumes those whose wait is over.
func (p *process) release() {
	p.waiters = slices.DeleteFunc(p.waiters, func(w simWaiter) bool {
		select {
		case <-w.done:
			p.resumeAt(p.simWorld.now, w.strand)
			return true
		default:
			return false
		}
	})
}

func (p *process) wait(_ context.Context, done <-chan struct{}, atMost time.Duration) {
	select {
	case <-done:
		return
	default:
	}
	if atMost <= 0 {
		return
	}
	p.seq++
	me := simWaiter{done, p.cur, p.seq}
	p.waiters = append(p.waiters, me)
	p.at(p.simWorld.now+atMost, func() {
		i := slices.IndexFunc(p.waiters, func(w simWaiter) bool { return w.id == me.id })
		if i >= 0 {
			p.waiters = slices.Delete(p.waiters, i, i+1)
			p.resume(me.strand)
		}
	})
	p.pause()
}

func (p *process) after(d time.Duration, f func()) (stop func() bool) {
	pending := true
	ring := func() {
		if pending {
			pending = false
			f()
		}
	}
	p.at(p.simWorld.now+d, func() {
		if pending && !p.awake {
			p.late = append(p.late, simEvent{do: ring})
			return
		}
		ring()
	})
	return func() bool {
		was := pending
		pending = false
		return was
	}
}

// sleep is that of work which the process may be frozen under.
func (p *process) sleep(d time.Duration) {
	p.simWorld.sleep(d)
	if !p.awake {
		p.late = append(p.late, simEvent{strand: p.cur})
		p.pause()
	}
}

// wake thaws the process: what it missed happens now.
func (p *process) wake() {
	p.awake = true
	for _, e := range p.late {
		e.at = p.simWorld.now
		p.push(e)
	}
	p.late = p.late[:0]
}

func (p *process) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return simContext{ctx, p.now().Add(d)}, func() {}
}

// simContext has a deadline in virtual time, by its process's clock. Only simPath heeds it.
type simContext struct {
	context.Context
	end time.Time
}

func (c simContext) Deadline() (time.Time, bool) { return c.end, true }
