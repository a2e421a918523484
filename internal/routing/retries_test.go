package routing

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// A candidate gets retries.last where the breakers would let nobody be called after it, whatever state that is.
func TestTheLastThatCouldBeTried(t *testing.T) {
	failed, pause := breaker.Outcome{Class: breaker.Failure}, func(d time.Duration) { sleep(context.Background(), d) }
	enter := func(g *breaker.Breakers) breaker.Permit {
		p, err := g.Enter(context.Background(), "b", time.Second)
		require.NoError(t, err)
		return p
	}
	opened := func(g *breaker.Breakers) { enter(g).Done(failed); enter(g).Done(failed) }
	due := func(g *breaker.Breakers) { opened(g); pause(34 * time.Second) }
	none := func(*breaker.Breakers) {}
	tests := []struct {
		name     string
		order    breaker.State // an operator's; Closed: none
		before   func(*breaker.Breakers)
		settings breaker.Settings
		calls    int // of the one before it
	}{
		{"closed", breaker.Closed, none, breaker.Settings{}, 1},
		{"open", breaker.Closed, opened, breaker.Settings{}, 2},
		{"open, and a trial is due", breaker.Closed, due, breaker.Settings{}, 1},
		{"another's trial runs", breaker.Closed, func(g *breaker.Breakers) { due(g); enter(g) }, breaker.Settings{}, 2},
		{"a trial was given back", breaker.Closed, func(g *breaker.Breakers) {
			due(g)
			enter(g).Done(breaker.Outcome{Class: breaker.Cancelled})
		}, breaker.Settings{}, 1},
		{"cooling", breaker.Closed, func(g *breaker.Breakers) { enter(g).Done(breaker.Outcome{Class: breaker.Cool}) }, breaker.Settings{}, 2},
		{"forced open", breaker.ForcedOpen, none, breaker.Settings{}, 2},
		{"forced closed", breaker.ForcedClosed, none, breaker.Settings{}, 1},
		{"open, but only observed", breaker.Closed, opened, breaker.Settings{Observe: true}, 1},
		{"open, then switched off", breaker.Closed, opened, breaker.Settings{Disabled: true}, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := breaker.NewMemory()
				g := breaker.New(breaker.Settings{}, store, slog.New(slog.DiscardHandler))
				if tc.order != breaker.Closed {
					_, err := breaker.Order{To: tc.order}.Give(t.Context(), store, "b")
					require.NoError(t, err)
				}
				tc.before(g)
				l := newLab(t, scripted([]step{fail(providers.KindServerError)}), scripted(answer))
				l.settings.Retries.Last = 1
				read(New(l.settings, g.With(tc.settings), nil).Answer(context.Background(), request()))
				require.Equal(t, tc.calls, l.models["a"].calls)
				require.Equal(t, 2-tc.calls, l.models["b"].calls)
				require.NoError(t, g.Close(t.Context()))
			})
		})
	}
}
