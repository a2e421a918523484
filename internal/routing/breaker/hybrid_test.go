package breaker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Hybrid: a run of two stops calls here, and here only, for two seconds; then one call goes first.
func TestRunShutsOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g, other := gateOn(t, hybrid, store), gateOn(t, hybrid, store)
		pass(time.Second)
		call(t, g, failed, failed)
		r := refused(t, g)
		require.Equal(t, Open, r.State)
		require.False(t, r.Cooling)
		require.Equal(t, time.Now().Add(2*time.Second), r.Until)
		s := status(t, g)
		require.True(t, s.Local)
		require.Equal(t, Open, s.State)
		call(t, other, passed)
		require.Equal(t, Closed, store.records[model].State)

		pass(1999 * time.Millisecond)
		refused(t, g)
		pass(time.Millisecond)
		permits := enterAll(t, 10, g)
		require.Len(t, permits, 1)
		require.False(t, permits[0].Trial(), "the fleet's breaker is closed")
		permits[0].Done(failed)
		refused(t, g)

		pass(2 * time.Second)
		p := enter(t, g)
		p.Done(Outcome{Class: Cancelled})
		p = enter(t, g)
		refused(t, g)
		p.Started()
		call(t, g, passed)
		require.False(t, status(t, g).Local)
		p.Done(passed)
	})
}

// The call that goes first may die: another takes its place.
func TestFirstCallThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, hybrid, NewMemory())
		call(t, g, failed, failed)
		pass(2 * time.Second)
		enter(t, g)
		pass(lease + leaseMargin - time.Millisecond)
		refused(t, g)
		pass(time.Millisecond)
		call(t, g, passed)
	})
}

// Failures that were under way when a process stopped calling don't make it wait longer.
func TestFailuresWhileShutChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{Mode: ModeHybrid, Sample: Sampling{MinCalls: 20}}, NewMemory())
		permits := enterAll(t, 5, g)
		for _, p := range permits {
			p.Done(failed)
			pass(100 * time.Millisecond)
		}
		pass(1600 * time.Millisecond)
		call(t, g, passed)
	})
}

// With the store away no sample can be had: a run opens for this process, as in a fleet of one. What the run of one
// process says is no news for the fleet, what a provider says of the account is.
func TestSampleWithoutAStore(t *testing.T) {
	for _, s := range []Settings{window, hybrid} {
		t.Run(s.Mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faulty{Store: NewMemory()}
				g, log := logged(t, s, store)
				call(t, g, passed)
				store.set(func(f *faulty) { f.err = errors.New("away") })
				for range missesToAway {
					status(t, g)
					pass(2 * time.Second)
				}
				call(t, g, failed, failed)
				r := refused(t, g)
				require.Equal(t, Open, r.State)
				require.WithinRange(t, r.Until, time.Now().Add(30*time.Second), time.Now().Add(33*time.Second))
				require.Equal(t, 1, log.count("local=true"))
				pass(33 * time.Second)
				permits := enterAll(t, 10, g)
				require.Len(t, permits, 1)
				require.True(t, permits[0].Trial())
				permits[0].Done(failed)
				refused(t, g)
				store.set(func(f *faulty) { f.err = nil })
				pass(longestPause)
				status(t, g)
				synctest.Wait()
				require.Equal(t, Closed, status(t, g).State)
				require.Empty(t, store.Store.(*Memory).records)
				call(t, g, passed)
			})
		})
	}
}

func TestHardOpeningIsToldOnReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), err: errors.New("away")}
		g := gateOn(t, window, store)
		call(t, g, failed, failed, Outcome{Class: Hard, Why: "quota"})
		store.set(func(f *faulty) { f.err = nil })
		pass(5 * time.Second)
		status(t, g)
		synctest.Wait()
		require.Equal(t, Open, store.Store.(*Memory).records[model].State)
		require.Equal(t, "quota", store.Store.(*Memory).records[model].Why)
	})
}

// Samples can't be written while reads are answered: a run still helps, in this process.
func TestSampleOfAStoreThatTakesNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &readOnly{Memory: NewMemory(), on: true}
		g := gateOn(t, window, store)
		for range missesToAway {
			call(t, g, failed)
			pass(time.Second)
		}
		call(t, g, failed)
		require.Equal(t, Open, refused(t, g).State)
	})
}

// Observing: a sample opens the breaker, and nobody is refused; tickets are for closed breakers.
func TestObserveSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{Mode: ModeHybrid, Observe: true}, store)
		call(t, g, failed, failed, failed, failed, failed, failed)
		r := store.records[model]
		require.Equal(t, Open, r.State)
		call(t, g, failed, passed, failed)
		require.Equal(t, r, store.records[model])
	})
}

// I4: the process that saw the last failure couldn't write; whoever asks for the next ticket opens.
func TestNoLostTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, window, store)
		call(t, g, failed, failed)
		r := store.records[model]
		r.Window.Tickets, r.Window.Failed = 9, 9
		store.records[model] = r
		enter(t, g)
		synctest.Wait()
		require.Equal(t, Open, store.records[model].State)
	})
}

// A caller who has nobody else to ask may call beside an opening; what comes of it moves nothing.
func TestInsist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		want := store.records[model]
		for _, o := range []Outcome{passed, failed, {Class: Hard}, {Class: Excluded}} {
			p := refused(t, g).Insist()
			require.NotNil(t, p)
			require.False(t, p.Trial())
			p.Started()
			p.Done(o)
			require.Equal(t, want, store.records[model])
		}
		refused(t, g).Insist().Done(Outcome{Class: Cool, RetryAfter: time.Minute})
		require.Equal(t, time.Now().Add(time.Minute).UnixMilli(), store.records[model].OpenUntil)
	})
}

// Nobody calls beside a trial, nor against an operator's word.
func TestInsistInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		r := refused(t, g)
		pass(33 * time.Second)
		require.Nil(t, r.Insist(), "a trial is due")
		p := enter(t, g)
		require.True(t, p.Trial())
		require.Nil(t, r.Insist())
		require.Nil(t, refused(t, g).Insist())
		p.Started()
		require.NotNil(t, r.Insist(), "closed meanwhile")
		give(t, store, Order{To: ForcedOpen})
		pass(3 * time.Second)
		require.Nil(t, refused(t, g).Insist())
		require.Nil(t, (&Refusal{State: Open}).Insist())
	})
}

func TestInsistWhereOneProcessStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, hybrid, NewMemory())
		call(t, g, failed, failed)
		p := refused(t, g).Insist()
		require.NotNil(t, p)
		p.Started()
		refused(t, g)
	})
}

// What opens at once opens too where another process has just opened the first sample of a candidate nobody had
// written about.
func TestOpeningAgainstTheFirstSample(t *testing.T) {
	for _, o := range []Outcome{{Class: Hard, Why: "auth"}, {Class: Cool, Why: "rate_limited"}} {
		t.Run(o.Why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				g, log := logged(t, window, store)
				other := gateOn(t, window, store)
				call(t, g, passed) // it has a copy
				call(t, other, failed)
				call(t, g, o)
				require.Equal(t, Open, store.records[model].State)
				require.Equal(t, o.Class == Cool, store.records[model].cooling())
				require.Equal(t, Open, refused(t, g).State)
				require.Equal(t, 1, log.count("state=open"))
				pass(2 * time.Second)
				refused(t, other)
			})
		})
	}
}
