package breaker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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
	suspect := Change{Op: Suspect, Now: 500}
	sample := func(start, tickets int64) Change {
		return Change{Op: Ticket, Gen: 1, Now: 600, Window: Window{Start: start, Tickets: tickets}}
	}
	count := func(failed, ok, slow int64) Change {
		return Change{Op: Count, Gen: 1, Now: 700, Window: Window{Start: 500, Failed: failed, OK: ok, Slow: slow}}
	}
	suspected := Record{Gen: 1, Updated: 500, Window: Window{Start: 500}}
	counted := func(w Window) Record { w.Start = 500; return Record{Gen: 1, Updated: 500, Window: w} }
	force := func(to State, until int64) Change {
		return Change{Op: Force, State: to, Now: 40000, Until: until, Why: "maintenance"}
	}
	forced := func(to State, gen, until int64) Record {
		return Record{State: to, Gen: gen, OpenUntil: until, Why: "maintenance", Updated: 40000}
	}

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
		{name: "suspicion of an unknown candidate", change: suspect, want: suspected},
		{name: "suspicion of an unknown candidate, believed known", change: Change{Op: Suspect, Gen: 7, Now: 500, Window: Window{Start: 3}}, want: suspected},
		{name: "suspicion of a closed one", before: []Change{trip, acquire, own(Close, nil)}, change: Change{Op: Suspect, Gen: 2, Now: 40000}, want: with(closed, func(r *Record) { r.Window.Start, r.Updated = 40000, 40000 })},
		{name: "suspicion of an open one", before: []Change{trip}, change: Change{Op: Suspect, Gen: 1, Now: 2000}, want: opened, failed: true},
		{name: "suspicion in place of another sample", before: []Change{suspect, sample(500, 20), count(1, 0, 0)}, change: Change{Op: Suspect, Gen: 1, Now: 9000, Window: Window{Start: 500, AfterCalm: true}}, want: Record{Gen: 1, Updated: 9000, Window: Window{Start: 9000, AfterCalm: true}}},
		{name: "suspicion too late", before: []Change{suspect}, change: Change{Op: Suspect, Gen: 1, Now: 501}, want: suspected, failed: true},
		{name: "suspicion in another generation", before: []Change{suspect}, change: Change{Op: Suspect, Gen: 2, Now: 9000, Window: Window{Start: 500}}, want: suspected, failed: true},
		{name: "ticket of an unknown candidate", change: sample(0, 20), failed: true},
		{name: "ticket", before: []Change{suspect}, change: sample(500, 20), want: counted(Window{Tickets: 1})},
		{name: "the last ticket", before: []Change{suspect, sample(500, 2)}, change: sample(500, 2), want: counted(Window{Tickets: 2})},
		{name: "one ticket too many", before: []Change{suspect, sample(500, 2), sample(500, 2)}, change: sample(500, 2), want: counted(Window{Tickets: 2}), failed: true},
		{name: "ticket of another sample", before: []Change{suspect}, change: sample(499, 20), want: suspected, failed: true},
		{name: "ticket of an open candidate", before: []Change{suspect, {Op: Trip, Gen: 1, Now: 800, Until: 900}}, change: with2(sample(500, 20), 2), want: Record{State: Open, Gen: 2, OpenUntil: 900, Updated: 800, Window: Window{Start: 500}}, failed: true},
		{name: "count of a failure", before: []Change{suspect, sample(500, 20)}, change: count(1, 0, 0), want: counted(Window{Tickets: 1, Failed: 1})},
		{name: "count of a slow call", before: []Change{suspect, sample(500, 20)}, change: count(0, 1, 1), want: counted(Window{Tickets: 1, OK: 1, Slow: 1})},
		{name: "a good beginning that ends badly", before: []Change{suspect, sample(500, 20), count(0, 1, 0)}, change: count(1, -1, 0), want: counted(Window{Tickets: 1, Failed: 1})},
		{name: "a bad end without its beginning", before: []Change{suspect, sample(500, 20)}, change: count(1, -1, 0), want: counted(Window{Tickets: 1}), failed: true},
		{name: "count in another sample", before: []Change{suspect, {Op: Suspect, Gen: 1, Now: 9000, Window: Window{Start: 500}}}, change: count(1, 0, 0), want: Record{Gen: 1, Updated: 9000, Window: Window{Start: 9000}}, failed: true},
		{name: "count in another generation", before: []Change{suspect}, change: with2(count(1, 0, 0), 2), want: suspected, failed: true},
		{name: "closing empties the sample", before: []Change{{Op: Suspect, Now: 500, Window: Window{AfterCalm: true}}, {Op: Trip, Gen: 1, Now: 800, Until: 900}, {Op: Acquire, Gen: 2, Now: 1000, Until: 2000, Holder: "x"}}, change: Change{Op: Close, Gen: 2, Token: 1, Holder: "x", Now: 1100}, want: Record{Gen: 3, Token: 1, Updated: 1100}},
		{name: "force an unknown candidate open", change: force(ForcedOpen, 0), want: forced(ForcedOpen, 1, 0)},
		{name: "force an open candidate closed", before: []Change{trip}, change: force(ForcedClosed, 90000), want: forced(ForcedClosed, 2, 90000)},
		{name: "force takes a trial away", before: []Change{trip, acquire}, change: force(ForcedOpen, 90000), want: with(forced(ForcedOpen, 2, 90000), func(r *Record) { r.Token = 1 })},
		{name: "reset forgets", before: []Change{suspect, sample(500, 20), {Op: Trip, Gen: 1, Now: 800, Until: 900, OpenFor: time.Second, Opens: 3}}, change: force(Closed, 0), want: forced(Closed, 3, 0)},
		{name: "trip of one forced closed", before: []Change{force(ForcedClosed, 0)}, change: Change{Op: Trip, Gen: 1, Now: 50000, Until: 60000}, want: forced(ForcedClosed, 1, 0), failed: true},
		{name: "trip before a forced state is over", before: []Change{force(ForcedClosed, 50001)}, change: Change{Op: Trip, Gen: 1, Now: 50000, Until: 60000}, want: forced(ForcedClosed, 1, 50001), failed: true},
		{name: "trip when a forced state is over", before: []Change{force(ForcedClosed, 50000)}, change: Change{Op: Trip, Gen: 1, Now: 50000, Until: 60000, Why: "timeout"}, want: Record{State: Open, Gen: 2, OpenUntil: 60000, Why: "timeout", Updated: 50000}},
		{name: "suspicion of one forced open", before: []Change{force(ForcedOpen, 50001)}, change: Change{Op: Suspect, Gen: 1, Now: 50000}, want: forced(ForcedOpen, 1, 50001), failed: true},
		{name: "suspicion when a forced state is over", before: []Change{force(ForcedOpen, 50000)}, change: Change{Op: Suspect, Gen: 1, Now: 50000}, want: Record{Gen: 1, Why: "maintenance", Updated: 50000, Window: Window{Start: 50000}}},
		{name: "acquire of one forced open", before: []Change{force(ForcedOpen, 50000)}, change: Change{Op: Acquire, Gen: 1, Now: 60000, Until: 70000, Holder: "x"}, want: forced(ForcedOpen, 1, 50000), failed: true},
		{name: "extend of one forced open", before: []Change{force(ForcedOpen, 50000)}, change: Change{Op: Extend, Gen: 1, Now: 41000, Until: 70000}, want: forced(ForcedOpen, 1, 50000), failed: true},
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

func with2(c Change, gen int64) Change { c.Gen = gen; return c }

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
	conformTickets(t, store)
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

// conformTickets: of those who ask at once no more get a ticket than there are, and no count is lost.
func conformTickets(t *testing.T, store Store) {
	const id, size = "race-tickets", 20
	_, _, err := store.Update(t.Context(), id, Change{Op: Suspect, Now: 5})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 2 * size {
		wg.Go(func() {
			c := Change{Op: Ticket, Gen: 1, Window: Window{Start: 5, Tickets: size}}
			if _, applied, err := store.Update(t.Context(), id, c); err == nil && applied {
				c.Op, c.Window = Count, Window{Start: 5, Failed: 1, Slow: 1}
				_, _, _ = store.Update(t.Context(), id, c) //nolint:dogsled // the sum below says whether it was made
			}
		})
	}
	wg.Wait()
	got, err := store.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, Window{Start: 5, Tickets: size, Failed: size, Slow: size}, got[id].Window)
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
		{Op: Suspect, Gen: 3, Now: 9},
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
	keeps := []Op{Pass, Release, Extend, Suspect, Ticket, Count}
	if after.Gen == before.Gen && after.Token == before.Token && !slices.Contains(keeps, c.Op) {
		return fmt.Errorf("%+v raised nothing", c)
	}
	if w := after.Window; w.OK < 0 || w.Tickets > sampleSize {
		return fmt.Errorf("no sample: %+v", w)
	}
	if c.Op == Close || c.Op == Reopen || c.Op == Pass || c.Op == Release {
		if settled[c.Token] {
			return fmt.Errorf("token %d has two results", c.Token)
		}
		settled[c.Token] = true
	}
	return nil
}

// dice are where chance comes from: a seed, or rapid, which finds the shortest history that fails.
type dice interface {
	IntN(n int) int
	Int64N(n int64) int64
}

func randomChange(rnd dice, r Record, now int64) Change {
	near := func(n int64) int64 { return n + []int64{0, 0, 0, 0, 0, -1, 1}[rnd.IntN(7)] }
	holders := []string{"x", "y", "z"}
	states := []State{ForcedOpen, ForcedClosed, Closed}
	op := Op(rnd.IntN(int(Force) + 1))
	switch {
	case r.State == Closed && r.Window.Start > 0 && rnd.IntN(2) == 0: // else no sample gets far
		op = []Op{Ticket, Count}[rnd.IntN(2)]
	case op == Force && rnd.IntN(4) > 0:
		op = Trip
	}
	c := Change{
		Op: op, State: states[rnd.IntN(3)], Gen: near(r.Gen), Token: near(r.Token), Holder: r.Holder, Now: now,
		Until: now + rnd.Int64N(12) - 2, OpenFor: time.Duration(rnd.IntN(3)) * time.Millisecond,
		Opens: rnd.Int64N(4), Why: holders[rnd.IntN(3)],
	}
	switch c.Op {
	case Ticket:
		c.Window = Window{Start: near(r.Window.Start), Tickets: sampleSize}
	case Suspect:
		c.Window = Window{Start: near(r.Window.Start), AfterCalm: rnd.IntN(2) == 0}
	case Count:
		c.Window = Window{Start: near(r.Window.Start), Failed: rnd.Int64N(2), OK: rnd.Int64N(3) - 1, Slow: rnd.Int64N(2)}
	case Force:
		c.Until = max(0, c.Until-5)
	}
	if c.Op == Acquire || rnd.IntN(5) == 0 {
		c.Holder = holders[rnd.IntN(3)]
	}
	return c
}

const sampleSize = 2 // of the random changes
