package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/routing"
)

func event(t *testing.T, r Request) map[string]any {
	t.Helper()
	var out bytes.Buffer
	Log(t.Context(), slog.New(slog.NewJSONHandler(&out, nil)), r)
	var got map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &got), out.String())
	return got
}

func TestAnsweredByAModel(t *testing.T) {
	got := event(t, Request{
		Tenant: "team-a", Complete: true, Finish: "stop", Duration: 1500 * time.Millisecond,
		Usage: []byte(`{"prompt_tokens":3,"completion_tokens":4}`),
		Trace: routing.Trace{
			Tier: routing.TierModel, RouteID: "r1", Candidate: "b", Provider: "p", Model: "m", Chain: "default",
			Attempts: []routing.Attempt{
				{Candidate: "a", Outcome: "rate_limited", Status: 429, Code: "slow_down", Duration: time.Second},
				{Candidate: "x", Skipped: routing.SkipCooling},
				{Candidate: "b", Outcome: "ok", Status: 200, TTFT: 20 * time.Millisecond, Cost: &routing.Cost{Nanos: 8550}},
			},
		},
	})
	require.Equal(t, "INFO", got["level"])
	require.Equal(t, "team-a", got["tenant"])
	require.EqualValues(t, 2, got["calls"])
	require.EqualValues(t, 1500, got["ms"])
	require.EqualValues(t, 4, got["gen_ai.usage.output_tokens"])
	first := got["attempts"].([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"candidate": "a", "outcome": "rate_limited", "status": 429.0, "code": "slow_down", "ms": 1000.0}, first)
	require.InDelta(t, 0.00000855, got["attempts"].([]any)[2].(map[string]any)["cost_usd"], 0)
	require.InDelta(t, 0.00000855, got["cost_usd"], 0)
	require.Equal(t, false, got["cost_estimated"])
}

func TestCostIsTheSumOfTheAttempts(t *testing.T) {
	got := event(t, Request{Trace: routing.Trace{Attempts: []routing.Attempt{
		{Candidate: "a", Outcome: "truncated", Cost: &routing.Cost{Nanos: 1_500_000_000, Estimated: true}},
		{Candidate: "b", Outcome: "connect"},
		{Candidate: "c", Outcome: "ok", Cost: &routing.Cost{Nanos: 1}},
	}}})
	require.InDelta(t, 1.500000001, got["cost_usd"], 0)
	require.Equal(t, true, got["cost_estimated"])
	lines := got["attempts"].([]any)
	require.Equal(t, map[string]any{"candidate": "a", "outcome": "truncated", "cost_usd": 1.5, "cost_estimated": true}, lines[0])
	require.NotContains(t, lines[1], "cost_usd")
	require.NotContains(t, event(t, Request{}), "cost_usd", "nothing is known")
}

func TestAttemptsInATextLog(t *testing.T) {
	var out bytes.Buffer
	Log(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), Request{Trace: routing.Trace{Attempts: []routing.Attempt{
		{Candidate: "a", Outcome: "rate_limited", Status: 429, Code: "slow_down", Duration: time.Second},
		{Candidate: "x", Skipped: routing.SkipCooling},
		{Candidate: "c", Outcome: "server_error", Stack: "loop.go:1"},
		{Candidate: "b", Outcome: "ok", Status: 200, Duration: 226 * time.Millisecond},
	}}})
	require.Contains(t, out.String(), ` attempts="a rate_limited 429 (slow_down) in 1000ms, x cooling, c server_error at loop.go:1, b ok 200 in 226ms"`)
}

// An answer that the cache gave before any model was asked is as good as a model's.
func TestAnsweredInFront(t *testing.T) {
	trace := routing.Trace{Tier: routing.TierCache, Cache: &routing.CacheHit{Rule: "exact", Age: time.Minute, Front: true}}
	got := event(t, Request{Complete: true, Trace: trace})
	require.Equal(t, "INFO", got["level"])
	require.Equal(t, true, got["cache.front"])
	require.EqualValues(t, 60, got["cache.age_s"])
	require.Equal(t, "WARN", event(t, Request{Trace: trace})["level"], "the caller left before its end")
}

func TestShadow(t *testing.T) {
	trace := routing.Trace{Tier: routing.TierModel}
	got := event(t, Request{Complete: true, Trace: trace, Shadow: &Shadow{
		Rule: "similar", Similarity: 0.98, Age: time.Hour, Key: "ab", Overlap: 0.7, Agree: true, How: "words",
	}})
	for name, want := range map[string]any{
		"shadow_rule": "similar", "shadow_similarity": 0.98, "shadow_age_s": 3600.0, "shadow_key": "ab", "shadow_overlap": 0.7,
		"shadow_agree": 1.0, "shadow_how": "words",
	} {
		require.Equal(t, want, got[name], name)
	}
	require.EqualValues(t, 0, event(t, Request{Trace: trace, Shadow: &Shadow{Rule: "exact"}})["shadow_agree"])
	miss := event(t, Request{Trace: trace, Shadow: &Shadow{Rule: ShadowMiss}})
	require.Equal(t, "miss", miss["shadow_rule"])
	require.NotContains(t, miss, "shadow_agree", "what doesn't exist neither agrees nor differs")
	require.NotContains(t, event(t, Request{Trace: trace}), "shadow_rule")
}

func TestWhatACallerCouldNoticeIsAWarning(t *testing.T) {
	for name, r := range map[string]Request{
		"fixed message": {Complete: true, Trace: routing.Trace{Tier: routing.TierFallback}},
		"cache":         {Complete: true, Trace: routing.Trace{Tier: routing.TierCache, Cache: &routing.CacheHit{Rule: "exact"}}},
		"broken stream": {Broke: "truncated", Trace: routing.Trace{Tier: routing.TierModel}},
		"caller error":  {Failure: &routing.Failure{Status: 400, Code: "content_filter"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "WARN", event(t, r)["level"])
		})
	}
}
