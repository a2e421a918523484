package breaker

import (
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
