package routing

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

func TestBudget(t *testing.T) {
	tests := []struct {
		name     string
		hint     time.Duration
		deadline time.Duration // of the caller's context
		want     time.Duration // when the answer is there
	}{
		{"configured", 0, 0, 178 * time.Second},
		{"a hint leaves models 80 %", 2 * time.Second, 0, 1600 * time.Millisecond},
		{"a hint above the configured", time.Hour, 0, 178 * time.Second},
		{"the platform's deadline", 0, 30 * time.Second, 28 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted([]step{hang}), scripted([]step{hang}))
				l.candidate("a").Timeouts = Timeouts{}
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
					defer cancel()
				}
				start := time.Now()
				got := read(l.router().Answer(ctx, request(func(r *Request) { r.Hint = test.hint })))
				require.Equal(t, test.want, time.Since(start))
				require.Equal(t, []string{"a:deadline"}, got.outcomes(), "cut by the budget it is deadline, and final")
				require.Equal(t, TierFallback, got.Trace.Tier)
				require.Equal(t, []breaker.Class{breaker.Cancelled}, l.gate.reports["a"], "no failure of the model")
			})
		})
	}
}

func TestNoAttemptThatCannotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted([]step{hang}), scripted(answer))
		got := l.ask(func(r *Request) { r.Hint = 6400 * time.Millisecond }) // models have 5.12 s, a uses 5 s of them
		require.Equal(t, []string{"a:timeout", "b:-budget"}, got.outcomes())
		require.Equal(t, TierFallback, got.Trace.Tier)
	})
}

func TestAnAttemptThatJustFits(t *testing.T) {
	for hint, want := range map[time.Duration]string{250: "a:ok", 249: "a:-budget"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, scripted(answer))
			require.Equal(t, []string{want}, l.ask(func(r *Request) { r.Hint = hint * time.Millisecond }).outcomes())
		})
	}
}

// What the breakers' store takes is the request's own time: it is not exceeded, and no attempt starts too late.
func TestBreakerTakesTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted(answer))
		l.gate.slow = 300 * time.Millisecond
		start := time.Now()
		got := l.ask(func(r *Request) { r.Hint = 300 * time.Millisecond })
		require.Equal(t, 240*time.Millisecond, time.Since(start))
		require.Equal(t, TierFallback, got.Trace.Tier)
		require.Equal(t, []string{"a:-budget"}, got.outcomes())
		require.Zero(t, l.models["a"].calls)
		require.Equal(t, []breaker.Class{breaker.Cancelled}, l.gate.reports["a"], "a trial is given back")
	})
}

// After the commit the budget counts no more; the platform's deadline does.
func TestBudgetEndsAtCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := step{text: "tick", signal: providers.SignalContent, wait: time.Second}
		long := []step{tick, tick, tick, tick, tick, stop, end}
		l := newLab(t, scripted(long))
		require.Equal(t, strings.Repeat("tick", 5), l.ask(func(r *Request) { r.Hint = 2 * time.Second }).text)

		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		got := read(l.router().Answer(ctx, request()))
		require.Equal(t, providers.KindDeadline, providers.AsError(got.err).Kind)
	})
}
