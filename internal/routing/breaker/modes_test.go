package breaker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var everyMode = []Mode{ModeConsecutive, ModeWindow, ModeHybrid}

// hard opens whatever the mode.
var hard = Outcome{Class: Hard, Why: "quota"}

// A trial is settled alike in every mode, by whatever it ends with.
func TestTrialsInEveryMode(t *testing.T) {
	want := map[Class]State{
		Success: Closed, Failure: Open, Sample: HalfOpen, Cool: Open, Hard: Open, Excluded: HalfOpen, Cancelled: HalfOpen,
	}
	for _, mode := range everyMode {
		for class, state := range want {
			t.Run(fmt.Sprint(mode, class), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := NewMemory()
					g := gateOn(t, Settings{Mode: mode, MaxOpenDuration: 30 * time.Second}, store)
					call(t, g, hard)
					pass(33 * time.Second)
					p := enter(t, g)
					require.True(t, p.Trial())
					p.Done(Outcome{Class: class})
					r := store.records[model]
					require.Equal(t, state, r.State)
					require.Empty(t, r.Holder)
					require.Zero(t, r.Window, "trials are in no sample")
				})
			})
		}
	}
}

// A cool-down is kept to, and lengthened, in every mode; it leaves the exponent alone.
func TestCoolDownsInEveryMode(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				g := gateOn(t, Settings{Mode: mode}, store)
				p, q := enter(t, g), enter(t, g)
				p.Done(Outcome{Class: Cool, RetryAfter: time.Second})
				q.Done(Outcome{Class: Cool, RetryAfter: time.Minute})
				r := refused(t, g)
				require.True(t, r.Cooling)
				require.Equal(t, time.Now().Add(time.Minute), r.Until)
				require.Zero(t, store.records[model].Opens)
			})
		})
	}
}

// Results of calls of an older generation, with or without a ticket, change nothing in any state.
func TestLateResultsOfASample(t *testing.T) {
	states := []struct {
		name  string
		reach func(t *testing.T, g Gate)
	}{
		{"open", func(*testing.T, Gate) {}},
		{"half-open", func(t *testing.T, g Gate) { pass(33 * time.Second); enter(t, g) }},
		{"closed again", func(t *testing.T, g Gate) { pass(33 * time.Second); enter(t, g).Started() }},
	}
	for _, mode := range []Mode{ModeWindow, ModeHybrid} {
		for _, st := range states {
			for _, class := range []Class{Success, Failure, Sample, Hard, Excluded, Cancelled} {
				t.Run(fmt.Sprint(mode, " ", st.name, class), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						store := NewMemory()
						g := gateOn(t, Settings{Mode: mode, MaxOpenDuration: 30 * time.Second}, store)
						old := []Permit{enter(t, g), enter(t, g)}
						call(t, g, failed)
						old = append(old, enter(t, g), enter(t, g))
						synctest.Wait()
						require.EqualValues(t, 2, store.records[model].Window.Tickets)
						call(t, g, hard)
						st.reach(t, g)
						want := store.records[model]
						for _, p := range old {
							p.Done(Outcome{Class: class})
						}
						synctest.Wait()
						require.Equal(t, want, store.records[model])
						require.Equal(t, want.State, status(t, g).State)
					})
				})
			}
		}
	}
}

// A stream that breaks after its breaker has opened and closed is a failure of the model as it is now: it makes the
// fleet look, and is in no sample of today.
func TestStreamThatBreaksLateMakesUsLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{Mode: ModeWindow, MaxOpenDuration: 30 * time.Second}, store)
		call(t, g, failed)
		old := enter(t, g)
		old.Started()
		synctest.Wait()
		call(t, g, hard)
		pass(33 * time.Second)
		enter(t, g).Started()
		require.Zero(t, store.records[model].Window)
		old.Done(failed)
		require.Equal(t, Window{Start: time.Now().UnixMilli()}, store.records[model].Window)
	})
}

// Forced states hold in every mode, and their calls are in no sample.
func TestForcedStatesInEveryMode(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				g := gateOn(t, Settings{Mode: mode}, store)
				call(t, g, failed)
				give(t, store, Order{To: ForcedClosed})
				pass(3 * time.Second)
				want := store.records[model]
				call(t, g, failed, failed, failed, failed, failed, failed, failed, hard)
				require.Equal(t, want, store.records[model])
				give(t, store, Order{To: ForcedOpen})
				pass(3 * time.Second)
				require.Equal(t, ForcedOpen, refused(t, g).State)
				give(t, store, Order{To: Closed})
				pass(5 * time.Second)
				call(t, g, passed)
			})
		})
	}
}
