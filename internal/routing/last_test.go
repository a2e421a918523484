package routing

import (
	"context"
	"testing"
	"time"

	"holdfast/internal/providers"

	"github.com/stretchr/testify/require"
)

type cacheOf struct {
	hit      *CacheHit
	deadline time.Time
}

func (c *cacheOf) Lookup(ctx context.Context, _ *Request) *CacheHit {
	c.deadline, _ = ctx.Deadline()
	return c.hit
}

func TestLastTiers(t *testing.T) {
	bad := scripted([]step{failStatus(providers.KindServerError, 500)})
	l := newLab(t, bad)
	got := l.ask()
	require.Equal(t, TierFallback, got.Trace.Tier)
	require.Contains(t, got.text, `"content":"busy"`)
	require.Equal(t, "auto", got.Model)
	require.Contains(t, l.ask(func(r *Request) { r.Language = "zh" }).text, "忙")

	cache := &cacheOf{hit: &CacheHit{Rule: "exact", Similarity: 1, Text: "as before"}}
	l.cache = cache
	got = l.ask(named("a"))
	require.Equal(t, TierCache, got.Trace.Tier)
	require.Contains(t, got.text, "as before")
	require.Equal(t, "a", got.Model)
	require.False(t, cache.deadline.IsZero(), "the look-up has a deadline")
	require.Equal(t, TierFallback, l.ask(func(r *Request) { r.NoCache = true }).Trace.Tier)

	l.cache = nil
	got = l.ask(func(r *Request) { r.Structured = true })
	require.Equal(t, 503, got.Failure.Status)
	require.Equal(t, 30*time.Second, got.Failure.RetryAfter)
	require.Equal(t, TierFallback, got.Trace.Tier)
	l.settings.Fallback.StructuredMessage = true
	require.Nil(t, l.ask(func(r *Request) { r.Structured = true }).Failure)
	l.settings.Fallback.Status = 503
	require.Equal(t, 503, l.ask().Failure.Status)
	l.settings.Fallback.RetryAfter = 0
	require.Equal(t, time.Second, l.ask().Failure.RetryAfter, "there always is one")
}
