package breaker

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRunOpensAtOnce(t *testing.T) {
	sampled, excluded, cancelled := Outcome{Class: Sample}, Outcome{Class: Excluded}, Outcome{Class: Cancelled}
	tests := []struct {
		name      string
		threshold int
		outcomes  []Outcome
		open      bool
	}{
		{"two failures by default", 0, []Outcome{failed, failed}, true},
		{"one is none", 0, []Outcome{failed}, false},
		{"a success ends a run", 0, []Outcome{failed, passed, failed}, false},
		{"one if configured", 1, []Outcome{failed}, true},
		{"three if configured", 3, []Outcome{failed, failed, failed}, true},
		{"two of three", 3, []Outcome{failed, failed}, false},
		{"the sample's own neither extends", 0, []Outcome{failed, sampled, sampled}, false},
		{"nor resets", 0, []Outcome{failed, sampled, failed}, true},
		{"excluded neither extends", 0, []Outcome{failed, excluded, excluded}, false},
		{"nor resets, either", 0, []Outcome{failed, excluded, failed}, true},
		{"cancelled neither extends", 0, []Outcome{failed, cancelled, cancelled}, false},
		{"nor resets, as well", 0, []Outcome{failed, cancelled, failed}, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gateOn(t, Settings{FailureThreshold: tc.threshold}, NewMemory())
				call(t, g, tc.outcomes...)
				if tc.open {
					r := refused(t, g)
					require.Equal(t, Open, r.State)
					require.False(t, r.Cooling)
					require.WithinRange(t, r.Until, time.Now().Add(30*time.Second), time.Now().Add(33*time.Second))
					require.Equal(t, "server_error", status(t, g).Why)
				} else {
					call(t, g, passed)
				}
			})
		})
	}
}

// The effect in the process doesn't wait for a store that takes its time.
func TestOpensBeforeTheStoreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), delay: 40 * time.Millisecond}
		g := gateOn(t, Settings{}, store)
		call(t, g, failed)
		p := enter(t, g)
		go p.Done(failed)
		synctest.Wait()
		require.Equal(t, Open, refused(t, g).State)
		synctest.Wait()
		require.NoError(t, g.Close(t.Context()))
	})
}

func TestTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		one, two := gateOn(t, Settings{}, store), gateOn(t, Settings{}, store)
		call(t, two, passed)
		call(t, one, failed, failed)
		pass(2 * time.Second)
		require.Equal(t, Open, refused(t, two).State, "skipped in the other process")

		pass(32 * time.Second)
		permits := enterAll(t, 10, one, two)
		require.Len(t, permits, 1, "one trial in the fleet")
		require.True(t, permits[0].Trial())
		pass(time.Second)
		require.Empty(t, enterAll(t, 5, one, two), "others wait while it runs")

		permits[0].Started()
		pass(2 * time.Second)
		call(t, one, passed)
		call(t, two, passed)
		require.EqualValues(t, 2, status(t, two).Generation)
	})
}

// Reports of 8 threads of one process, and of 50 warm processes, that all probed at once.
func TestOneTrialAmongMany(t *testing.T) {
	for _, gates := range []int{1, 50} {
		t.Run(strconv.Itoa(gates)+" processes", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				fleet := make([]Gate, gates)
				for i := range fleet {
					fleet[i] = gateOn(t, Settings{OpenDuration: time.Second}, store)
				}
				call(t, fleet[0], failed, failed)
				pass(2300 * time.Millisecond)
				require.Len(t, enterAll(t, 20, fleet...), 1)
			})
		})
	}
}

func TestOpenTimeGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{OpenDuration: time.Second, MaxOpenDuration: 5 * time.Second}, store)
		call(t, g, failed, failed)
		for i, want := range []time.Duration{1, 2, 4, 5, 5} {
			want *= time.Second
			r := store.records[model]
			require.Equal(t, want, r.OpenFor)
			require.EqualValues(t, i+1, r.Opens)
			require.Equal(t, want.Milliseconds(), r.OpenUntil-r.Updated)
			pass(want - time.Millisecond)
			refused(t, g)
			pass(want/10 + time.Millisecond)
			p := enter(t, g)
			require.True(t, p.Trial(), "no later than a tenth of the open time")
			p.Done(failed)
		}
		pass(6 * time.Second)
		enter(t, g).Started()
		call(t, g, failed, failed)
		require.Equal(t, time.Second, store.records[model].OpenFor, "closing resets the growth")
	})
}

func TestHalfOpenSuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		s := Settings{HalfOpenSuccesses: 2, OpenDuration: time.Second}
		one, two := gateOn(t, s, store), gateOn(t, s, store)
		call(t, one, failed, failed)
		pass(1100 * time.Millisecond)
		enter(t, one).Started()
		require.Equal(t, HalfOpen, status(t, one).State)
		p := enter(t, two)
		require.True(t, p.Trial(), "any process may run the next trial, at once")
		refused(t, two)
		p.Done(passed)
		require.Equal(t, Closed, status(t, two).State)
	})
}

func TestCoolDown(t *testing.T) {
	cool := func(d time.Duration) Outcome { return Outcome{Class: Cool, RetryAfter: d, Why: "rate_limited"} }
	tests := []struct {
		name string
		asks []time.Duration // of calls that run at the same time
		want time.Duration
	}{
		{"as long as the provider says", []time.Duration{45 * time.Second}, 45 * time.Second},
		{"10 s where it says nothing", []time.Duration{0}, 10 * time.Second},
		{"the later of two deadlines", []time.Duration{time.Second, time.Minute}, time.Minute},
		{"never the shorter one", []time.Duration{time.Minute, time.Second}, time.Minute},
		{"a day at most", []time.Duration{1 << 62}, 24 * time.Hour},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				g, other := gateOn(t, Settings{}, store), gateOn(t, Settings{}, store)
				var permits []Permit
				for range tc.asks {
					permits = append(permits, enter(t, g))
				}
				for i, p := range permits {
					p.Done(cool(tc.asks[i]))
				}
				for _, g := range []Gate{g, other} {
					r := refused(t, g)
					require.True(t, r.Cooling)
					require.Equal(t, time.Now().Add(tc.want), r.Until)
					require.True(t, status(t, g).Cooling)
				}
				pass(tc.want)
				require.True(t, enter(t, g).Trial(), "no jitter on the provider's own time")
			})
		})
	}
}

func TestCoolDownLeavesTheExponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		pass(33 * time.Second)
		enter(t, g).Done(Outcome{Class: Cool})
		require.EqualValues(t, 1, store.records[model].Opens)
		require.True(t, refused(t, g).Cooling)
		pass(10 * time.Second)
		enter(t, g).Done(failed)
		require.Equal(t, time.Minute, store.records[model].OpenFor)
	})
}

func TestHardOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g, log := logged(t, Settings{}, store)
		one, two := enter(t, g), enter(t, g)
		one.Done(Outcome{Class: Hard, Why: "quota"})
		two.Done(Outcome{Class: Hard, Why: "quota"})
		require.WithinRange(t, refused(t, g).Until, time.Now().Add(2*time.Minute), time.Now().Add(132*time.Second))
		require.Equal(t, 1, log.count("level=WARN"))
		require.Equal(t, 1, log.count(`msg="breaker alarm"`))
		require.Equal(t, 1, log.count("why=quota"))
	})
}

// The process that lost the race says nothing.
func TestOneAlarmInTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		one, log1 := logged(t, Settings{}, store)
		two, log2 := logged(t, Settings{}, store)
		p, q := enter(t, one), enter(t, two)
		p.Done(Outcome{Class: Hard, Why: "auth"})
		pass(time.Second)
		q.Done(Outcome{Class: Hard, Why: "auth"})
		require.Equal(t, 1, log1.count("breaker alarm")+log2.count("breaker alarm"))
		require.Equal(t, status(t, one).Generation, status(t, two).Generation)
		refused(t, two)
	})
}

// Every way a trial can end lets go of it: reports of breakers open for hours because of a 401, an ignored error,
// a cancelled caller or a non-retriable one.
func TestEveryOutcomeSettlesATrial(t *testing.T) {
	tests := []struct {
		name  string
		class Class
		want  State
	}{
		{"success", Success, Closed},
		{"failure", Failure, Open},
		{"sample", Sample, HalfOpen},
		{"cool", Cool, Open},
		{"hard", Hard, Open},
		{"excluded", Excluded, HalfOpen},
		{"cancelled", Cancelled, HalfOpen},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				g := gateOn(t, Settings{OpenDuration: time.Second}, store)
				call(t, g, failed, failed)
				pass(1100 * time.Millisecond)
				p := enter(t, g)
				p.Done(Outcome{Class: tc.class})
				r := store.records[model]
				require.Equal(t, tc.want, r.State)
				require.Empty(t, r.Holder)
				if tc.want == HalfOpen {
					require.True(t, enter(t, g).Trial(), "given back: the next call is the trial, at once")
				}
				pass(3 * time.Minute)
				enter(t, g)
			})
		})
	}
}

func TestTrialThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		one, two := gateOn(t, Settings{}, store), gateOn(t, Settings{}, store)
		call(t, one, failed, failed)
		pass(33 * time.Second)
		dead := enter(t, one)
		pass(lease + leaseMargin - time.Millisecond)
		refused(t, two)
		pass(time.Millisecond)
		p := enter(t, two)
		require.True(t, p.Trial())

		dead.Done(passed) // it was only slow
		require.Equal(t, HalfOpen, store.records[model].State, "a result after the takeover is stale")
		pass(time.Second)
		refused(t, one)
		p.Done(failed)
		dead.Started()
		require.Equal(t, Open, store.records[model].State)
	})
}

// A trial that was too slow, but that nobody replaced, still counts.
func TestTrialLateButNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{}, NewMemory())
		call(t, g, failed, failed)
		pass(33 * time.Second)
		p := enter(t, g)
		pass(time.Minute)
		p.Started()
		require.Equal(t, Closed, status(t, g).State)
	})
}

func TestFailuresWhileOpenChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g, log := logged(t, Settings{}, store)
		var permits []Permit
		for range 20 {
			permits = append(permits, enter(t, g))
		}
		until := time.Now().Add(30 * time.Second).UnixMilli()
		for _, p := range permits {
			p.Done(failed)
			pass(100 * time.Millisecond)
		}
		_, updates := store.counts()
		require.Equal(t, 1, updates)
		require.Equal(t, 1, log.count("state=open"))
		require.InDelta(t, until, store.Store.(*Memory).records[model].OpenUntil, 101)
	})
}

func TestPermitsAreIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{}, NewMemory())
		p := enter(t, g)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { p.Done(failed) })
		}
		wg.Wait()
		p.Started()
		call(t, g, passed) // one failure was counted, not ten
	})
}

func TestDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{Disabled: true}, store)
		g.Warm(t.Context(), model)
		g.Refresh(t.Context(), model)
		call(t, g, failed, failed, failed, Outcome{Class: Hard})
		p := enter(t, g)
		p.Started()
		require.False(t, p.Trial())
		require.Equal(t, Closed, status(t, g).State)
		loads, updates := store.counts()
		require.Zero(t, loads+updates)
	})
}

func TestObserveCountsAndNeverRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{Observe: true, OpenDuration: time.Second}, store)
		call(t, g, failed, failed)
		require.Equal(t, Open, status(t, g).State)
		call(t, g, failed, passed)
		require.Equal(t, Open, store.records[model].State)
		pass(1100 * time.Millisecond)
		trials := 0
		for _, p := range enterAll(t, 20, g) {
			if p.Trial() {
				trials++
			}
			defer p.Done(passed)
		}
		require.Equal(t, 1, trials)
		call(t, g, passed)
		require.Equal(t, HalfOpen, store.records[model].State, "only the trial closes")
	})
}

func TestZeroLeaseHasADefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		pass(33 * time.Second)
		_, err := g.Enter(t.Context(), model, 0)
		require.NoError(t, err)
		require.Equal(t, time.Now().Add(71*time.Second).UnixMilli(), store.records[model].LeaseUntil)
	})
}

func TestOpenFor(t *testing.T) {
	tests := []struct {
		name     string
		settings Settings
		n        int64
		want     time.Duration
	}{
		{"defaults, first", Settings{}, 1, 30 * time.Second},
		{"defaults, second", Settings{}, 2, time.Minute},
		{"defaults, third", Settings{}, 3, 2 * time.Minute},
		{"defaults, thousandth", Settings{}, 1000, 2 * time.Minute},
		{"never less than the first", Settings{OpenDuration: 5 * time.Minute}, 1, 5 * time.Minute},
		{"zeroth, of a merge or a cool-down", Settings{}, 0, 30 * time.Second},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.settings.withDefaults().openFor(tc.n))
		})
	}
}

func TestStateNames(t *testing.T) {
	require.Equal(t, "closed open half-open", Closed.String()+" "+Open.String()+" "+HalfOpen.String())
	require.Equal(t, "forced-open forced-closed", ForcedOpen.String()+" "+ForcedClosed.String())
	require.EqualError(t, &Refusal{State: HalfOpen}, "breaker half-open")
}

// A read that the process was frozen under is given up: the next request asks again, and doesn't go by the old copy.
func TestFrozenUnderARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := NewMemory()
		frozen := &stuck{Memory: mem, free: make(chan struct{})}
		g := gateOn(t, Settings{}, frozen)
		enter(t, g).Done(passed)
		frozen.hold.Store(true)
		pass(3 * time.Second)
		enter(t, g).Done(passed)
		frozen.hold.Store(false)
		pass(time.Hour)
		call(t, gateOn(t, Settings{}, mem), failed, failed)
		refused(t, g)
		close(frozen.free)
		synctest.Wait()
		refused(t, g)
	})
}

// stuck is a store whose held reads give, once they are freed, what they had found.
type stuck struct {
	*Memory
	hold atomic.Bool
	free chan struct{}
}

func (s *stuck) Load(ctx context.Context, ids ...string) (map[string]Record, error) {
	found, err := s.Memory.Load(ctx, ids...)
	if s.hold.Load() {
		<-s.free
	}
	return found, err
}
