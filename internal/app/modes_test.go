package app

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/config"
	"holdfast/internal/providers/providertest"
	"holdfast/internal/routing/breaker"
)

func TestBreakerSettings(t *testing.T) {
	require.Equal(t, breaker.Settings{
		Mode: breaker.ModeHybrid, FailureThreshold: 3, OpenDuration: time.Second, MaxOpenDuration: time.Minute,
		HalfOpenSuccesses: 4, Disabled: true, Observe: true,
		Sample: breaker.Sampling{Size: 7, MinCalls: 5, FailureRate: 0.25, SlowAfter: 6 * time.Second, SlowRate: 0.75},
	}, breakerSettings(config.Breaker{
		Mode: "hybrid", FailureThreshold: 3, OpenDuration: time.Second, MaxOpenDuration: time.Minute,
		HalfOpenSuccesses: 4, Observe: true, Sample: config.Sample{Size: 7, MinCalls: 5, FailureRate: 0.25},
		SlowCall: config.SlowCall{After: 6 * time.Second, Rate: 0.75},
	}))
	require.Equal(t, breaker.ModeWindow, breakerSettings(config.Breaker{Mode: "window"}).Mode)
	require.Equal(t, breaker.ModeConsecutive, breakerSettings(config.Breaker{Mode: "consecutive"}).Mode)
}

// breakerOf is what /v1/status says of a candidate's breaker.
func (l *lab) breakerOf(id string) (b struct {
	State, Mode string
	Local       bool
	Sample      struct {
		Began             string
		Calls, Failed, OK int
	}
},
) {
	l.t.Helper()
	res, err := http.Get(l.url + "/v1/status")
	require.NoError(l.t, err)
	defer func() { _ = res.Body.Close() }()
	var body struct {
		Candidates []struct {
			ID      string
			Breaker json.RawMessage
		}
	}
	require.NoError(l.t, json.NewDecoder(res.Body).Decode(&body))
	for _, c := range body.Candidates {
		if c.ID == id {
			require.NoError(l.t, json.Unmarshal(c.Breaker, &b))
		}
	}
	return b
}

// The calls of two processes are one sample: neither has seen min_calls fail by itself.
func TestFleetSharesItsSample(t *testing.T) {
	first, second := twins(t, "breaker: {mode: window, sample: {size: 10, min_calls: 4}}\n", Places{Table: table(t)}, []providertest.Behaviour{down()}, healthy())
	labs := []*lab{first, second}
	first.ask(false, "one")
	require.Eventually(t, func() bool { // its copy from before the sample may be 2 s old
		return second.breakerOf("a").Sample.Began != ""
	}, 5*time.Second, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		open := 0
		for i, l := range labs {
			l.ask(i == 0, "two")
			if l.breakerOf("a").State == "open" {
				open++
			}
		}
		return open == len(labs)
	}, 8*time.Second, time.Millisecond)
	for _, l := range labs {
		require.Equal(t, []string{"a:-breaker_open", "b:ok"}, l.ask(false, "three").outcomes())
		b := l.breakerOf("a")
		require.Equal(t, "open", b.State)
		require.Equal(t, "window", b.Mode)
		require.False(t, b.Local)
		require.GreaterOrEqual(t, b.Sample.Failed, 4)
	}
	require.LessOrEqual(t, first.up[0].Calls(), 1+10, "a full sample at most, however slow the store")
}

// Hybrid: two failures stop one process at once; the fleet's breaker is closed still.
func TestHybridStopsAtOnce(t *testing.T) {
	l := open(t, "breaker: {mode: hybrid}\n", []providertest.Behaviour{down()}, healthy())
	l.ask(false, "one")
	l.ask(false, "two")
	require.Equal(t, []string{"a:-breaker_open", "b:ok"}, l.ask(false, "three").outcomes())
	b := l.breakerOf("a")
	require.True(t, b.Local)
	require.Equal(t, "open", b.State)
	require.Equal(t, 1, b.Sample.Failed)
}

// all_open: earliest asks the candidate that opens first, and says so.
func TestAllOpenEarliest(t *testing.T) {
	l := open(t, "breaker: {all_open: earliest, failure_threshold: 1}\n", []providertest.Behaviour{down()})
	l.ask(false, "one")
	l.up[0].Play(healthy()...)
	got := l.ask(true, "two")
	require.Equal(t, []string{"a:-breaker_open", "a:ok"}, got.outcomes())
	require.Equal(t, "model", got.meta.Tier)
	require.Equal(t, "1", got.header.Get("Holdfast-Attempts"))
}
