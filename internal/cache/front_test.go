package cache

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// frontRule says by which rule the front answers a question, "" for a miss.
func frontRule(t testing.TB, c *Cache, q Question) string {
	t.Helper()
	hit, found, err := c.Front(context.Background(), q)
	require.NoError(t, err)
	require.Equal(t, found, hit.Rule != "")
	return hit.Rule
}

func shaped(text string, shape ...string) Question {
	return Question{Tenant: "t", Text: text, Shape: shape}
}

func TestFront(t *testing.T) {
	const bridges, plates = "How do bridges carry heavy loads?", "怎么在网上选车牌号？"
	for _, c := range []struct {
		name          string
		stored, asked Question
		front, last   string
	}{
		{"the same", shaped(bridges, "a"), shaped(bridges, "a"), ruleExact, ruleExact},
		{"a variant", shaped(bridges, "a"), shaped("how do bridges carry heavy loads", "a"), ruleCanonical, ruleCanonical},
		{"a similar one", shaped(plates, "a"), shaped("网上怎么选车牌号", "a"), "", ruleSimilar},
		{"another shape", shaped(bridges, "a"), shaped(bridges, "b"), "", ruleExact},
		{"no shape", shaped(bridges, "a"), shaped(bridges), "", ruleExact},
		{"fields that run together", shaped(bridges, "ab", "c"), shaped(bridges, "a", "bc"), "", ruleExact},
		{"no-cache", shaped(bridges, "a"), Question{Tenant: "t", Text: bridges, Shape: []string{"a"}, NoCache: true}, "", ""},
		{"no-store", Question{Tenant: "t", Text: bridges, Shape: []string{"a"}, NoStore: true}, shaped(bridges, "a"), "", ""},
		{"what depends on the time", shaped("what is the latest iPhone", "a"), shaped("what is the latest iPhone", "a"), "", ""},
		{"another tenant", shaped(bridges, "a"), Question{Tenant: "o", Text: bridges, Shape: []string{"a"}}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := newCache(Settings{Mode: modeFront, Accept: acceptSimilar})
			store(t, cache, c.stored)
			require.Equal(t, c.front, frontRule(t, cache, c.asked))
			require.Equal(t, c.last, rule(t, cache, c.asked))
		})
	}
}

func TestFrontIsForItsModeOnly(t *testing.T) {
	memory, q := NewMemory(0), shaped("How do bridges carry heavy loads?", "a")
	in := func(mode string) *Cache {
		return New(Settings{Mode: mode}, memory, sharedBuiltin(), slog.New(slog.DiscardHandler))
	}
	store(t, in("fallback"), q)
	require.Equal(t, 1, memory.used.Len())
	require.Empty(t, frontRule(t, in(modeFront), q), "what was kept without a shape")
	store(t, in(modeFront), q)
	require.Equal(t, ruleExact, frontRule(t, in(modeFront), q), "kept although the last tier knows it")
	require.Equal(t, 2, memory.used.Len())
	for _, mode := range []string{"fallback", modeOff} {
		require.Empty(t, frontRule(t, in(mode), q))
	}
	e := memory.used.Front().Value.(*memoryEntry)
	require.Nil(t, e.Vector)
	require.Empty(t, e.Question, "similarity never finds it")
}

// Each shape has the answer that it got; a purge and a tombstone reach them all.
func TestFrontAnswersAreForgottenToo(t *testing.T) {
	c := newCache(Settings{Mode: modeFront})
	const bridges = "How do bridges carry heavy loads?"
	fill := func() {
		for _, shape := range []string{"a", "b"} {
			require.NoError(t, c.Store(t.Context(), shaped(bridges, shape), "of "+shape))
		}
	}
	fill()
	for _, shape := range []string{"a", "b"} {
		hit, _, err := c.Front(t.Context(), shaped(bridges, shape))
		require.NoError(t, err)
		require.Equal(t, "of "+shape, hit.Text)
	}
	n, err := c.Purge(t.Context(), Target{Tenant: "t", Question: bridges})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Empty(t, frontRule(t, c, shaped(bridges, "a")))
	fill()
	_, err = c.Forget(t.Context(), Target{Tenant: "t", Question: bridges}, time.Hour)
	require.NoError(t, err)
	fill()
	require.Empty(t, frontRule(t, c, shaped(bridges, "b")))
}

// No front hit crosses a shape or a scope, and the other way round nothing keeps a question from its own answer.
func TestNoFrontHitCrossesAShape(t *testing.T) {
	field := rapid.SampledFrom([]string{"", "a", "b", "ab", `{"seed":1}`})
	draw := func(t *rapid.T, name string) Question {
		return Question{
			Tenant: field.Draw(t, name+" tenant"), User: field.Draw(t, name+" user"), Format: []byte(field.Draw(t, name+" format")),
			Shape: rapid.SliceOfN(field, 0, 3).Draw(t, name+" shape"),
			Text:  rapid.SampledFrom([]string{"怎么在网上选车牌号？", "怎样在网上选车牌号"}).Draw(t, name+" text"),
		}
	}
	shown := func(q Question) string { return fmt.Sprintf("%q %q %q %q", q.Tenant, q.User, q.Format, q.Shape) }
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(Settings{Mode: modeFront, Accept: acceptSimilar})
		stored, asked := draw(t, "stored"), draw(t, "asked")
		require.NoError(t, c.Store(context.Background(), stored, "answer"))
		_, found, err := c.Front(context.Background(), asked)
		require.NoError(t, err)
		require.Equal(t, shown(stored) == shown(asked), found)
	})
}

func TestABrokenStoreIsAMissInFront(t *testing.T) {
	c := New(Settings{Mode: modeFront}, &broken{}, sharedBuiltin(), slog.New(slog.DiscardHandler))
	_, found, err := c.Front(t.Context(), shaped("How do bridges carry loads?", "a"))
	require.False(t, found)
	require.ErrorIs(t, err, errGlance, "nobody waits for a store in front")
}

func TestFrontOverPostgres(t *testing.T) {
	c := New(Settings{Mode: modeFront}, openPostgres(t, database(t)), sharedBuiltin(), slog.New(slog.DiscardHandler))
	store(t, c, shaped("怎么在网上选车牌号？", "a"))
	require.Equal(t, ruleExact, frontRule(t, c, shaped("怎么在网上选车牌号？", "a")))
	require.Equal(t, ruleCanonical, frontRule(t, c, shaped("如何在網上選車牌號", "a")))
	require.Empty(t, frontRule(t, c, shaped("网上怎么选车牌号", "a")))
	require.Empty(t, frontRule(t, c, shaped("怎么在网上选车牌号？", "b")))
	require.Equal(t, ruleSimilar, rule(t, c, shaped("网上怎么选车牌号", "b")))
}

// What is too slow for a glance costs one glance, then none for a while, and the last tier is as patient as ever.
func TestGlancesHaveAPauseOfTheirOwn(t *testing.T) {
	where := database(t)
	var logged bytes.Buffer
	p, err := NewPostgres(where, PostgresOptions{Connections: 2, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	require.NoError(t, err)
	defer p.Close()
	e := entry("a", "what?", "what")
	put(t, p, e)

	conn, err := pgx.Connect(t.Context(), where)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "begin; lock table cache_entry in access exclusive mode")
	require.NoError(t, err)
	glance := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		_, _, err := p.Glance(ctx, e.Key)
		return err
	}
	start := time.Now()
	require.Error(t, glance())
	require.Less(t, time.Since(start), time.Second)
	for range 100 {
		require.ErrorIs(t, glance(), ErrAway)
	}
	_, err = conn.Exec(t.Context(), "rollback")
	require.NoError(t, err)
	_, found := find(t, p, e)
	require.True(t, found, "the last tier was never away")
	require.ErrorIs(t, glance(), ErrAway)
	require.Contains(t, logged.String(), `msg="cache store is away" for=front`)
	p.glances.mu.Lock()
	p.glances.until = time.Now() // its pause is over
	p.glances.mu.Unlock()
	require.NoError(t, glance())
	require.Contains(t, logged.String(), `msg="cache store is back" for=front`)
	require.NotContains(t, logged.String(), "no model does")
}
