package breaker

import (
	"context"
	"errors"
	"time"
)

// simStore is the shared store: the protocol's own specification, with all that a network and a distributed table
// do to its callers.
type simStore struct {
	*simWorld
	simTrouble
	record Record
	past   []simVersion // that a stale read may still give, oldest first
	watch  *simWatch
}

type simVersion struct {
	until  time.Duration
	record Record
}

// simTrouble is what goes wrong between a process and the store; shares are of its calls.
type simTrouble struct {
	stale      time.Duration // how far a read may be behind; most are less than 15 ms
	slow       float64       // answered after 60 to 280 ms
	throttled  float64       // refused at once, not done
	lostBefore float64       // never arrives, never answered
	lostAfter  float64       // done, never answered
	away       []span        // nothing is answered, or all is refused
	refusing   bool
}

// span is a time, in the world's own.
type span struct{ from, to time.Duration }

func (s span) has(t time.Duration) bool { return s.from <= t && t < s.to }

// simPath is one process's way to the store.
type simPath struct {
	*process
	store *simStore
	call  *simCall // that the process has
}

var (
	errThrottled = errors.New("throttled")
	errRefused   = errors.New("connection refused")
)

// arrive lets the first part of a call's time go by. nil: it reached the store.
func (p *simPath) arrive(ctx context.Context) error {
	s, w := p.store, p.simWorld
	switch {
	case inAny(s.away, w.now) && s.refusing:
		p.sleep(w.between(time.Millisecond, 3*time.Millisecond))
		return errRefused
	case inAny(s.away, w.now), w.hit(s.lostBefore):
		return p.hang(ctx)
	}
	d := w.between(time.Millisecond, 3*time.Millisecond)
	if w.hit(s.slow) {
		d = w.between(60*time.Millisecond, 280*time.Millisecond)
	}
	p.sleep(d)
	if w.hit(s.throttled) {
		return errThrottled
	}
	return nil
}

// answer lets the rest of a call's time go by.
func (p *simPath) answer(ctx context.Context) error {
	if p.hit(p.store.lostAfter) {
		return p.hang(ctx)
	}
	p.sleep(p.between(time.Millisecond, 3*time.Millisecond))
	if end, ok := ctx.Deadline(); ok && p.now().After(end) && p.hit(0.5) { // frozen meanwhile
		return context.DeadlineExceeded
	}
	return nil
}

func (p *simPath) hang(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		p.sleep(max(end.Sub(p.now()), 0))
	}
	return context.DeadlineExceeded
}

func (p *simPath) Load(ctx context.Context, candidates ...string) (map[string]Record, error) {
	if err := p.arrive(ctx); err != nil {
		return nil, err
	}
	r := p.store.asOf(p.simWorld.now - p.store.behind())
	if err := p.answer(ctx); err != nil {
		return nil, err
	}
	found := make(map[string]Record, len(candidates))
	for _, c := range candidates {
		found[c] = r
	}
	return found, nil
}

func (p *simPath) Look(ctx context.Context, _ string) (Record, error) {
	if err := p.arrive(ctx); err != nil {
		return Record{}, err
	}
	r := p.store.record
	return r, p.answer(ctx)
}

func (p *simPath) Update(ctx context.Context, _ string, c Change) (Record, bool, error) {
	p.store.watch.sent(p.call, c)
	if err := p.arrive(ctx); err != nil {
		return Record{}, false, err
	}
	r, applied := p.store.apply(c)
	if err := p.answer(ctx); err != nil {
		return Record{}, false, err
	}
	return r, applied || c.made(r), nil
}

func (s *simStore) apply(c Change) (Record, bool) {
	before := s.record
	r, applied := c.Apply(before)
	if applied {
		s.keep(before)
		s.record = r
	}
	s.watch.wrote(c, before, r, applied)
	return r, applied
}

// behind is how old a read's answer is.
func (s *simStore) behind() time.Duration {
	return min(time.Duration(15*s.rng.ExpFloat64()*float64(time.Millisecond)), s.stale)
}

// keep remembers the version that ends now, for as long as a read may give it.
func (s *simStore) keep(r Record) {
	old := 0
	for old < len(s.past) && s.past[old].until < s.now-s.stale {
		old++
	}
	s.past = append(s.past[old:], simVersion{s.now, r})
}

func (s *simStore) asOf(t time.Duration) Record {
	for _, v := range s.past {
		if t < v.until {
			return v.record
		}
	}
	return s.record
}

func inAny(spans []span, t time.Duration) bool {
	for _, s := range spans {
		if s.has(t) {
			return true
		}
	}
	return false
}
