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

// B = min(hint, total, the platform's deadline); reserve = min(reserve, 20 % of B); models have B − reserve.
func TestBudgetArithmetic(t *testing.T) {
	const ms = time.Millisecond
	standard := Budget{Total: 180 * time.Second, Reserve: 2 * time.Second}
	tests := []struct {
		name                string
		budget              Budget
		hint, deadline, age time.Duration // of the request; 0: none
		models, last, end   time.Duration // from when it was received
	}{
		{"configured", standard, 0, 0, 0, 178_000 * ms, 179_900 * ms, 180_000 * ms},
		{"a hint", standard, 2000 * ms, 0, 0, 1600 * ms, 1900 * ms, 2000 * ms},
		{"a hint of exactly five reserves", standard, 10_000 * ms, 0, 0, 8000 * ms, 9900 * ms, 10_000 * ms},
		{"a hint that is longer", standard, time.Hour, 0, 0, 178_000 * ms, 179_900 * ms, 180_000 * ms},
		{"a small hint", standard, 100 * ms, 0, 0, 80 * ms, 95 * ms, 100 * ms},
		{"the platform's deadline", standard, 0, 30_000 * ms, 0, 28_000 * ms, 29_900 * ms, 30_000 * ms},
		{"the platform's deadline, a shorter hint", standard, 5000 * ms, 30_000 * ms, 0, 4000 * ms, 4900 * ms, 5000 * ms},
		{"the platform's deadline, a longer hint", standard, 60_000 * ms, 30_000 * ms, 0, 28_000 * ms, 29_900 * ms, 30_000 * ms},
		{"a late platform", standard, 0, time.Hour, 0, 178_000 * ms, 179_900 * ms, 180_000 * ms},
		{"no reserve", Budget{Total: 10 * time.Second}, 0, 0, 0, 10_000 * ms, 10_000 * ms, 10_000 * ms},
		{"decoding took time", standard, 2000 * ms, 0, 500 * ms, 1600 * ms, 1900 * ms, 2000 * ms},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				received := time.Now()
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithDeadline(ctx, received.Add(test.deadline))
					defer cancel()
				}
				<-time.After(test.age)
				b := newBudget(ctx, request(func(r *Request) { r.Hint, r.Received = test.hint, received }), test.budget)
				require.Equal(t, test.models, b.models.Sub(received), "models")
				require.Equal(t, test.last, b.last().Sub(received), "last tiers")
				require.Equal(t, test.end, b.end.Sub(received), "end")
				require.Equal(t, test.models-test.age, b.left())
				require.True(t, b.fits(b.left()-minAttempt))
				require.False(t, b.fits(b.left()-minAttempt+1))
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
