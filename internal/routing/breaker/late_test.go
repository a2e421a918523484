package breaker

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Results of calls admitted before the breaker opened: state that holds × outcome. None may change anything, but
// for a longer Retry-After.
func TestLateResults(t *testing.T) {
	classes := []Class{Success, Failure, Sample, Hard, Excluded, Cancelled}
	states := []struct {
		name  string
		reach func(t *testing.T, g Gate)
	}{
		{"open", func(*testing.T, Gate) {}},
		{"half-open", func(t *testing.T, g Gate) { pass(33 * time.Second); enter(t, g) }},
		{"closed again", func(t *testing.T, g Gate) { pass(33 * time.Second); enter(t, g).Started() }},
	}
	for _, st := range states {
		for _, class := range classes {
			t.Run(st.name+" "+strconv.Itoa(int(class)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := NewMemory()
					g := gateOn(t, Settings{}, store)
					old := []Permit{enter(t, g), enter(t, g), enter(t, g)}
					call(t, g, failed, failed)
					st.reach(t, g)
					want := store.records[model]
					for _, p := range old {
						p.Done(Outcome{Class: class})
					}
					require.Equal(t, want, store.records[model])
					require.Equal(t, want.State, status(t, g).State)
					if want.State == Closed {
						call(t, g, failed, passed, failed) // the run did not move either
						call(t, g, passed)
					}
				})
			})
		}
	}
}

func TestLateSuccessDoesNotEndARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{}, NewMemory())
		old := enter(t, g)
		call(t, g, failed, failed)
		pass(33 * time.Second)
		enter(t, g).Started()
		call(t, g, failed)
		old.Done(passed)
		call(t, g, failed)
		refused(t, g)
	})
}

// A stream that breaks after its first token is a fresh failure, whatever generation it was admitted in.
func TestStreamThatBreaksLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		old := enter(t, g)
		old.Started()
		call(t, g, failed, failed)
		pass(33 * time.Second)
		trial := enter(t, g)
		trial.Started()
		require.EqualValues(t, 2, store.records[model].Gen)
		trial.Done(failed)
		call(t, g, Outcome{Class: Sample}) // still closed
		old.Done(failed)
		require.Equal(t, Open, refused(t, g).State)
		require.EqualValues(t, 3, store.records[model].Gen)
	})
}

// A trial that closed the breaker belongs to the generation it made.
func TestTrialEndsARunOfItsNewGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{}, NewMemory())
		call(t, g, failed, failed)
		pass(33 * time.Second)
		trial := enter(t, g)
		trial.Started()
		call(t, g, failed)
		trial.Done(passed)
		call(t, g, failed, passed)
	})
}

// A stream's first token doesn't end a run: only its end does.
func TestStartedMovesNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{}, NewMemory())
		for range 2 {
			p := enter(t, g)
			p.Started()
			p.Done(failed)
		}
		refused(t, g)
	})
}
