package breaker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHealthyCallsReadRarelyAndNeverWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{}, store)
		g.Warm(t.Context(), model, "model-b", "model-c")
		loads, _ := store.counts()
		require.Equal(t, 1, loads, "one batch at start")
		require.Equal(t, 3, store.keys)
		for range 150 { // 15 s
			g.Refresh(t.Context(), model, "model-b", "model-c")
			p := enter(t, g)
			p.Started()
			p.Done(passed)
			pass(100 * time.Millisecond)
		}
		loads, updates := store.counts()
		require.Zero(t, updates)
		require.LessOrEqual(t, loads, 1+3*9, "each copy is read no more often than its age of 1.6 s allows")
		require.GreaterOrEqual(t, loads, 8, "and no less often than its age of 2 s asks")
	})
}

func TestManyCallsShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), delay: 10 * time.Millisecond}
		g := gateOn(t, Settings{}, store)
		start := time.Now()
		require.Len(t, enterAll(t, 30, g), 30)
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		loads, _ := store.counts()
		require.Equal(t, 1, loads)
	})
}

func TestEnterWaitsFromTheStartOfTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), hang: true}
		g := gateOn(t, Settings{}, store)
		start := time.Now()
		g.Refresh(t.Context(), model)
		pass(30 * time.Millisecond)
		call(t, g, passed)
		require.Equal(t, patience, time.Since(start))
		call(t, g, passed)
		require.Equal(t, patience, time.Since(start), "nobody waits for the same read again")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		pass(3 * time.Second)
		at := time.Now()
		_, err := g.Enter(ctx, model, lease)
		require.NoError(t, err)
		require.Equal(t, at, time.Now(), "a caller who left waits for nothing")
	})
}

// A read that comes too late for its call is still taken over.
func TestSlowReadIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		call(t, gateOn(t, Settings{}, store), failed, failed)
		store.set(func(f *faulty) { f.delay = 100 * time.Millisecond })
		g := gateOn(t, Settings{}, store)
		call(t, g, passed)
		pass(100 * time.Millisecond)
		refused(t, g)
	})
}

// A process that was frozen must not act on its old copy, whatever state it was in.
func TestThawedProcessReadsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		frozen, other := gateOn(t, Settings{}, store), gateOn(t, Settings{}, store)
		call(t, frozen, passed)
		pass(time.Hour)
		call(t, other, failed, failed)
		refused(t, frozen)

		pass(time.Hour)
		enter(t, other).Started()
		require.False(t, enter(t, frozen).Trial(), "closed meanwhile")
	})
}

func TestStoreAwayCostsLittle(t *testing.T) {
	modes := map[string]func(*faulty){
		"errors": func(f *faulty) { f.err = errors.New("no such table") },
		"hangs":  func(f *faulty) { f.hang = true },
		"slow":   func(f *faulty) { f.delay = 200 * time.Millisecond },
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faulty{Store: NewMemory()}
				g, log := logged(t, Settings{}, store)
				call(t, g, passed)
				store.set(mode)
				var waited time.Duration
				for range 1200 { // 10 min
					pass(500 * time.Millisecond)
					start := time.Now()
					call(t, g, passed)
					waited += time.Since(start)
				}
				require.LessOrEqual(t, waited, 150*time.Millisecond)
				loads, _ := store.counts()
				if name == "slow" {
					require.LessOrEqual(t, loads, 1+600/2, "as often as ever, but nobody waits")
				} else {
					require.LessOrEqual(t, loads, 1+3+5+20, "1 s doubling to 30 s between the tries")
				}
				require.GreaterOrEqual(t, loads, 15)
				require.Equal(t, 1, log.count("level=WARN"), "said once")

				store.set(func(f *faulty) { f.err, f.hang, f.delay = nil, false, time.Millisecond })
				call(t, gateOn(t, Settings{OpenDuration: time.Minute}, store.Store), failed, failed)
				pass(longestPause)
				status(t, g) // starts the read, without waiting for it
				pass(time.Millisecond)
				synctest.Wait()
				refused(t, g)
				require.Equal(t, 1, log.count("is back"))
			})
		})
	}
}

// With the store away each process has a breaker of its own, with one trial of its own.
func TestLocalBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), err: errors.New("away")}
		g, log := logged(t, Settings{}, store)
		call(t, g, failed, failed)
		require.Equal(t, Open, refused(t, g).State)
		require.True(t, status(t, g).Local, "nobody else knows")
		for _, want := range []time.Duration{30, 60, 120, 120} {
			pass(want*time.Second - time.Millisecond)
			refused(t, g)
			pass(want*time.Second/10 + time.Millisecond)
			permits := enterAll(t, 20, g)
			require.Len(t, permits, 1)
			require.True(t, permits[0].Trial())
			permits[0].Done(failed)
		}
		pass(132 * time.Second)
		enter(t, g) // dies
		refused(t, g)
		pass(lease + leaseMargin)
		enter(t, g).Done(Outcome{Class: Cancelled})
		p := enter(t, g)
		require.True(t, p.Trial())
		p.Started()
		call(t, g, passed, passed)
		require.Equal(t, Closed, status(t, g).State)
		require.Equal(t, 1, log.count("level=WARN"))
	})
}

func TestHardOpenWithoutAStoreAlarmsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), err: errors.New("away")}
		g, log := logged(t, Settings{}, store)
		call(t, g, Outcome{Class: Hard, Why: "auth"})
		refused(t, g)
		store.set(func(f *faulty) { f.err = nil })
		pass(10 * time.Second)
		g.Refresh(t.Context(), model)
		synctest.Wait()
		require.Equal(t, 1, log.count("breaker alarm"))
		require.Equal(t, Open, store.Store.(*Memory).records[model].State)
	})
}

// What happened while the store was away, and what holds when it is back.
func TestMergeOnReturn(t *testing.T) {
	open := func(t *testing.T, g Gate) { call(t, g, failed, failed) }
	recovery := func(t *testing.T, g Gate) {
		pass(33 * time.Second)
		enterAlone(t, g).Started()
	}
	nothing := func(*testing.T, Gate) {}
	tests := []struct {
		name           string
		before         func(t *testing.T, g Gate) // by everybody, heard
		here, there    func(t *testing.T, g Gate) // while this process can't reach the store
		want           State
		wantGen, opens int64
	}{
		{"an opening here that still runs is told", nothing, open, nothing, Open, 1, 0},
		{"and in a later generation", func(t *testing.T, g Gate) { open(t, g); recovery(t, g) }, open, nothing, Open, 3, 0},
		{"an opening here that is over is forgotten", nothing, func(t *testing.T, g Gate) { open(t, g); pass(40 * time.Second) }, nothing, Closed, 0, 0},
		{"opened there as well: theirs holds", nothing, open, open, Open, 1, 1},
		{"opened and closed there meanwhile: theirs holds", nothing, open, func(t *testing.T, g Gate) { open(t, g); recovery(t, g) }, Closed, 2, 0},
		{"closed there in a later generation, still open here: theirs holds", nothing, func(t *testing.T, g Gate) { call(t, g, Outcome{Class: Hard}) }, func(t *testing.T, g Gate) { open(t, g); recovery(t, g) }, Closed, 2, 0},
		{"open there, recovered here: open", open, recovery, nothing, Open, 1, 1},
		{"nothing happened here", nothing, nothing, open, Open, 1, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				cut := &faulty{Store: store}
				here, there := gateOn(t, Settings{}, cut), gateOn(t, Settings{}, store)
				tc.before(t, there)
				status(t, here)
				cut.set(func(f *faulty) { f.err = errors.New("away") })
				tc.here(t, here)
				tc.there(t, there)
				cut.set(func(f *faulty) { f.err = nil })
				pass(5 * time.Second)
				here.Refresh(t.Context(), model)
				synctest.Wait()
				pass(5 * time.Second) // past what lag may hide
				status(t, here)
				synctest.Wait()
				r := store.records[model]
				require.Equal(t, tc.want, r.State)
				require.Equal(t, tc.wantGen, r.Gen)
				require.Equal(t, tc.opens, r.Opens, "a merge never raises the exponent")
				require.Equal(t, tc.want, status(t, here).State)
				pass(10 * time.Second)
				got := status(t, there)
				want := Status{Candidate: model, State: tc.want, Generation: r.Gen, Why: r.Why, Until: got.Until, Refuses: got.Refuses}
				require.Equal(t, want, got)
			})
		})
	}
}

// A write that was made although its answer was lost.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g, other := gateOn(t, Settings{}, store), gateOn(t, Settings{}, store.Store)
		record := func() Record { return store.Store.(*Memory).records[model] }
		lose := func(f *faulty) { f.lose = !f.lose }
		call(t, g, failed)
		store.set(lose)
		call(t, g, failed)
		require.EqualValues(t, 1, record().Gen)
		pass(33 * time.Second)
		p := enterAlone(t, g)
		require.True(t, p.Trial())
		refused(t, other)
		store.set(lose)
		pass(firstPause)
		p.Started()
		synctest.Wait()
		require.Equal(t, Closed, record().State, "the trial was ours, and its result counts")
		require.EqualValues(t, 2, record().Gen)
		call(t, g, passed)
	})
}

// A trial that began alone, while the store was away, doesn't speak for the fleet.
func TestLocalTrialIsNoFleetTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g, other := gateOn(t, Settings{}, store), gateOn(t, Settings{}, store.Store)
		call(t, g, failed, failed)
		pass(33 * time.Second)
		store.set(func(f *faulty) { f.err = errors.New("away") })
		refused(t, g) // perhaps it is merely slow, and another has the trial
		local := enterAlone(t, g)
		require.True(t, local.Trial())
		fleet := enter(t, other)
		require.True(t, fleet.Trial())
		store.set(func(f *faulty) { f.err = nil })
		local.Started()
		require.Equal(t, HalfOpen, store.Store.(*Memory).records[model].State)
		fleet.Done(failed)
		require.Equal(t, Open, store.Store.(*Memory).records[model].State)
		pass(5 * time.Second)
		status(t, g) // a store that was dead is asked again, but not waited for
		synctest.Wait()
		refused(t, g)
	})
}

// A deleted item is a reset: nobody waits for a generation that will not come back.
func TestItemDeletedByAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		delete(store.records, model)
		pass(5 * time.Second)
		call(t, g, passed)
		call(t, g, failed, failed)
		refused(t, g)
		require.EqualValues(t, 1, store.records[model].Gen)

		delete(store.records, model)
		pass(33 * time.Second)
		require.False(t, enter(t, g).Trial())
	})
}

// lagging answers reads with what was true a while ago, as an eventually consistent replica may.
type lagging struct {
	*Memory
	old map[string]Record
}

func (l lagging) Load(context.Context, ...string) (map[string]Record, error) { return l.old, nil }

func TestLaggingReadDoesNotUndoAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{OpenDuration: 500 * time.Millisecond}, lagging{NewMemory(), map[string]Record{model: {}}})
		call(t, g, failed, failed)
		pass(450 * time.Millisecond)
		refused(t, g)
		pass(100 * time.Millisecond)
		p := enter(t, g)
		pass(600 * time.Millisecond)
		refused(t, g)
		p.Started()
		pass(1900 * time.Millisecond)
		require.EqualValues(t, 2, status(t, g).Generation)
	})
}

// A copy's age by the state it shows: an open breaker needs no reading for long, one with a trial soon does.
func TestAgeOfCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g, other := gateOn(t, Settings{}, store), gateOn(t, Settings{}, store.Store)
		call(t, g, failed, failed)
		before, _ := store.counts()
		for range 39 {
			refused(t, g)
			pass(100 * time.Millisecond)
		}
		loads, _ := store.counts()
		require.Equal(t, before, loads)
		pass(32 * time.Second)
		trial := enter(t, other)
		refused(t, g)
		trial.Started()
		pass(500 * time.Millisecond)
		call(t, g, passed)
	})
}

// One process asks for its trial once, however many of its calls are waiting.
func TestOneRequestForATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		pass(33 * time.Second)
		status(t, g)
		_, before := store.counts()
		store.set(func(f *faulty) { f.delay = 30 * time.Millisecond })
		require.Len(t, enterAll(t, 20, g), 1)
		_, updates := store.counts()
		require.Equal(t, 1, updates-before)
	})
}

// The promise of one trial is worth waiting for: 300 ms a call, three calls in a row at most. A store that answered
// none of them is dead, and is not waited for any more.
func TestTrialWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		pass(33 * time.Second)
		status(t, g)
		store.set(func(f *faulty) { f.delay = 200 * time.Millisecond })
		start := time.Now()
		p := enter(t, g)
		require.Equal(t, 200*time.Millisecond, time.Since(start))
		require.Equal(t, store.Store.(*Memory).holder(), p.(*permit).trial.nonce)

		store.set(func(f *faulty) { f.hang = true })
		start = time.Now()
		p.Done(Outcome{Class: Cancelled})
		require.Equal(t, patience, time.Since(start))
		start = time.Now()
		p = enterAlone(t, g)
		require.True(t, p.Trial())
		require.LessOrEqual(t, time.Since(start), missesToAway*storeDeadline)
		start = time.Now()
		p.Done(Outcome{Class: Cancelled})
		require.True(t, enter(t, g).Trial())
		require.LessOrEqual(t, time.Since(start), 2*patience)
	})
}

// A store that is slow, however slow, still says who has the trial: a process that gave up waiting for the answer asks
// again in the same name, and takes no trial of its own.
func TestSlowStoreGivesOneTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		gates := []Gate{gateOn(t, Settings{}, store), gateOn(t, Settings{}, store)}
		call(t, gates[0], failed, failed)
		status(t, gates[1])
		pass(33 * time.Second)
		for _, delay := range []time.Duration{80, 250, 40, 299, 100} {
			store.set(func(f *faulty) { f.delay = delay * time.Millisecond })
			permits := enterAll(t, 10, gates...)
			require.Len(t, permits, 1, "delay %d ms", delay)
			permits[0].Done(Outcome{Class: Cancelled})
			pass(time.Second)
		}
		store.set(func(f *faulty) { f.delay = 0 })
		for _, g := range gates {
			status(t, g)
		}
		synctest.Wait()
		store.set(func(f *faulty) { f.lose = true })
		p, err := gates[0].Enter(t.Context(), model, lease)
		require.Nil(t, p, "whose trial it is isn't known: %v", err)
		store.set(func(f *faulty) { f.lose = false })
		refused(t, gates[1])
		require.True(t, enter(t, gates[0]).Trial(), "it was ours")
	})
}

// A read that overtakes a write under way says nothing new.
func TestReadDuringAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g, log := logged(t, Settings{}, store)
		p, q := enter(t, g), enter(t, g)
		pass(1950 * time.Millisecond)
		p.Done(failed)
		store.set(func(f *faulty) { f.delay = 200 * time.Millisecond })
		go q.Done(failed)
		synctest.Wait()
		store.set(func(f *faulty) { f.delay = 0 })
		pass(100 * time.Millisecond)
		g.Refresh(t.Context(), model)
		synctest.Wait()
		refused(t, g)
		pass(time.Second)
		loads, updates := store.counts()
		require.Equal(t, 2, loads)
		require.Equal(t, 1, updates)
		require.Equal(t, 1, log.count("state=open"))
	})
}

// A longer Retry-After that the store never heard of is still kept here.
func TestUnheardDeadlineIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{}, store)
		p, q := enter(t, g), enter(t, g)
		p.Done(Outcome{Class: Cool, RetryAfter: 20 * time.Second})
		store.set(func(f *faulty) { f.err = errors.New("away") })
		q.Done(Outcome{Class: Cool, RetryAfter: time.Minute})
		store.set(func(f *faulty) { f.err = nil })
		for range 59 {
			refused(t, g)
			pass(time.Second)
		}
		pass(time.Second)
		require.True(t, enter(t, g).Trial())
	})
}
