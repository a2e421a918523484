package breaker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// New settings forget nothing: neither a run, nor an opening that the store never heard of, nor that the store is away.
func TestOtherSettingsKnowTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{FailureThreshold: 3}, store)
		call(t, g, failed, failed)
		g = g.With(Settings{FailureThreshold: 3, OpenDuration: time.Minute})
		before := enter(t, g)
		store.set(func(f *faulty) { f.err = errors.New("away") })
		call(t, g, failed)
		refused(t, g)

		g = g.With(Settings{OpenDuration: time.Second})
		refused(t, g)
		pass(59 * time.Second)
		refused(t, g)
		before.Done(passed)
		refused(t, g)

		pass(8 * time.Second)
		p := enterAlone(t, g)
		require.True(t, p.Trial())
		g = g.With(Settings{})
		refused(t, g)
		p.Started()
		p.Done(passed)
		call(t, g, passed)
	})
}

// A call ends by the settings that admitted it, on the breaker that all share.
func TestACallEndsByItsOwnSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := gateOn(t, Settings{FailureThreshold: 1, OpenDuration: 10 * time.Second}, NewMemory())
		p := enter(t, old)
		now := old.With(Settings{FailureThreshold: 5, OpenDuration: time.Hour})
		call(t, now, failed)
		p.Done(failed)
		refused(t, now)
		pass(12 * time.Second)
		require.True(t, enter(t, now).Trial())
	})
}

func TestSwitchedOffAndOnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{}, NewMemory())
		call(t, g, failed, failed)
		off := g.With(Settings{Disabled: true})
		call(t, off, passed, failed)
		require.Equal(t, Status{Candidate: model}, status(t, off), "closed: what it was before refuses nobody")
		refused(t, off.With(Settings{}))
	})
}
