package breaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sampling(size, least int, rate float64) Sampling {
	return Sampling{Size: size, MinCalls: least, FailureRate: rate}.withDefaults()
}

func TestNeed(t *testing.T) {
	tests := []struct {
		name       string
		s          Sampling
		n          int64
		first      int64 // failures of the first sample that open; 0: too few tickets
		afterACalm int64
	}{
		{"too few", Sampling{}, 4, 0, 0},
		{"all of the fewest", Sampling{}, 5, 5, 0},
		{"the line", Sampling{}, 8, 6, 8},
		{"further on", Sampling{}, 14, 8, 11},
		{"a full one", Sampling{}, 20, 10, 13},
		{"another rate", Sampling{FailureRate: 0.3}, 20, 6, 9},
		{"a rate that the fewest reach", sampling(20, 10, 0.5), 10, 10, 0},
		{"all of a small one", sampling(3, 3, 1), 3, 3, 3},
		{"a size of one", sampling(1, 1, 0.5), 1, 1, 1},
		{"as few as are enough", sampling(4, 2, 0.5), 2, 2, 0},
		{"never more than all", sampling(4, 2, 0.5), 4, 2, 4},
		{"rates of the size are exact", sampling(10, 1, 0.7), 10, 7, 10},
		{"a tiny rate is one call", sampling(10, 1, 0.001), 10, 1, 4},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.s.withDefaults()
			for calm, want := range map[bool]int64{false: tc.first, true: tc.afterACalm} {
				got, judged := s.need(tc.n, s.whole(s.FailureRate), calm)
				require.Equal(t, want > 0, judged, "after a calm one: %v", calm)
				require.Equal(t, want, got, "after a calm one: %v", calm)
			}
		})
	}
}

// The chances that one sample of independent errors opens a breaker, as docs/decisions/0012 has them.
func TestChanceOfAFalseTrip(t *testing.T) {
	tests := []struct{ errors, first, afterACalm float64 }{
		{0, 0, 0},
		{0.02, 5e-9, 3e-14},
		{0.1, 6e-5, 3e-8},
		{0.2, 6e-3, 3e-5},
		{0.6, 8.9e-1, 4.3e-1},
		{1, 1, 1},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprint(tc.errors), func(t *testing.T) {
			require.InDelta(t, tc.first, chance(Sampling{}.withDefaults(), tc.errors, false), tc.first/8)
			require.InDelta(t, tc.afterACalm, chance(Sampling{}.withDefaults(), tc.errors, true), tc.afterACalm/8)
		})
	}
}

// chance adds up, ticket by ticket, how likely the sample opens when a share p of independent calls fails.
func chance(s Sampling, p float64, calm bool) (opened float64) {
	open := map[int64]float64{0: 1} // by failures so far, of the samples that haven't opened
	for n := int64(1); n <= int64(s.Size); n++ {
		next := map[int64]float64{}
		for f, q := range open {
			for bad, share := range []float64{1 - p, p} {
				w := Window{Tickets: n, Failed: f + int64(bad), AfterCalm: calm}
				if s.failing(w) {
					opened += q * share
				} else {
					next[w.Failed] += q * share
				}
			}
		}
		open = next
	}
	return opened
}

func TestWhenASampleIsOver(t *testing.T) {
	const start, age = 100_000, 20_000
	at := func(w Window) Window { w.Start = start; return w }
	slow := Sampling{SlowAfter: time.Second}.withDefaults()
	tests := []struct {
		name  string
		s     Sampling
		w     Window
		after int64
		over  bool
	}{
		{"young and empty", Sampling{}, at(Window{}), 1000, false},
		{"tickets under way", Sampling{}, at(Window{Tickets: 20, OK: 7, Failed: 7}), 5000, false},
		{"three quarters settled", Sampling{}, at(Window{Tickets: 20, OK: 7, Failed: 8}), 5000, true},
		{"three quarters of what is not full", Sampling{}, at(Window{Tickets: 19, OK: 7, Failed: 8}), 5000, false},
		{"all settled", Sampling{}, at(Window{Tickets: 20, OK: 11, Failed: 9}), 5000, true},
		{"half of it good: it may still fail", Sampling{}, at(Window{Tickets: 15, OK: 10}), 5000, false},
		{"more than half good", Sampling{}, at(Window{Tickets: 15, OK: 11}), 5000, true},
		{"good, but slow ones may still be too many", slow, at(Window{Tickets: 11, OK: 11, Slow: 11}), 5000, false},
		{"good and one quick", slow, at(Window{Tickets: 12, OK: 12, Slow: 11}), 5000, true},
		{"many callers who left keep it open", Sampling{}, at(Window{Tickets: 20, OK: 3}), 19_999, false},
		{"but not for ever", Sampling{}, at(Window{Tickets: 20, OK: 3}), 20_000, true},
		{"calls that come slowly", Sampling{}, at(Window{Tickets: 4, Failed: 3}), 599_999, false},
		{"calls that hardly come", Sampling{}, at(Window{Tickets: 4, Failed: 3}), 600_000, true},
		{"of a clock that is ahead", Sampling{}, at(Window{}), -5000, false},
		{"of a clock that is wrong", Sampling{}, at(Window{}), -20_000, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.over, tc.s.withDefaults().over(tc.w, start+tc.after, age))
		})
	}
}

func TestSuspicion(t *testing.T) {
	const start, age = 1_000_000, 20_000
	over := Window{Start: start, Tickets: 20, OK: 18, Failed: 2}
	with := func(w Window, f func(*Window)) Window { f(&w); return w }
	tests := []struct {
		name      string
		r         Record
		after     int64
		due, calm bool
	}{
		{"of a candidate nobody wrote about", Record{}, 0, true, false},
		{"of a closed one", Record{Gen: 3}, 0, true, false},
		{"of an open one", Record{State: Open, Gen: 3}, 0, false, false},
		{"of a forced one", Record{State: ForcedClosed, Gen: 3}, 0, false, false},
		{"while a sample runs", Record{Gen: 3, Window: Window{Start: start}}, 3000, false, false},
		{"too soon after one", Record{Gen: 3, Window: over}, 1799, false, false},
		{"after a calm one", Record{Gen: 3, Window: over}, 1800, true, true},
		{"long after a calm one", Record{Gen: 3, Window: over}, 1_800_000, true, true},
		{"too long to remember", Record{Gen: 3, Window: over}, 1_800_001, true, false},
		{"after one without a success", Record{Gen: 3, Window: Window{Start: start, Tickets: 3, Failed: 1}}, 600_000, true, false},
		{"after one that remembering alone kept closed", Record{Gen: 3, Window: with(over, func(w *Window) { w.OK, w.Failed, w.AfterCalm = 10, 10, true })}, 2000, true, false},
		{"after one that was calm in spite of remembering", Record{Gen: 3, Window: with(over, func(w *Window) { w.OK, w.Failed, w.AfterCalm = 11, 9, true })}, 2000, true, true},
		{"after one of a clock that is wrong", Record{Gen: 3, Window: over}, -age, true, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c, due := Sampling{}.withDefaults().suspicion(tc.r, start+tc.after, age)
			require.Equal(t, tc.due, due)
			if due {
				require.Equal(t, Change{
					Op: Suspect, Gen: tc.r.Gen, Now: start + tc.after,
					Window: Window{Start: tc.r.Window.Start, AfterCalm: tc.calm},
				}, c)
			}
		})
	}
}

// What can't open the breaker isn't told any more, though the next sample has to wait; a sample that may still fail is.
func TestWhenASampleIsDecided(t *testing.T) {
	s := Sampling{}.withDefaults()
	for w, want := range map[Window]bool{
		{Start: 1000, Tickets: 20, OK: 11}:             true,
		{Start: 1000, Tickets: 20, OK: 10, Failed: 9}:  false,
		{Start: 1000, Tickets: 20, OK: 10, Failed: 10}: false,
	} {
		require.Equal(t, want, s.decided(w, 1500, 20_000), "%+v", w)
		require.True(t, s.decided(w, 601_000, 20_000), "%+v", w)
	}
}
