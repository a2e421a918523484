package breaker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Many goroutines of several processes, in real time, with every outcome: no race, no panic, and never
// two trials of the fleet at once.
func TestHammer(t *testing.T) {
	for _, mode := range []Mode{ModeConsecutive, ModeWindow, ModeHybrid} {
		t.Run(mode.String(), func(t *testing.T) { hammerIn(t, mode) })
	}
}

func hammerIn(t *testing.T, mode Mode) {
	store := NewMemory()
	s := Settings{
		Mode: mode, OpenDuration: time.Millisecond, MaxOpenDuration: 2 * time.Millisecond,
		Sample: Sampling{Size: 4, MinCalls: 2, SlowAfter: time.Microsecond},
	}
	var trials, most, seen atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		g := gateOn(t, s, store)
		for range 8 {
			wg.Go(func() {
				for range 2000 {
					hammer(g, store, &trials, &most, &seen)
				}
			})
		}
	}
	wg.Wait()
	require.EqualValues(t, 1, most.Load())
	require.NotZero(t, seen.Load())
}

func hammer(g Gate, store *Memory, trials, most, seen *atomic.Int64) {
	g.Refresh(context.Background(), model, "model-b")
	p, err := g.Enter(context.Background(), model, lease)
	if err != nil {
		return
	}
	if p.Trial() && store.holder() == p.(*permit).trial.nonce {
		seen.Add(1)
		if n := trials.Add(1); n > most.Load() {
			most.Store(n)
		}
		runtime.Gosched()
		trials.Add(-1) // before it is settled: afterwards another may begin at once
	}
	if rand.IntN(2) == 0 {
		p.Started()
	}
	p.Done(Outcome{Class: Class(rand.IntN(int(Cancelled) + 1)), RetryAfter: time.Millisecond})
}

// holder is the fleet's trial. Another one is a process's own, which held the store for slow.
func (m *Memory) holder() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[model].Holder
}
