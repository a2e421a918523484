package cache

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// conformance is what every store does. open gives an empty store of one process; opened again on the same place,
// if the store outlives a process.
func conformance(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Store)
	}{
		{"finds by the exact key", findsExact},
		{"finds by the canonical key", findsCanonical},
		{"finds the same at a glance", glances},
		{"never sees beyond a scope", keepsScopes},
		{"gives nothing out past its time", expires},
		{"expires in batches", expiresInBatches},
		{"orders by nearness and stays with an embedder", ordersByNearness},
		{"has one answer to what asks the same", replacesSame},
		{"doesn't write again what it knows", keepsKnown},
		{"replaces what it is told to", replacesNamed},
		{"purges a tenant", purgesTenant},
		{"purges a user", purgesUser},
		{"purges a question", purgesQuestion},
		{"stores again after a purge", storesAfterPurge},
		{"forgets a question until the end", forgets},
		{"keeps any text", keepsText},
		{"may be used by many at once", takesMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			defer s.Close()
			c.test(t, s)
		})
	}
}

func entry(scope, question, meaning string) Entry {
	e := Entry{Key: Key{Tenant: tenantKey("t"), Scope: hashOf("scope", scope), Exact: hashOf("exact", question)}, Question: question, Answer: "answer to " + question, TTL: time.Hour}
	if meaning != "" {
		e.Canonical = hashOf("canonical", meaning)
	}
	return e
}

func put(t *testing.T, s Store, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		require.NoError(t, s.Put(t.Context(), e))
	}
}

func find(t *testing.T, s Store, e Entry) (Entry, bool) {
	t.Helper()
	found, ok, err := s.Find(t.Context(), e.Key)
	require.NoError(t, err)
	return found, ok
}

func findsExact(t *testing.T, s Store) {
	e := entry("a", "what?", "")
	_, ok := find(t, s, e)
	require.False(t, ok)
	put(t, s, e)
	got, ok := find(t, s, e)
	require.True(t, ok)
	require.Equal(t, e.Answer, got.Answer)
	require.Equal(t, e.Question, got.Question)
	require.Equal(t, e.Exact, got.Exact)
	require.InDelta(t, 0, got.Age.Seconds(), 5)
	_, ok = find(t, s, entry("a", "who?", ""))
	require.False(t, ok)
}

func findsCanonical(t *testing.T, s Store) {
	put(t, s, entry("a", "what?", "what"), entry("a", "who?", "who"), entry("a", "word", ""))
	got, ok := find(t, s, entry("a", "What", "what"))
	require.True(t, ok)
	require.Equal(t, "answer to what?", got.Answer)
	require.Equal(t, hashOf("exact", "what?"), got.Exact)
	got, ok = find(t, s, entry("a", "who?", "what"))
	require.True(t, ok)
	require.Equal(t, "answer to who?", got.Answer, "exact goes first")
	_, ok = find(t, s, entry("a", "Word", ""))
	require.False(t, ok, "no canonical key finds no entry without one")
}

func keepsScopes(t *testing.T, s Store) {
	e := entry("a", "what?", "what")
	e.Embedder, e.Vector = "x", []float32{1, 0}
	put(t, s, e)
	_, ok := find(t, s, entry("b", "what?", "what"))
	require.False(t, ok)
	near, err := s.Near(t.Context(), Near{Scope: hashOf("scope", "b"), Embedder: "x", Vector: []float32{1, 0}, Limit: 5})
	require.NoError(t, err)
	require.Empty(t, near)
	other := entry("b", "what?", "what")
	other.Answer = "b's"
	put(t, s, other)
	got, _ := find(t, s, e)
	require.Equal(t, "answer to what?", got.Answer)
}

func expires(t *testing.T, s Store) {
	e := entry("a", "what?", "what")
	e.TTL, e.Embedder, e.Vector = -time.Second, "x", []float32{1}
	put(t, s, e)
	_, ok := find(t, s, e)
	require.False(t, ok)
	near, err := s.Near(t.Context(), Near{Scope: e.Scope, Embedder: "x", Vector: []float32{1}, Limit: 5})
	require.NoError(t, err)
	require.Empty(t, near)
	e.TTL, e.Answer = time.Hour, "new"
	put(t, s, e)
	got, ok := find(t, s, e)
	require.True(t, ok, "what is past its time gives way")
	require.Equal(t, "new", got.Answer)
}

func expiresInBatches(t *testing.T, s Store) {
	for i := range 5 {
		e := entry("a", fmt.Sprint("old", i), "")
		e.TTL = -time.Minute
		put(t, s, e, entry("a", fmt.Sprint("new", i), ""))
	}
	for _, want := range []int{2, 2, 1, 0} {
		n, err := s.Expire(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	_, ok := find(t, s, entry("a", "new3", ""))
	require.True(t, ok)
}

func ordersByNearness(t *testing.T, s Store) {
	for i, v := range [][]float32{{0, 1}, {0.6, 0.8}, {1, 0}, {0.8, 0.6}} {
		e := entry("a", fmt.Sprint(i), "")
		e.Embedder, e.Vector = "x", v
		put(t, s, e)
	}
	foreign := entry("a", "foreign", "")
	foreign.Embedder, foreign.Vector = "y", []float32{1, 0, 0}
	put(t, s, foreign, entry("a", "none", ""))
	near, err := s.Near(t.Context(), Near{Scope: foreign.Scope, Embedder: "x", Vector: []float32{1, 0}, Limit: 3})
	require.NoError(t, err)
	require.Len(t, near, 3)
	require.Equal(t, []string{"2", "3", "1"}, []string{near[0].Question, near[1].Question, near[2].Question})
}

func replacesSame(t *testing.T, s Store) {
	put(t, s, entry("a", "what?", "what"), entry("a", "What", "what"))
	got, ok := find(t, s, entry("a", "WHAT", "what"))
	require.True(t, ok)
	require.Equal(t, "answer to What", got.Answer, "the newest")
	_, ok = find(t, s, entry("a", "what?", ""))
	require.False(t, ok, "the other one is gone")
}

func keepsKnown(t *testing.T, s Store) {
	e := entry("a", "what?", "what")
	put(t, s, e)
	again := e
	again.Answer = "another"
	put(t, s, again)
	got, _ := find(t, s, e)
	require.Equal(t, e.Answer, got.Answer)
}

func replacesNamed(t *testing.T, s Store) {
	old, other := entry("a", "old", "x"), entry("b", "old", "x")
	put(t, s, old, other, entry("a", "third", "z"))
	e := entry("a", "new", "y")
	e.Replaces = []Hash{old.Exact, hashOf("exact", "not there")}
	put(t, s, e)
	_, ok := find(t, s, old)
	require.False(t, ok)
	for _, stays := range []Entry{e, other, entry("a", "third", "")} {
		_, ok = find(t, s, stays)
		require.True(t, ok, stays.Question)
	}
	put(t, s, old)
	_, ok = find(t, s, old)
	require.True(t, ok, "what was replaced may come back")
}

// owned are entries of two tenants and two users, and one without a user, in scopes of their own.
func owned() (all []Entry) {
	for _, tenant := range []string{"t", "other"} {
		for _, user := range []string{"", "u", "v"} {
			for _, question := range []string{"what", "who"} {
				e := entry(tenant+" "+user, question, question)
				e.Tenant, e.User = tenantKey(tenant), userKey(tenant, user)
				all = append(all, e)
			}
		}
	}
	return all
}

// purge purges in batches of 2 and says which entries of all are left.
func purge(t *testing.T, s Store, what Selection, all []Entry) (left []Entry) {
	t.Helper()
	put(t, s, all...)
	for {
		n, err := s.Purge(t.Context(), what, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, n, 2)
		if n == 0 {
			break
		}
	}
	for _, e := range all {
		if _, ok := find(t, s, e); ok {
			left = append(left, e)
		}
	}
	return left
}

func purgesTenant(t *testing.T, s Store) {
	require.Equal(t, owned()[6:], purge(t, s, Selection{Tenant: tenantKey("t")}, owned()))
}

func purgesUser(t *testing.T, s Store) {
	all := owned()
	left := purge(t, s, Selection{Tenant: tenantKey("t"), User: userKey("t", "u")}, all)
	require.Equal(t, append(all[:2:2], all[4:]...), left)
}

func purgesQuestion(t *testing.T, s Store) {
	for _, key := range []Hash{hashOf("exact", "who"), hashOf("canonical", "who")} {
		left := purge(t, s, Selection{Tenant: tenantKey("t"), Questions: []Hash{key}}, owned())
		require.Len(t, left, 9)
		for _, e := range left[:3] {
			require.Equal(t, "what", e.Question)
		}
	}
}

func storesAfterPurge(t *testing.T, s Store) {
	e := entry("a", "what?", "what")
	require.Empty(t, purge(t, s, Selection{Tenant: e.Tenant}, []Entry{e}))
	put(t, s, e)
	_, ok := find(t, s, e)
	require.True(t, ok)
}

func forgets(t *testing.T, s Store) {
	forget := func(ttl time.Duration, questions ...Hash) {
		require.NoError(t, s.Forget(t.Context(), tenantKey("t"), questions, ttl))
	}
	byExact, byCanonical, other := entry("a", "what?", "what"), entry("b", "who?", "who"), entry("c", "why?", "why")
	byExact.Embedder, byExact.Vector = "x", []float32{1, 0}
	near := func() []Entry {
		found, err := s.Near(t.Context(), Near{Scope: byExact.Scope, Embedder: "x", Vector: []float32{1, 0}, Limit: 5})
		require.NoError(t, err)
		return found
	}
	put(t, s, byExact)
	require.Len(t, near(), 1)
	forget(time.Hour, byExact.Exact, byCanonical.Canonical)
	put(t, s, byCanonical, other)
	for _, e := range []Entry{byExact, entry("d", "What", "what"), byCanonical, entry("b", "Who", "who")} {
		_, ok, err := s.Find(t.Context(), e.Key)
		require.ErrorIs(t, err, ErrForgotten, e.Question)
		require.False(t, ok)
	}
	require.Empty(t, near(), "nor does it answer what is similar")
	_, ok := find(t, s, other)
	require.True(t, ok)
	elsewhere := byExact
	elsewhere.Tenant, elsewhere.Scope = tenantKey("other"), hashOf("scope", "other")
	put(t, s, elsewhere)
	_, ok = find(t, s, elsewhere)
	require.True(t, ok, "another tenant's")

	forget(-time.Second, byExact.Exact, byExact.Canonical, byCanonical.Canonical)
	_, err := s.Expire(t.Context(), 10)
	require.NoError(t, err)
	_, ok = find(t, s, byCanonical)
	require.False(t, ok, "it wasn't kept meanwhile")
	put(t, s, byCanonical)
	_, ok = find(t, s, byCanonical)
	require.True(t, ok)
}

func keepsText(t *testing.T, s Store) {
	for i, text := range []string{"", "中文 “引号” \\ ' \" ; --", "😀\r\n\t\u0001", string(make([]rune, 0)) + "é\u0301"} {
		e := entry("a", fmt.Sprint(i), "")
		e.Answer, e.Question = text, text
		put(t, s, e)
		got, ok := find(t, s, e)
		require.True(t, ok)
		require.Equal(t, text, got.Answer)
		require.Equal(t, text, got.Question)
	}
}

func takesMany(t *testing.T, s Store) {
	var all sync.WaitGroup
	errs := make(chan error, 400)
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				e := entry(fmt.Sprint(i%2), fmt.Sprint(i, j), fmt.Sprint(i, j))
				errs <- s.Put(context.Background(), e)
				_, _, err := s.Find(context.Background(), e.Key)
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	_, ok := find(t, s, entry("1", "1 1", ""))
	require.True(t, ok)
}

func glances(t *testing.T, s Store) {
	e := entry("a", "what?", "what")
	e.Tenant = tenantKey("glances") // its tombstone stays
	put(t, s, e)
	variant := e.Key
	variant.Exact = hashOf("exact", "What")
	for _, k := range []Key{e.Key, variant} {
		got, ok, err := s.Glance(t.Context(), k)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, e.Answer, got.Answer)
	}
	elsewhere := e.Key
	elsewhere.Scope = hashOf("scope", "b")
	_, ok, err := s.Glance(t.Context(), elsewhere)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.Forget(t.Context(), e.Tenant, []Hash{e.Exact}, time.Hour))
	_, _, err = s.Glance(t.Context(), e.Key)
	require.ErrorIs(t, err, ErrForgotten)
}
