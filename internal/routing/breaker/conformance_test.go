package breaker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemoryConforms(t *testing.T) {
	conform(t, func(testing.TB) Store { return NewMemory() })
}

func TestDynamoConforms(t *testing.T) {
	store, _, _ := dynamoTable(t)
	conform(t, func(testing.TB) Store { return store })
}

// conform is what every store must do. Each test uses candidates of its own.
func conform(t *testing.T, open func(testing.TB) Store) {
	t.Run("every change, its condition and its record", func(t *testing.T) { conformChanges(t, open(t)) })
	t.Run("many candidates in one load", func(t *testing.T) { conformLoad(t, open(t)) })
	t.Run("one winner of a race", func(t *testing.T) { conformRace(t, open(t)) })
	t.Run("a loser whose write was made after all", func(t *testing.T) { conformAmbiguous(t, open(t)) })
	t.Run("random changes", func(t *testing.T) {
		for seed := range uint64(2) {
			require.NoError(t, differ(open(t), seed, 250))
		}
	})
}

func conformChanges(t *testing.T, store Store) {
	trip := Change{Op: Trip, Now: 1000, Until: 31000, OpenFor: 30 * time.Second, Opens: 1, Why: "timeout"}
	again := Change{Op: Trip, Gen: 2, Now: 50000, Until: 60000, Opens: 0, Why: "rate_limited"}
	acquire := Change{Op: Acquire, Gen: 1, Now: 31000, Until: 46000, Holder: "x"}
	mine := Change{Gen: 1, Token: 1, Holder: "x", Now: 32000}
	own := func(op Op, set func(*Change)) Change {
		c := mine
		c.Op = op
		if set != nil {
			set(&c)
		}
		return c
	}
	opened := Record{
		State: Open, Gen: 1, OpenUntil: 31000, OpenFor: 30 * time.Second, Opens: 1, Why: "timeout", Updated: 1000,
	}
	trying := opened
	trying.State, trying.Token, trying.Holder, trying.LeaseUntil, trying.Updated = HalfOpen, 1, "x", 46000, 31000
	with := func(r Record, set func(*Record)) Record { set(&r); return r }
	closed := with(trying, func(r *Record) {
		*r = Record{State: Closed, Gen: 2, OpenFor: r.OpenFor, Token: 1, Why: r.Why, Updated: 32000}
	})
	free := with(trying, func(r *Record) { r.Holder, r.LeaseUntil, r.Updated = "", 0, 32000 })

	tests := []struct {
		name   string
		before []Change
		change Change
		want   Record
		failed bool
	}{
		{name: "trip of an unknown candidate", change: trip, want: opened},
		{name: "trip of an unknown candidate, believed known", change: Change{Op: Trip, Gen: 7, Now: 1000, Until: 31000, OpenFor: 30 * time.Second, Opens: 1, Why: "timeout"}, want: opened},
		{name: "second trip", before: []Change{trip}, change: Change{Op: Trip, Now: 1001, Until: 31001}, want: opened, failed: true},
		{name: "acquire of an unknown candidate", change: acquire, failed: true},
		{name: "acquire too early", before: []Change{trip}, change: Change{Op: Acquire, Gen: 1, Now: 30999, Holder: "x"}, want: opened, failed: true},
		{name: "acquire in another generation", before: []Change{trip}, change: Change{Op: Acquire, Gen: 2, Now: 31000, Holder: "x"}, want: opened, failed: true},
		{name: "acquire", before: []Change{trip}, change: acquire, want: trying},
		{name: "acquire while leased", before: []Change{trip, acquire}, change: Change{Op: Acquire, Gen: 1, Now: 45999, Holder: "y"}, want: trying, failed: true},
		{name: "acquire after the lease", before: []Change{trip, acquire}, change: Change{Op: Acquire, Gen: 1, Now: 46000, Until: 61000, Holder: "y"}, want: with(trying, func(r *Record) { r.Token, r.Holder, r.LeaseUntil, r.Updated = 2, "y", 61000, 46000 })},
		{name: "close", before: []Change{trip, acquire}, change: own(Close, nil), want: closed},
		{name: "close twice", before: []Change{trip, acquire, own(Close, nil)}, change: own(Close, func(c *Change) { c.Now++ }), want: closed, failed: true},
		{name: "close with another token", before: []Change{trip, acquire}, change: own(Close, func(c *Change) { c.Token = 2 }), want: trying, failed: true},
		{name: "close with another nonce", before: []Change{trip, acquire}, change: own(Close, func(c *Change) { c.Holder = "y" }), want: trying, failed: true},
		{name: "close without a trial", before: []Change{trip}, change: own(Close, nil), want: opened, failed: true},
		{name: "pass", before: []Change{trip, acquire}, change: own(Pass, nil), want: with(free, func(r *Record) { r.Passed = 1 })},
		{name: "pass twice", before: []Change{trip, acquire, own(Pass, nil)}, change: own(Pass, nil), want: with(free, func(r *Record) { r.Passed = 1 }), failed: true},
		{name: "release", before: []Change{trip, acquire}, change: own(Release, nil), want: free},
		{name: "acquire after release", before: []Change{trip, acquire, own(Release, nil)}, change: Change{Op: Acquire, Gen: 1, Now: 33000, Until: 48000, Holder: "y"}, want: with(trying, func(r *Record) { r.Token, r.Holder, r.LeaseUntil, r.Updated = 2, "y", 48000, 33000 })},
		{name: "reopen", before: []Change{trip, acquire}, change: own(Reopen, func(c *Change) { c.Until, c.OpenFor, c.Opens, c.Why = 92000, time.Minute, 2, "empty" }), want: Record{State: Open, Gen: 2, OpenUntil: 92000, OpenFor: time.Minute, Opens: 2, Token: 1, Why: "empty", Updated: 32000}},
		{name: "reopen forgets passed trials", before: []Change{trip, acquire, own(Pass, nil), {Op: Acquire, Gen: 1, Now: 33000, Holder: "y"}}, change: Change{Op: Reopen, Gen: 1, Token: 2, Holder: "y", Now: 34000, Until: 94000, OpenFor: time.Minute, Opens: 2}, want: Record{State: Open, Gen: 2, OpenUntil: 94000, OpenFor: time.Minute, Opens: 2, Token: 2, Updated: 34000}},
		{name: "trip again after closing", before: []Change{trip, acquire, own(Close, nil)}, change: again, want: Record{State: Open, Gen: 3, OpenUntil: 60000, Token: 1, Why: "rate_limited", Updated: 50000}},
		{name: "trip of an older generation", before: []Change{trip, acquire, own(Close, nil)}, change: Change{Op: Trip, Gen: 1, Now: 1}, want: closed, failed: true},
		{name: "extend", before: []Change{trip}, change: Change{Op: Extend, Gen: 1, Now: 2000, Until: 40000}, want: with(opened, func(r *Record) { r.OpenUntil, r.Updated = 40000, 2000 })},
		{name: "extend never shortens", before: []Change{trip}, change: Change{Op: Extend, Gen: 1, Now: 2000, Until: 31000}, want: opened, failed: true},
	}
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			id := "changes-" + strconv.Itoa(i)
			for _, c := range tc.before {
				_, applied, err := store.Update(t.Context(), id, c)
				require.NoError(t, err)
				require.True(t, applied)
			}
			got, applied, err := store.Update(t.Context(), id, tc.change)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			require.Equal(t, !tc.failed, applied)
			loaded, err := store.Load(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, map[string]Record{id: tc.want}, loaded)
		})
	}
}

func conformLoad(t *testing.T, store Store) {
	var ids []string
	want := map[string]Record{}
	for i := range 120 {
		id := fmt.Sprintf("load-%03d", i)
		ids = append(ids, id)
		want[id] = Record{}
	}
	r, _, err := store.Update(t.Context(), ids[7], Change{Op: Trip, Now: 5, Until: 10, OpenFor: 5 * time.Millisecond, Opens: 1})
	require.NoError(t, err)
	want[ids[7]] = r
	got, err := store.Load(t.Context(), append(ids, ids[7])...)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func conformRace(t *testing.T, store Store) {
	for round := range 10 {
		id := "race-" + strconv.Itoa(round)
		_, _, err := store.Update(t.Context(), id, Change{Op: Trip, Now: 1, Until: 2})
		require.NoError(t, err)
		winners := make(chan string, 16)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				c := Change{Op: Acquire, Gen: 1, Now: 3, Until: 100, Holder: strconv.Itoa(i)}
				if _, applied, err := store.Update(t.Context(), id, c); err == nil && applied {
					winners <- c.Holder
				}
			})
		}
		wg.Wait()
		close(winners)
		holder := <-winners
		require.NotEmpty(t, holder)
		require.Empty(t, winners)
		got, err := store.Load(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, Record{State: HalfOpen, Gen: 1, OpenUntil: 2, Token: 1, Holder: holder, LeaseUntil: 100, Updated: 3}, got[id])
	}
}

// conformAmbiguous: after a lost answer the same write is sent again, and its condition fails.
func conformAmbiguous(t *testing.T, store Store) {
	const id = "ambiguous"
	steps := []Change{
		{Op: Trip, Now: 1, Until: 2, OpenFor: time.Millisecond, Opens: 1},
		{Op: Acquire, Gen: 1, Now: 3, Until: 100, Holder: "x"},
		{Op: Reopen, Gen: 1, Token: 1, Holder: "x", Now: 4, Until: 6, OpenFor: 2 * time.Millisecond, Opens: 2},
		{Op: Acquire, Gen: 2, Now: 7, Until: 100, Holder: "y"},
		{Op: Close, Gen: 2, Token: 2, Holder: "y", Now: 8},
	}
	for _, c := range steps {
		first, _, err := store.Update(t.Context(), id, c)
		require.NoError(t, err)
		second, applied, err := store.Update(t.Context(), id, c)
		require.NoError(t, err)
		require.Equal(t, first, second)
		require.True(t, applied, "the change must be recognised as its writer's own")
	}
}

// differ makes random changes and says where the store differs from the specification, or breaks an invariant.
func differ(store Store, seed uint64, steps int) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	id := fmt.Sprintf("differ-%d", seed)
	var want Record
	settled := map[int64]bool{}
	for now := int64(1); now <= int64(steps); now++ {
		c := randomChange(rnd, want, now)
		before := want
		var ok bool
		want, ok = c.Apply(want)
		got, applied, err := store.Update(context.Background(), id, c)
		if err != nil {
			return err
		}
		if got != want || applied != (ok || c.made(got)) {
			return fmt.Errorf("step %d: %+v on %+v gave %+v (%v), want %+v (%v)", now, c, before, got, applied, want, ok)
		}
		if err := inOrder(before, want, c, ok, settled); err != nil {
			return fmt.Errorf("step %d: %w", now, err)
		}
	}
	return nil
}

// inOrder: generations and tokens never fall, a change raises one of them or touches only the lease or the
// deadline, and a token has one accepted result.
func inOrder(before, after Record, c Change, applied bool, settled map[int64]bool) error {
	if after.Gen < before.Gen || after.Token < before.Token {
		return fmt.Errorf("generation or token fell: %+v to %+v", before, after)
	}
	if !applied {
		return nil
	}
	if after.Gen == before.Gen && after.Token == before.Token && c.Op != Pass && c.Op != Release && c.Op != Extend {
		return fmt.Errorf("%+v raised nothing", c)
	}
	if c.Op == Close || c.Op == Reopen || c.Op == Pass || c.Op == Release {
		if settled[c.Token] {
			return fmt.Errorf("token %d has two results", c.Token)
		}
		settled[c.Token] = true
	}
	return nil
}

func randomChange(rnd *rand.Rand, r Record, now int64) Change {
	near := func(n int64) int64 { return n + []int64{0, 0, 0, 0, 0, -1, 1}[rnd.IntN(7)] }
	holders := []string{"x", "y", "z"}
	c := Change{
		Op: Op(rnd.IntN(int(Extend) + 1)), Gen: near(r.Gen), Token: near(r.Token), Holder: r.Holder, Now: now,
		Until: now + rnd.Int64N(12) - 2, OpenFor: time.Duration(rnd.IntN(3)) * time.Millisecond,
		Opens: rnd.Int64N(4), Why: holders[rnd.IntN(3)],
	}
	if c.Op == Acquire || rnd.IntN(5) == 0 {
		c.Holder = holders[rnd.IntN(3)]
	}
	return c
}

// broken is a store with a fault in its protocol: the suite must find it.
type broken struct {
	*Memory
	fault func(r Record, c Change) (Record, Change)
}

func (b broken) Update(ctx context.Context, id string, c Change) (Record, bool, error) {
	b.mu.Lock()
	r, c := b.fault(b.records[id], c)
	b.records[id] = r
	b.mu.Unlock()
	return b.Memory.Update(ctx, id, c)
}

func TestSuiteFindsBrokenStores(t *testing.T) {
	trials := func(c Change) bool { return c.Op == Close || c.Op == Pass || c.Op == Reopen || c.Op == Release }
	tests := []struct {
		name  string
		fault func(r Record, c Change) (Record, Change)
	}{
		{"no token in the fence", func(r Record, c Change) (Record, Change) {
			if trials(c) {
				c.Token = r.Token
			}
			return r, c
		}},
		{"no nonce in the fence", func(r Record, c Change) (Record, Change) {
			if trials(c) {
				c.Holder = r.Holder
			}
			return r, c
		}},
		{"no generation in the fence", func(r Record, c Change) (Record, Change) { c.Gen = r.Gen; return r, c }},
		{"leases not respected", func(r Record, c Change) (Record, Change) {
			if c.Op == Acquire {
				r.LeaseUntil = 0
			}
			return r, c
		}},
		{"trials before the time", func(r Record, c Change) (Record, Change) {
			if c.Op == Acquire && r.State == Open {
				r.OpenUntil = 0
			}
			return r, c
		}},
		{"deadlines shortened", func(r Record, c Change) (Record, Change) {
			if c.Op == Extend {
				r.OpenUntil = 0
			}
			return r, c
		}},
		{"generation not raised", func(r Record, c Change) (Record, Change) {
			if c.Op == Close && c.holds(r) {
				r.Gen--
				c.Gen--
			}
			return r, c
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			require.Error(t, differ(broken{NewMemory(), tc.fault}, 1, 2000))
		})
	}
	require.NoError(t, differ(NewMemory(), 1, 2000))
}
