package breaker

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOrders(t *testing.T) {
	soon := func() time.Time { return time.Now().Add(time.Minute) }
	tests := []struct {
		name string
		o    Order
		err  string
	}{
		{"open without an end", Order{To: ForcedOpen, Why: "the provider asked for it"}, ""},
		{"open with an end", Order{To: ForcedOpen, Until: soon()}, ""},
		{"closed", Order{To: ForcedClosed, Until: soon(), Why: "误报"}, ""},
		{"reset", Order{To: Closed, Why: strings.Repeat("长", longestWhy)}, ""},
		{"half-open", Order{To: HalfOpen}, "can't be forced half-open"},
		{"merely open", Order{To: Open}, "can't be forced open"},
		{"reset with an end", Order{To: Closed, Until: soon()}, "a reset has no end"},
		{"an end that is past", Order{To: ForcedOpen, Until: time.Unix(1, 0)}, "must be ahead"},
		{"an end that no item holds", Order{To: ForcedOpen, Until: time.UnixMilli(maxNumber + 1)}, "2109"},
		{"a reason too long", Order{To: ForcedOpen, Why: strings.Repeat("x", longestWhy+1)}, "200 characters"},
		{"a reason of two lines", Order{To: ForcedOpen, Why: "a\nb"}, "one line"},
		{"a reason that is no text", Order{To: ForcedOpen, Why: "\xff"}, "200 characters"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			store := NewMemory()
			r, err := tc.o.Give(t.Context(), store, model)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.Empty(t, store.records)
				return
			}
			require.NoError(t, err)
			require.Equal(t, store.records[model], r)
			require.Equal(t, tc.o.To, r.State)
			require.Equal(t, tc.o.Why, r.Why)
			require.EqualValues(t, 1, r.Gen)
		})
	}
}

func TestOrderThatTheStoreNeverHeard(t *testing.T) {
	store := &faulty{Store: NewMemory(), err: errors.New("away")}
	_, err := Order{To: ForcedOpen}.Give(t.Context(), store, model)
	require.ErrorContains(t, err, "force breaker: away")
}

func give(t *testing.T, store Store, o Order) {
	t.Helper()
	_, err := o.Give(t.Context(), store, model)
	require.NoError(t, err)
}

// Nobody calls what an operator has closed off: no trial, no outcome and no time opens it.
func TestForcedOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		old := enter(t, g)
		give(t, store, Order{To: ForcedOpen, Why: "drill"})
		pass(2 * time.Second)
		r := refused(t, g)
		require.Equal(t, ForcedOpen, r.State)
		require.False(t, r.Cooling)
		require.True(t, r.Until.IsZero(), "no end")
		require.Equal(t, Status{Candidate: model, State: ForcedOpen, Generation: 1, Why: "drill", Refuses: true}, status(t, g))
		want := store.records[model]
		for _, class := range []Class{Failure, Cool, Hard, Sample, Success} {
			old.Done(Outcome{Class: class})
		}
		pass(24 * time.Hour)
		refused(t, g)
		require.Equal(t, want, store.records[model])

		give(t, store, Order{To: Closed})
		pass(5 * time.Second)
		call(t, g, passed)
	})
}

// A forced state that is over is a closed breaker, for everybody and without a write.
func TestForcedOpenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{}, store)
		give(t, store.Store, Order{To: ForcedOpen, Until: time.Now().Add(10 * time.Second)})
		require.Equal(t, time.Now().Add(10*time.Second), refused(t, g).Until)
		pass(9999 * time.Millisecond)
		refused(t, g)
		pass(time.Millisecond)
		call(t, g, passed)
		require.Equal(t, Status{Candidate: model, State: Closed, Generation: 1}, status(t, g))
		_, updates := store.counts()
		require.Zero(t, updates)
		pass(3 * time.Second)
		call(t, g, failed, failed)
		require.Equal(t, Open, refused(t, g).State, "and it opens as any other")
		require.EqualValues(t, 2, store.Store.(*Memory).records[model].Gen)
	})
}

// What an operator keeps closed doesn't open, whatever its calls do; what they did before the end counts for nothing.
func TestForcedClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		give(t, store, Order{To: ForcedClosed, Until: time.Now().Add(time.Minute), Why: "let them through"})
		pass(5 * time.Second)
		call(t, g, failed, failed, failed, Outcome{Class: Hard}, Outcome{Class: Cool})
		require.Equal(t, ForcedClosed, status(t, g).State)
		require.Equal(t, ForcedClosed, store.records[model].State)
		pass(time.Minute)
		call(t, g, failed, passed, failed)
		require.Equal(t, Closed, status(t, g).State)
		call(t, g, failed)
		refused(t, g)
	})
}

// An order wins over what a process that can't reach the store believes, and over a trial under way.
func TestOrdersWin(t *testing.T) {
	for _, to := range []State{ForcedOpen, ForcedClosed} {
		t.Run(to.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				cut := &faulty{Store: store}
				away, other := gateOn(t, Settings{}, cut), gateOn(t, Settings{}, store)
				call(t, other, failed, failed)
				pass(33 * time.Second)
				trial := enter(t, other)
				cut.set(func(f *faulty) { f.err = errors.New("away") })
				call(t, away, failed, failed)
				give(t, store, Order{To: to})
				trial.Started()
				cut.set(func(f *faulty) { f.err = nil })
				for range 2 {
					pass(5 * time.Second)
					for _, g := range []Gate{away, other} {
						status(t, g)
						synctest.Wait()
					}
				}
				require.Equal(t, to, store.records[model].State)
				require.Equal(t, to, status(t, away).State)
				require.Equal(t, to, status(t, other).State)
			})
		})
	}
}

func TestStatusOfARecord(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	in := func(ms int64) (int64, time.Time) {
		return 1_000_000 + ms, now.Add(time.Duration(ms) * time.Millisecond)
	}
	later, until := in(5000)
	earlier, _ := in(-1)
	for _, tc := range []struct {
		name   string
		record Record
		want   Status
	}{
		{"unknown", Record{}, Status{}},
		{"closed", Record{Gen: 3, Why: "timeout"}, Status{Generation: 3, Why: "timeout"}},
		{"open", Record{State: Open, Gen: 1, OpenUntil: later, OpenFor: time.Second}, Status{State: Open, Generation: 1, Until: until}},
		{"cooling", Record{State: Open, Gen: 1, OpenUntil: later}, Status{State: Open, Cooling: true, Generation: 1, Until: until}},
		{"half-open", Record{State: HalfOpen, Gen: 1, OpenUntil: earlier, OpenFor: 1}, Status{State: HalfOpen, Generation: 1}},
		{"forced open", Record{State: ForcedOpen, Gen: 2, OpenUntil: later}, Status{State: ForcedOpen, Generation: 2, Until: until}},
		{"without an end", Record{State: ForcedClosed, Gen: 2}, Status{State: ForcedClosed, Generation: 2}},
		{"whose end is over", Record{State: ForcedOpen, Gen: 2, OpenUntil: earlier}, Status{State: Closed, Generation: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Candidate = model
			require.Equal(t, tc.want, tc.record.Status(model, now))
		})
	}
}
