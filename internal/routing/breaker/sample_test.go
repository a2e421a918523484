package breaker

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	window = Settings{Mode: ModeWindow}
	hybrid = Settings{Mode: ModeHybrid}
	empty  = Outcome{Class: Sample, Why: "empty"}
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
		{"tickets under way", Sampling{}, at(Window{Tickets: 20, OK: 9, Failed: 9}), 5000, false},
		{"all settled", Sampling{}, at(Window{Tickets: 20, OK: 11, Failed: 9}), 5000, true},
		{"half of it good: it may still fail", Sampling{}, at(Window{Tickets: 15, OK: 10}), 5000, false},
		{"more than half good", Sampling{}, at(Window{Tickets: 15, OK: 11}), 5000, true},
		{"good, but slow ones may still be too many", slow, at(Window{Tickets: 11, OK: 11, Slow: 11}), 5000, false},
		{"good and one quick", slow, at(Window{Tickets: 12, OK: 12, Slow: 11}), 5000, true},
		{"callers who left keep it open", Sampling{}, at(Window{Tickets: 20, OK: 3}), 19_999, false},
		{"but not for ever", Sampling{}, at(Window{Tickets: 20, OK: 3}), 20_000, true},
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
		{"too soon after one", Record{Gen: 3, Window: over}, 1999, false, false},
		{"after a calm one", Record{Gen: 3, Window: over}, 2000, true, true},
		{"long after a calm one", Record{Gen: 3, Window: over}, 600_000, true, true},
		{"too long to remember", Record{Gen: 3, Window: over}, 600_001, true, false},
		{"after one without a success", Record{Gen: 3, Window: Window{Start: start, Tickets: 3, Failed: 1}}, age, true, false},
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

// A model that is dead opens for the fleet after the failure that made us look and as many as min_calls.
func TestSampleOpens(t *testing.T) {
	tests := []struct {
		name     string
		outcomes []Outcome
		tickets  int64
		open     bool
	}{
		{"dead", []Outcome{failed, failed, failed, failed, failed, failed}, 5, true},
		{"not sure yet", []Outcome{failed, failed, failed, failed, failed}, 4, false},
		{"one success among them", []Outcome{failed, failed, failed, passed, failed, failed, failed, failed}, 7, true},
		{"nothing but empty answers", []Outcome{empty, empty, empty, empty, empty, empty}, 5, true},
		{"callers' own mistakes open no sample", []Outcome{{Class: Excluded}, {Class: Cancelled}, failed}, 0, false},
		{"and settle no ticket", []Outcome{failed, failed, {Class: Excluded}, {Class: Cancelled}, failed, failed, failed}, 6, false},
		{"a limit is no failure, but is kept to", []Outcome{failed, failed, {Class: Cool}}, 2, true},
		{"nor is an account's problem", []Outcome{failed, {Class: Hard}}, 1, true},
	}
	for _, tc := range tests {
		for _, mode := range []Mode{ModeWindow, ModeHybrid} {
			t.Run(tc.name+", "+mode.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := NewMemory()
					g, log := logged(t, Settings{Mode: mode, FailureThreshold: 99}, store)
					for _, o := range tc.outcomes {
						p := enter(t, g)
						synctest.Wait() // the ticket was taken
						p.Done(o)
					}
					r := store.records[model]
					require.Equal(t, tc.open, r.State == Open)
					require.Equal(t, tc.tickets, r.Window.Tickets)
					if tc.open {
						require.Equal(t, Open, refused(t, g).State)
						require.Equal(t, 1, log.count("state=open"))
					} else {
						call(t, g, passed)
					}
				})
			})
		}
	}
}

// Half of the calls failing, for good: the rate that is configured opens, and opens again after a calm time.
func TestSampleOpensAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, window, store)
		halves := func() (calls int) {
			for store.records[model].State == Closed && calls < 100 {
				call(t, g, []Outcome{failed, passed}[calls%2])
				pass(100 * time.Millisecond)
				calls++
			}
			return calls
		}
		require.LessOrEqual(t, halves(), 21, "a full sample at most")
		pass(33 * time.Second)
		enter(t, g).Started()
		call(t, g, failed)
		for range 25 {
			call(t, g, passed)
		}
		pass(3 * time.Second)
		require.True(t, Sampling{}.withDefaults().calm(store.records[model].Window))
		require.LessOrEqual(t, halves(), 21+20+2, "after a calm one the second in a row")
	})
}

func TestDeadAfterACalmSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, window, store)
		call(t, g, failed)
		for range 20 {
			call(t, g, passed)
		}
		pass(3 * time.Second)
		for range 8 {
			call(t, g, failed)
			require.Equal(t, Closed, store.records[model].State)
		}
		call(t, g, failed)
		require.Equal(t, Open, store.records[model].State)
	})
}

// The failures of a run, whatever its length, open nothing by themselves in mode window.
func TestNoRunInModeWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, window, store)
		permits := enterAll(t, 30, g)
		for _, p := range permits {
			p.Done(failed)
		}
		require.Equal(t, Closed, store.records[model].State, "they began before anybody looked")
		require.Zero(t, store.records[model].Window.Tickets)
		call(t, g, passed)
	})
}

// Calls count when they start: errors are quicker than answers, and don't outnumber them by that.
func TestQuickErrorsDontOutrunSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, window, store)
		call(t, g, failed)
		permits := enterAll(t, 20, g)
		synctest.Wait()
		for _, p := range permits[:9] {
			p.Done(failed)
		}
		require.Equal(t, Window{Start: store.records[model].Window.Start, Tickets: 20, Failed: 9}, store.records[model].Window)
		require.Equal(t, Closed, store.records[model].State)
		for _, p := range permits[9:] {
			p.Started()
		}
		synctest.Wait()
		require.EqualValues(t, 11, store.records[model].Window.OK)
		require.Equal(t, Closed, store.records[model].State)
	})
}

// A stream that breaks late turns its ticket from ok to failed, once.
func TestLateFailureTurnsItsTicket(t *testing.T) {
	for _, late := range []Outcome{failed, empty} {
		synctest.Test(t, func(t *testing.T) {
			store := NewMemory()
			g := gateOn(t, window, store)
			call(t, g, failed)
			permits := enterAll(t, 5, g)
			for _, p := range permits {
				p.Started()
			}
			synctest.Wait()
			require.EqualValues(t, 5, store.records[model].Window.OK)
			for i, p := range permits {
				require.Equal(t, Closed, store.records[model].State)
				p.Done(late)
				p.Done(late)
				require.EqualValues(t, i+1, store.records[model].Window.Failed)
				require.EqualValues(t, 4-i, store.records[model].Window.OK)
			}
			require.Equal(t, Open, store.records[model].State)
			require.Equal(t, late.Why, store.records[model].Why)
		})
	}
}

// An answer without a first token of its own, such as one of finish length, is good when it ends.
func TestAnswerThatNeverStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, window, store)
		call(t, g, failed, passed)
		require.EqualValues(t, 1, store.records[model].Window.OK)
		p := enter(t, g)
		p.Started()
		p.Done(passed)
		require.EqualValues(t, 2, store.records[model].Window.OK, "not twice")
	})
}

// Slow calls: the first token came, or the failure, later than slow_call.after.
func TestSlowCalls(t *testing.T) {
	s := Settings{Mode: ModeWindow, Sample: Sampling{SlowAfter: time.Second, SlowRate: 0.5}}
	slowly := func(t *testing.T, g Gate, d time.Duration, fail bool) {
		p := enter(t, g)
		pass(d)
		if fail {
			p.Done(failed)
			return
		}
		p.Started()
		pass(time.Hour / 100)
		p.Done(passed)
	}
	tests := []struct {
		name  string
		s     Settings
		after time.Duration
		fail  bool
		open  bool
		why   string
	}{
		{"slow", s, 1001 * time.Millisecond, false, true, "slow"},
		{"just in time", s, time.Second, false, false, ""},
		{"slow failures fail and are slow", s, 2 * time.Second, true, true, "slow"},
		{"off", window, time.Minute, false, false, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := NewMemory()
				g := gateOn(t, tc.s, store)
				for range 6 {
					p := enter(t, g)
					p.Done(passed)
				}
				require.Empty(t, store.records)
				first := enter(t, g)
				pass(tc.after)
				if tc.fail {
					first.Done(failed)
				} else {
					first.Started()
				}
				synctest.Wait()
				permits := enterAll(t, 5, g)
				pass(tc.after)
				for _, p := range permits {
					if tc.fail {
						p.Done(failed)
					} else {
						p.Started()
					}
				}
				synctest.Wait()
				require.Equal(t, tc.open, store.records[model].State == Open)
				require.Equal(t, tc.why, store.records[model].Why)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, s, NewMemory())
		slowly(t, g, 2*time.Second, false) // and what comes after the first token takes any time
		slowly(t, g, time.Millisecond, false)
		require.EqualValues(t, 0, status(t, g).Sample.Slow)
	})
}

// The call itself never waits for its ticket, nor for the news that it began well.
func TestTicketsCostNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, window, store)
		call(t, g, failed)
		store.set(func(f *faulty) { f.delay = 40 * time.Millisecond })
		at := time.Now()
		p := enter(t, g)
		p.Started()
		require.Equal(t, at, time.Now())
		p.Done(passed)
		require.LessOrEqual(t, time.Since(at), patience, "a process may be frozen once the answer is out")
		pass(100 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, store.Store.(*Memory).records[model].Window.OK)
	})
}

// A ticket whose write wasn't answered counts no outcome: it may not have been given.
func TestLostTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		record := func() Record { return store.Store.(*Memory).records[model] }
		g := gateOn(t, window, store)
		call(t, g, failed)
		store.set(func(f *faulty) { f.lose = true })
		p := enter(t, g)
		synctest.Wait()
		store.set(func(f *faulty) { f.lose = false })
		p.Done(failed)
		require.Equal(t, Window{Start: record().Window.Start, Tickets: 1}, record().Window)

		p = enter(t, g)
		synctest.Wait()
		store.set(func(f *faulty) { f.lose = true })
		p.Started()
		synctest.Wait()
		store.set(func(f *faulty) { f.lose = false })
		p.Done(failed)
		require.Equal(t, Window{Start: record().Window.Start, Tickets: 2, OK: 1}, record().Window, "nothing is taken back that may not be there")
	})
}

// Nothing fails: nothing is written, whatever the mode.
func TestHealthyFleetWritesNothing(t *testing.T) {
	for _, s := range []Settings{window, hybrid, {Mode: ModeHybrid, Sample: Sampling{SlowAfter: time.Second}}} {
		synctest.Test(t, func(t *testing.T) {
			store := &faulty{Store: NewMemory()}
			g := gateOn(t, s, store)
			for range 100 {
				p := enter(t, g)
				p.Started()
				p.Done(passed)
				enter(t, g).Done(Outcome{Class: Excluded})
				pass(100 * time.Millisecond)
			}
			_, updates := store.counts()
			require.Zero(t, updates)
		})
	}
}

// I8: however many processes fail, the fleet writes no more than a sample has, each time there may be one; and those
// who have heard of a sample don't ask for another.
func TestWritesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		fleet := make([]Gate, 200)
		for i := range fleet {
			fleet[i] = gateOn(t, Settings{Mode: ModeHybrid, Sample: Sampling{Size: 20, FailureRate: 1}}, store)
			status(t, fleet[i])
		}
		for i := range 1000 { // 10 s at 100 calls a second, every third fails
			call(t, fleet[i*7%len(fleet)], []Outcome{failed, passed, passed}[i%3])
			pass(10 * time.Millisecond)
		}
		_, updates := store.counts()
		require.LessOrEqual(t, updates, 5*(2*20+5))
		require.Equal(t, Closed, store.Store.(*Memory).records[model].State)
	})
}

// An old copy is looked at again before a sample is opened: another process may have done so.
func TestSuspicionLooksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		one, two := gateOn(t, window, store), gateOn(t, window, store)
		status(t, one)
		p := enter(t, two)
		pass(time.Second)
		call(t, one, failed)
		pass(100 * time.Millisecond)
		start := store.Store.(*Memory).records[model].Window.Start
		_, before := store.counts()
		p.Done(failed)
		_, after := store.counts()
		require.Equal(t, before, after)
		require.Equal(t, start, status(t, two).Sample.Start)
		call(t, two, failed)
		require.EqualValues(t, 1, store.Store.(*Memory).records[model].Window.Failed)
	})
}

// The failures of many processes, each of which saw one, add up; each of them hears of the opening by its own ticket.
func TestSampleIsTheFleets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		fleet := make([]Gate, 6)
		for i := range fleet {
			fleet[i] = gateOn(t, hybrid, store)
		}
		for _, g := range fleet {
			call(t, g, failed)
		}
		require.Equal(t, Open, store.records[model].State)
		require.Equal(t, Open, refused(t, fleet[5]).State)
	})
}

// A sample that another's trip or an order ended takes nothing more.
func TestTicketOfAnEndedSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g, other := gateOn(t, window, store), gateOn(t, window, store.Store)
		record := func() Record { return store.Store.(*Memory).records[model] }
		call(t, g, failed)
		p, q := enter(t, g), enter(t, g)
		call(t, other, Outcome{Class: Hard})
		want := record()
		p.Done(failed)
		_, updates := store.counts()
		q.Done(failed)
		require.Equal(t, want, record())
		require.Equal(t, Open, refused(t, g).State, "heard by the ticket's own failed write")
		_, after := store.counts()
		require.Equal(t, updates, after, "who knows doesn't write")
	})
}

// Hybrid: a run of two stops calls here, and here only, for two seconds; then one call goes first.
func TestRunShutsOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g, other := gateOn(t, hybrid, store), gateOn(t, hybrid, store)
		pass(time.Second)
		call(t, g, failed, failed)
		r := refused(t, g)
		require.Equal(t, Refusal{State: Open, Until: time.Now().Add(2 * time.Second)}, Refusal{r.State, r.Cooling, r.Until})
		s := status(t, g)
		require.True(t, s.Local)
		require.Equal(t, Open, s.State)
		call(t, other, passed)
		require.Equal(t, Closed, store.records[model].State)

		pass(1999 * time.Millisecond)
		refused(t, g)
		pass(time.Millisecond)
		permits := enterAll(t, 10, g)
		require.Len(t, permits, 1)
		require.False(t, permits[0].Trial(), "the fleet's breaker is closed")
		permits[0].Done(failed)
		refused(t, g)

		pass(2 * time.Second)
		p := enter(t, g)
		p.Done(Outcome{Class: Cancelled})
		p = enter(t, g)
		refused(t, g)
		p.Started()
		call(t, g, passed)
		require.False(t, status(t, g).Local)
		p.Done(passed)
	})
}

// The call that goes first may die: another takes its place.
func TestFirstCallThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, hybrid, NewMemory())
		call(t, g, failed, failed)
		pass(2 * time.Second)
		enter(t, g)
		pass(lease + leaseMargin - time.Millisecond)
		refused(t, g)
		pass(time.Millisecond)
		call(t, g, passed)
	})
}

// Failures that were under way when a process stopped calling don't make it wait longer.
func TestFailuresWhileShutChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, Settings{Mode: ModeHybrid, Sample: Sampling{MinCalls: 20}}, NewMemory())
		permits := enterAll(t, 5, g)
		for _, p := range permits {
			p.Done(failed)
			pass(100 * time.Millisecond)
		}
		pass(1600 * time.Millisecond)
		call(t, g, passed)
	})
}

// With the store away no sample can be had: a run opens for this process, as in a fleet of one. What the run of one
// process says is no news for the fleet, what a provider says of the account is.
func TestSampleWithoutAStore(t *testing.T) {
	for _, s := range []Settings{window, hybrid} {
		t.Run(s.Mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faulty{Store: NewMemory()}
				g, log := logged(t, s, store)
				call(t, g, passed)
				store.set(func(f *faulty) { f.err = errors.New("away") })
				for range missesToAway {
					status(t, g)
					pass(2 * time.Second)
				}
				call(t, g, failed, failed)
				r := refused(t, g)
				require.Equal(t, Open, r.State)
				require.WithinRange(t, r.Until, time.Now().Add(30*time.Second), time.Now().Add(33*time.Second))
				require.Equal(t, 1, log.count("local=true"))
				pass(33 * time.Second)
				permits := enterAll(t, 10, g)
				require.Len(t, permits, 1)
				require.True(t, permits[0].Trial())
				permits[0].Done(failed)
				refused(t, g)
				store.set(func(f *faulty) { f.err = nil })
				pass(longestPause)
				status(t, g)
				synctest.Wait()
				require.Equal(t, Closed, status(t, g).State)
				require.Empty(t, store.Store.(*Memory).records)
				call(t, g, passed)
			})
		})
	}
}

func TestHardOpeningIsToldOnReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory(), err: errors.New("away")}
		g := gateOn(t, window, store)
		call(t, g, failed, failed, Outcome{Class: Hard, Why: "quota"})
		store.set(func(f *faulty) { f.err = nil })
		pass(5 * time.Second)
		status(t, g)
		synctest.Wait()
		require.Equal(t, Open, store.Store.(*Memory).records[model].State)
		require.Equal(t, "quota", store.Store.(*Memory).records[model].Why)
	})
}

// Samples can't be written while reads are answered: a run still helps, in this process.
func TestSampleOfAStoreThatTakesNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &readOnly{Memory: NewMemory(), on: true}
		g := gateOn(t, window, store)
		for range missesToAway {
			call(t, g, failed)
			pass(time.Second)
		}
		call(t, g, failed)
		require.Equal(t, Open, refused(t, g).State)
	})
}

// Observing: a sample opens the breaker, and nobody is refused; tickets are for closed breakers.
func TestObserveSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, Settings{Mode: ModeHybrid, Observe: true}, store)
		call(t, g, failed, failed, failed, failed, failed, failed)
		r := store.records[model]
		require.Equal(t, Open, r.State)
		call(t, g, failed, passed, failed)
		require.Equal(t, r, store.records[model])
	})
}

// I4: the process that saw the last failure couldn't write; whoever asks for the next ticket opens.
func TestNoLostTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		g := gateOn(t, window, store)
		call(t, g, failed, failed)
		r := store.records[model]
		r.Window.Tickets, r.Window.Failed = 9, 9
		store.records[model] = r
		enter(t, g)
		synctest.Wait()
		require.Equal(t, Open, store.records[model].State)
	})
}
