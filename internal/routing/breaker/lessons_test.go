package breaker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"
)

// What reports about other breakers have taught, where no other test says it: docs/breaker-reports.md.

// opened are two processes whose breaker is open, and due.
func opened(t *testing.T, s Settings) (store *faulty, one, two *Breakers) {
	t.Helper()
	store = &faulty{Store: NewMemory()}
	one, two = gateOn(t, s, store), gateOn(t, s, store.Store)
	call(t, one, failed, failed)
	pass(33 * time.Second)
	return store, one, two
}

func (f *faulty) record() Record {
	m := f.Store.(*Memory)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[model]
}

// A process that dies with a trial, wherever it is in its work, leaves it to another after the lease.
func TestTrialThatDiesAnywhere(t *testing.T) {
	away := func(f *faulty) { f.err = errors.New("died") }
	deaths := map[string]func(t *testing.T, store *faulty, g Gate){
		"before it asked": func(*testing.T, *faulty, Gate) {},
		"before it heard that it has it": func(t *testing.T, store *faulty, g Gate) {
			store.set(func(f *faulty) { f.lose = true })
			_, err := g.Enter(t.Context(), model, lease)
			require.Error(t, err)
		},
		"before its call":             func(t *testing.T, _ *faulty, g Gate) { enter(t, g) },
		"before its result was heard": func(t *testing.T, store *faulty, g Gate) { p := enter(t, g); store.set(away); p.Done(failed) },
		"before its success was heard": func(t *testing.T, store *faulty, g Gate) {
			p := enter(t, g)
			store.set(away)
			p.Started()
		},
		"before it was given back": func(t *testing.T, store *faulty, g Gate) {
			p := enter(t, g)
			store.set(away)
			p.Done(Outcome{Class: Cancelled})
		},
	}
	for name, die := range deaths {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, dying, other := opened(t, Settings{})
				die(t, store, dying)
				pass(lease + leaseMargin)
				p := enter(t, other)
				require.True(t, p.Trial())
				p.Started()
				call(t, other, passed)
			})
		})
	}
}

// Who gives back what was taken from him frees nobody's place.
func TestStaleReleaseFreesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, one, two := opened(t, Settings{})
		slow := enter(t, one)
		pass(lease + leaseMargin)
		holder := enter(t, two)
		want := store.record()
		for range 3 {
			slow.Done(Outcome{Class: Cancelled})
			pass(time.Second)
			refused(t, one)
		}
		require.Equal(t, want, store.record())
		holder.Done(passed)
		require.Equal(t, Closed, store.record().State)
	})
}

// What was given back is there for one, however often it was given back and however many wait.
func TestTrialGivenBackIsGivenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, one, two := opened(t, Settings{})
		for range 5 {
			p := enter(t, one)
			p.Done(Outcome{Class: Excluded})
			p.Done(Outcome{Class: Excluded})
			permits := enterAll(t, 10, one, two)
			require.Len(t, permits, 1)
			permits[0].Done(Outcome{Class: Cancelled})
			pass(time.Second)
		}
	})
}

// A trial decides by itself: no sample and no least number of calls stands before its result.
func TestTrialNeedsNoSample(t *testing.T) {
	for _, mode := range []Mode{ModeConsecutive, ModeWindow, ModeHybrid} {
		synctest.Test(t, func(t *testing.T) {
			store := &faulty{Store: NewMemory()}
			g := gateOn(t, Settings{Mode: mode}, store)
			call(t, g, Outcome{Class: Hard, Why: "auth"})
			pass(132 * time.Second)
			enter(t, g).Done(failed)
			require.Equal(t, Open, store.record().State, "one failure opens again")
			require.EqualValues(t, 2, store.record().Gen)
			pass(132 * time.Second)
			enter(t, g).Started()
			require.Equal(t, Closed, store.record().State, "one success closes")
			require.Zero(t, store.record().Window)
		})
	}
}

// Nothing happens when an opening is over: the next call does it. Until then the status says open, and since when it
// may be tried.
func TestOpeningThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, _ := opened(t, Settings{})
		pass(time.Hour)
		s := status(t, g)
		require.Equal(t, Open, s.State)
		require.True(t, s.Until.Before(time.Now()))
		require.True(t, enter(t, g).Trial())
		require.Equal(t, HalfOpen, status(t, g).State)
	})
}

// However many candidates a process is asked for, it forgets none.
func TestManyCandidatesForgetNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		for i := range 5000 {
			p, err := g.Enter(t.Context(), fmt.Sprint("other-", i), lease)
			require.NoError(t, err)
			p.Done(passed)
		}
		store.set(func(f *faulty) { f.err = errors.New("away") })
		refused(t, g)
	})
}

// elsewhere is a machine whose clock is off.
type elsewhere struct {
	machine
	off time.Duration
}

func (e elsewhere) now() time.Time { return time.Now().Add(e.off) }

// Clocks may be five seconds wrong either way: nobody takes a trial from one that is still within its time, and the
// result counts. Beyond that the fence holds: of two trials only the newer one's result counts.
func TestSkewedClocks(t *testing.T) {
	for _, off := range []time.Duration{-10 * time.Second, -5 * time.Second, 5 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store, one, _ := opened(t, Settings{})
			other := gateIn(t, elsewhere{off: off}, store.Store)
			trial := enter(t, one)
			for range 10 { // the trial's own time
				pass(time.Second)
				refused(t, other)
			}
			trial.Started() // at the last moment of its own clock
			require.Equal(t, Closed, store.record().State)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		store, one, _ := opened(t, Settings{})
		ahead := gateIn(t, elsewhere{off: lease + leaseMargin}, store.Store)
		older := enter(t, one)
		newer := enter(t, ahead)
		require.True(t, newer.Trial(), "a clock that far off finds the lease over")
		older.Started()
		require.Equal(t, HalfOpen, store.record().State)
		newer.Done(failed)
		require.Equal(t, Open, store.record().State)
	})
}

func gateIn(t *testing.T, w world, store Store) *Breakers {
	g := newIn(w, Settings{}, store, gateOn(t, Settings{}, store).log)
	t.Cleanup(func() { require.NoError(t, g.Close(context.Background())) })
	return g
}

// The lease runs from before its write. However slow that was, the call has all of its time, and a margin.
func TestLeaseCoversItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, g, _ := opened(t, Settings{})
		status(t, g)
		store.set(func(f *faulty) { f.delay = storeDeadline - time.Millisecond })
		require.True(t, enter(t, g).Trial())
		left := time.Until(time.UnixMilli(store.record().LeaseUntil))
		require.GreaterOrEqual(t, left, lease+leaseMargin-storeDeadline)
	})
}

// A process that starts waits for its breakers once, and not for long.
func TestWarmTakesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), hang: true}
		g := gateOn(t, Settings{}, store)
		start := time.Now()
		g.Warm(t.Context(), model, "model-b", "model-c")
		require.LessOrEqual(t, time.Since(start), storeDeadline)
		loads, _ := store.counts()
		require.Equal(t, 1, loads)
	})
}

// Connections are dropped before the service drops them.
func TestClientDropsIdleConnections(t *testing.T) {
	client := NewClient(aws.Config{Region: "us-east-1"})
	transport := client.Options().HTTPClient.(*http.Client).Transport.(*http.Transport)
	require.LessOrEqual(t, transport.IdleConnTimeout, 20*time.Second)
	require.Positive(t, transport.IdleConnTimeout)
	require.False(t, transport.DisableKeepAlives)
}
