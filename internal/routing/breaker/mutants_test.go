package breaker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// step is what a store does with a change: the record that it makes of another, and whether it made it.
type step func(r Record, c Change) (Record, bool)

// broken is a store whose protocol is another one.
type broken struct {
	*Memory
	step step
}

func (b broken) Update(_ context.Context, id string, c Change) (Record, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.step(b.records[id], c)
	if ok {
		b.records[id] = r
	}
	return r, ok || c.made(r), nil
}

// seeing is the protocol applied to something else than what there is.
func seeing(fault func(r Record, c Change) (Record, Change)) step {
	return func(r Record, c Change) (Record, bool) {
		seen, change := fault(r, c)
		if after, ok := change.Apply(seen); ok {
			return after, true
		}
		return r, false
	}
}

// leaving is the protocol, and then something else.
func leaving(fault func(r Record, c Change) Record) step {
	return func(r Record, c Change) (Record, bool) {
		after, ok := c.Apply(r)
		if ok {
			after = fault(after, c)
		}
		return after, ok
	}
}

// fault is a condition left out, or a write gone wrong.
type fault struct {
	name string
	step step
}

func faults() []fault {
	trials := func(c Change) bool { return c.Op == Close || c.Op == Pass || c.Op == Reopen || c.Op == Release }
	return []fault{
		{"no token in the fence", seeing(func(r Record, c Change) (Record, Change) {
			if trials(c) {
				c.Token = r.Token
			}
			return r, c
		})},
		{"no nonce in the fence", seeing(func(r Record, c Change) (Record, Change) {
			if trials(c) {
				c.Holder = r.Holder
			}
			return r, c
		})},
		{"no generation in the fence", seeing(func(r Record, c Change) (Record, Change) { c.Gen = r.Gen; return r, c })},
		{"leases not respected", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Acquire {
				r.LeaseUntil = 0
			}
			return r, c
		})},
		{"trials before the time", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Acquire && r.State == Open {
				r.OpenUntil = 0
			}
			return r, c
		})},
		{"deadlines shortened", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Extend {
				r.OpenUntil = 0
			}
			return r, c
		})},
		{"suspicion in place of any sample", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Suspect {
				c.Window.Start = r.Window.Start
			}
			return r, c
		})},
		{"tickets without a limit", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Ticket {
				c.Window.Tickets = 99
			}
			return r, c
		})},
		{"counts in any sample", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Count {
				c.Window.Start = r.Window.Start
			}
			return r, c
		})},
		{"forced states without an end", seeing(func(r Record, c Change) (Record, Change) {
			if r.State == ForcedOpen || r.State == ForcedClosed {
				r.OpenUntil = 0
			}
			return r, c
		})},
		{"generation not raised", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Close && c.holds(r) {
				r.Gen--
				c.Gen--
			}
			return r, c
		})},
		{"closing from any state", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Close {
				r.State, r.Holder = HalfOpen, "x"
				c.Gen, c.Token, c.Holder = r.Gen, r.Token, "x"
			}
			return r, c
		})},
		{"no generation in a trip", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Trip {
				c.Gen = r.Gen
			}
			return r, c
		})},
		{"trips of what an operator has forced", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Trip && r.State != HalfOpen {
				r.State = Closed
			}
			return r, c
		})},
		{"trials of what an operator has forced open", seeing(func(r Record, c Change) (Record, Change) {
			if c.Op == Acquire && r.State == ForcedOpen {
				r.State = Open
			}
			return r, c
		})},
		{"additions sent twice", leaving(func(r Record, c Change) Record {
			if c.Op == Ticket || c.Op == Count {
				r, _ = c.Apply(r)
			}
			return r
		})},
		{"tokens that begin anew", leaving(func(r Record, c Change) Record {
			if c.Op == Close {
				r.Token = 0
			}
			return r
		})},
		{"leases that outlive their trial", leaving(func(r Record, c Change) Record {
			if c.Op == Release || c.Op == Pass {
				r.LeaseUntil = c.Now + 5
			}
			return r
		})},
		{"samples that outlive an opening", leaving(func(r Record, c Change) Record {
			if c.Op == Close {
				r.Window = Window{Start: 1, Tickets: 3, Failed: 3}
			}
			return r
		})},
	}
}

// torn is a store whose conditions and writes are two steps.
type torn struct{ *Memory }

func (s torn) Update(ctx context.Context, id string, c Change) (Record, bool, error) {
	found, _ := s.Load(ctx, id)
	runtime.Gosched()
	r, ok := c.Apply(found[id])
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		s.records[id] = r
	}
	return r, ok || c.made(r), nil
}

// stale is a store that now and then goes by what held a moment ago.
type stale struct {
	*Memory
	dice   *rand.Rand
	before map[string]Record
}

func (s stale) Update(_ context.Context, id string, c Change) (Record, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	if s.dice.IntN(20) == 0 {
		r = s.before[id]
	}
	after, ok := c.Apply(r)
	if ok {
		s.before[id], s.records[id] = r, after
	}
	return after, ok || c.made(after), nil
}

// Each of the three ways to look at a store finds each fault; those that are none but beside another client are
// found by the one that has clients at the same time.
func TestSuiteFindsBrokenStores(t *testing.T) {
	ways := map[string]func(Store) error{
		"one after another": func(s Store) error { return differ(s, 1, 2000) },
		"several clients":   func(s Store) error { return compare(rand.New(rand.NewPCG(1, 2)), s, "several", 4000) },
		"at the same time":  func(s Store) error { return concurrent(s, false, rand.Uint64()) },
	}
	for _, f := range faults() {
		for way, finds := range ways {
			t.Run(f.name+", "+way, func(t *testing.T) {
				require.True(t, found(finds, func() Store { return broken{NewMemory(), f.step} }))
			})
		}
	}
	for way, finds := range ways {
		t.Run("none, "+way, func(t *testing.T) {
			require.False(t, found(finds, func() Store { return NewMemory() }))
		})
		t.Run("of a moment ago, "+way, func(t *testing.T) {
			require.True(t, found(finds, func() Store {
				return stale{NewMemory(), rand.New(rand.NewPCG(1, 3)), map[string]Record{}}
			}))
		})
	}
	t.Run("conditions apart from their writes, at the same time", func(t *testing.T) {
		require.True(t, found(ways["at the same time"], func() Store { return torn{NewMemory()} }))
	})
}

// found looks at most ten times, as some faults need a coincidence.
func found(finds func(Store) error, open func() Store) bool {
	for range 10 {
		if finds(open()) != nil {
			return true
		}
	}
	return false
}
