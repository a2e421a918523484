package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemoryConforms(t *testing.T) {
	conformance(t, func(*testing.T) Store { return NewMemory(0) })
}

func TestMemoryIsBounded(t *testing.T) {
	m := NewMemory(3)
	for i := range 3 {
		put(t, m, entry("a", fmt.Sprint(i), fmt.Sprint(i)))
	}
	_, ok := find(t, m, entry("a", "0", ""))
	require.True(t, ok)
	put(t, m, entry("b", "3", "3"))
	for i, want := range []bool{true, false, true} {
		_, ok := find(t, m, entry("a", fmt.Sprint(i), fmt.Sprint(i)))
		require.Equal(t, want, ok, "what was used least lately goes first: %d", i)
	}
	require.Len(t, m.exact, 3)
	require.Len(t, m.canonical, 3)
	require.Equal(t, 3, m.used.Len())
}

func TestMemoryForgetsWholeScopes(t *testing.T) {
	m := NewMemory(1)
	put(t, m, entry("a", "1", "1"), entry("b", "2", "2"))
	require.Len(t, m.scopes, 1)
}

func TestMemoryAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, e := NewMemory(0), entry("a", "what?", "what")
		require.NoError(t, m.Put(context.Background(), e))
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's time
		got, ok, err := m.Find(context.Background(), e.Key)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, time.Minute, got.Age)
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's time
		_, ok, _ = m.Find(context.Background(), e.Key)
		require.False(t, ok)
		require.Zero(t, m.used.Len(), "found too old, it is gone")
	})
}

// A smaller store forgets what was used least lately.
func TestMemoryResize(t *testing.T) {
	m := NewMemory(3)
	entry := func(i byte) Entry { return Entry{Key: Key{Exact: Hash{i}}, Answer: "a", TTL: time.Hour} }
	kept := func() (out []byte) {
		for i := range byte(9) {
			if _, found, err := m.Find(t.Context(), Key{Exact: Hash{i}}); err == nil && found {
				out = append(out, i)
			}
		}
		return out
	}
	for i := range byte(4) {
		require.NoError(t, m.Put(t.Context(), entry(i)))
	}
	require.Equal(t, []byte{1, 2, 3}, kept())
	m.Resize(1)
	require.Equal(t, []byte{3}, kept())
	m.Resize(2)
	require.NoError(t, m.Put(t.Context(), entry(4)))
	require.Equal(t, []byte{3, 4}, kept())
	m.Resize(0)
	for i := range byte(4) {
		require.NoError(t, m.Put(t.Context(), entry(5+i)))
	}
	require.Len(t, kept(), 6)
}

// A full store of one scope, as it is by default.
func BenchmarkMemoryNear(b *testing.B) {
	m, rng := NewMemory(0), rand.New(rand.NewPCG(1, 1))
	for i := range defaultMaxEntries {
		e := entry("a", fmt.Sprint(i), "")
		e.Embedder, e.Vector = "x", randomVector(rng, nil)
		require.NoError(b, m.Put(b.Context(), e))
	}
	near := Near{Scope: hashOf("scope", "a"), Embedder: "x", Vector: randomVector(rng, nil), Limit: candidates}
	for b.Loop() {
		_, _ = m.Near(b.Context(), near)
	}
}
