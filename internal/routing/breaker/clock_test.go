package breaker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// wound is the machine with a clock that can be set.
type wound struct {
	machine
	ahead *time.Duration
}

func (w wound) now() time.Time { return time.Now().Add(*w.ahead) }

// setBack runs a process until the clock of its machine is put back, and after.
func setBack(t *testing.T, s Settings, before, after func(*testing.T, *Breakers, *faulty)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ahead, store := 10*time.Minute, &faulty{Store: NewMemory()}
		g := newIn(wound{ahead: &ahead}, s, store, slog.New(slog.DiscardHandler))
		before(t, g, store)
		synctest.Wait()
		ahead = 0
		after(t, g, store)
		require.NoError(t, g.Close(context.Background()))
	})
}

func TestClockThatJumpsBack(t *testing.T) {
	e := &entry{readAt: 10_000}
	require.True(t, e.fresh(10_000, &Settings{}))
	require.False(t, e.tooOld(11_999, &Settings{}))
	require.False(t, e.fresh(9_999, &Settings{}), "a copy from the future has no known age")
	require.True(t, e.tooOld(9_999, &Settings{}))
}

// What a process planned for itself by a clock that was ahead is not waited for once the clock is right.
func TestPlansOfAWrongClock(t *testing.T) {
	calls := func(t *testing.T, g Gate, n int, o Outcome) (made int) {
		for range n {
			if p, err := g.Enter(t.Context(), model, lease); err == nil {
				made++
				p.Done(o)
			}
			pass(100 * time.Millisecond)
		}
		return made
	}
	t.Run("hybrid: it stopped calling", func(t *testing.T) {
		setBack(t, hybrid, func(t *testing.T, g *Breakers, _ *faulty) { call(t, g, failed, failed); refused(t, g) },
			func(t *testing.T, g *Breakers, _ *faulty) { require.Equal(t, 20, calls(t, g, 20, passed)) })
	})
	t.Run("a sample is opened, and learned of", func(t *testing.T) {
		setBack(t, window, func(t *testing.T, g *Breakers, _ *faulty) { call(t, g, failed, failed) },
			func(t *testing.T, g *Breakers, _ *faulty) { require.Equal(t, 6, calls(t, g, 20, failed)) })
	})
	t.Run("a dead store is asked again", func(t *testing.T) {
		setBack(t, window, func(t *testing.T, g *Breakers, store *faulty) {
			store.set(func(f *faulty) { f.err = errors.New("away") })
			for !g.link.dead() {
				call(t, g, passed)
				pass(ageClosed * time.Millisecond)
			}
		}, func(t *testing.T, g *Breakers, store *faulty) {
			before, _ := store.counts()
			call(t, g, passed)
			synctest.Wait()
			after, _ := store.counts()
			require.Equal(t, before+1, after)
		})
	})
}
