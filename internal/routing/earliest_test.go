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

// Where breakers refuse all that could be called, the one that opens first is tried, once.
func TestAllOpenEarliest(t *testing.T) {
	const short, long = 10 * time.Second, 40 * time.Second
	cool := func(d time.Duration) breaker.Outcome { return breaker.Outcome{Class: breaker.Cool, RetryAfter: d} }
	failure := breaker.Outcome{Class: breaker.Failure}
	tests := []struct {
		name     string
		earliest bool
		a, b     []breaker.Outcome // what their breakers heard before
		change   func(*lab)
		ask      []func(*Request)
		want     []string
		tier     Tier
	}{
		{"not by default", false, []breaker.Outcome{cool(short)}, []breaker.Outcome{cool(long)}, nil, nil, []string{"a:-cooling", "b:-cooling"}, TierFallback},
		{"the first of the chain", true, []breaker.Outcome{cool(short)}, []breaker.Outcome{cool(long)}, nil, nil, []string{"a:-cooling", "b:-cooling", "a:ok"}, TierModel},
		{"the last of the chain", true, []breaker.Outcome{failure, failure}, []breaker.Outcome{cool(short)}, nil, nil, []string{"a:-breaker_open", "b:-cooling", "b:ok"}, TierModel},
		{"not beside one that could be called", true, []breaker.Outcome{cool(short)}, nil, func(l *lab) { l.models["b"] = scripted([]step{fail(providers.KindOverloaded)}) }, nil, []string{"a:-cooling", "b:overloaded"}, TierFallback},
		{"beside what takes no calls anyway", true, []breaker.Outcome{cool(short)}, nil, func(l *lab) { l.candidate("b").Disabled = true }, nil, []string{"a:-cooling", "b:-disabled", "a:ok"}, TierModel},
		{"beside what can't do it", true, []breaker.Outcome{cool(short)}, nil, func(l *lab) { l.candidate("a").Thinking = true }, []func(*Request){thinking}, []string{"a:-cooling", "b:-thinking", "a:ok"}, TierModel},
		{"once, without retries", true, []breaker.Outcome{cool(short)}, []breaker.Outcome{cool(long)}, func(l *lab) {
			l.settings.Retries.Max, l.settings.Retries.Last = 3, 3
			l.models["a"] = scripted([]step{fail(providers.KindOverloaded)})
		}, nil, []string{"a:-cooling", "b:-cooling", "a:overloaded"}, TierFallback},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(answer), scripted(answer))
				l.settings.EarliestOpen = tc.earliest
				if tc.change != nil {
					tc.change(l)
				}
				for i := range l.settings.Candidates {
					l.settings.Candidates[i].Client = l.models[l.settings.Candidates[i].ID]
				}
				g := breaker.New(breaker.Settings{}, breaker.NewMemory(), slog.New(slog.DiscardHandler))
				for id, outcomes := range map[string][]breaker.Outcome{"a": tc.a, "b": tc.b} {
					for _, o := range outcomes {
						p, err := g.Enter(t.Context(), id, time.Second)
						require.NoError(t, err)
						p.Done(o)
					}
				}
				got := read(New(l.settings, g, nil).Answer(context.Background(), request(tc.ask...)))
				require.Equal(t, tc.want, got.outcomes())
				require.Equal(t, tc.tier, got.Trace.Tier)
				require.NoError(t, g.Close(t.Context()))
				l.noneOpen()
			})
		})
	}
}
