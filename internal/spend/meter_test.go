package spend

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// faulty is a store that can go away, and counts what it is asked.
type faulty struct {
	Store
	mu          sync.Mutex
	loads, adds int
	err         error         // of every call
	delay       time.Duration // of every call
	lose        bool          // amounts are added, but the answers are lost
}

func (f *faulty) set(change func(*faulty)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faulty) counts() [2]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return [2]int{f.loads, f.adds}
}

func (f *faulty) trouble(ctx context.Context) error {
	f.mu.Lock()
	delay, err := f.delay, f.err
	f.mu.Unlock()
	if delay == 0 {
		return err
	}
	select {
	case <-time.After(delay):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *faulty) Load(ctx context.Context, tenant string, day Day) (int64, error) {
	f.set(func(f *faulty) { f.loads++ })
	if err := f.trouble(ctx); err != nil {
		return 0, err
	}
	return f.Store.Load(ctx, tenant, day)
}

func (f *faulty) Add(ctx context.Context, tenant string, day Day, nanos int64) (int64, error) {
	f.set(func(f *faulty) { f.adds++ })
	if err := f.trouble(ctx); err != nil {
		return 0, err
	}
	sum, err := f.Store.Add(ctx, tenant, day, nanos)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lose {
		return 0, errors.New("the answer is lost")
	}
	return sum, err
}

// process is one process of a fleet: team may spend 100 a day, broke nothing.
type process struct {
	*Caps
	t     *testing.T
	store *faulty
	log   *strings.Builder
}

// fleet starts processes that share a store.
func fleet(t *testing.T, n int) []*process {
	shared := NewMemory()
	var all []*process
	for range n {
		p := &process{t: t, store: &faulty{Store: shared}, log: &strings.Builder{}}
		p.Caps = New(p.store, slog.New(slog.NewTextHandler(p.log, nil))).Caps(map[string]int64{"team": 100, "broke": 0})
		all = append(all, p)
	}
	t.Cleanup(func() {
		for _, p := range all {
			require.NoError(t, p.meter.Close(context.Background()))
		}
	})
	return all
}

// ask is what a request does before its answer.
func (p *process) ask(tenant string) (refused bool) {
	p.Prepare(p.t.Context(), tenant)
	_, refused = p.Reached(p.t.Context(), tenant)
	return refused
}

// stored is what the store has of today.
func (p *process) stored() int64 {
	n, err := p.store.Store.Load(p.t.Context(), "team", DayOf(time.Now()))
	require.NoError(p.t, err)
	return n
}

func bubble(t *testing.T, n int, test func(t *testing.T, p []*process)) {
	synctest.Test(t, func(t *testing.T) { test(t, fleet(t, n)) })
}

func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}

func TestCap(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		for _, nanos := range []int64{60, 39} {
			require.False(t, p.ask("team"))
			p.Spend(t.Context(), "team", nanos)
		}
		require.False(t, p.ask("team"), "one is left")
		p.Spend(t.Context(), "team", 1)
		until, reached := p.Reached(t.Context(), "team")
		require.True(t, reached)
		require.Equal(t, time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC), until)
		require.True(t, p.ask("team"))
		require.EqualValues(t, 100, p.stored())
		require.Equal(t, 1, strings.Count(p.log.String(), "a tenant's daily cap is reached"), "said once")
		require.Contains(t, p.log.String(), "tenant=team day=2000-01-01 usd_per_day=1e-07 spent_usd=1e-07")
	})
}

func TestTenantsWithoutACapCostNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		for range 10 {
			require.False(t, p.ask("other"))
			p.Spend(t.Context(), "other", 1000)
			sleep(time.Minute)
		}
		require.Equal(t, [2]int{}, p.store.counts())
		require.Empty(t, p.meter.accounts["other"])
	})
}

func TestACapOfNothingNeedsNoStore(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		require.True(t, all[0].ask("broke"))
		all[0].Spend(t.Context(), "broke", 5)
		require.Equal(t, [2]int{}, all[0].store.counts())
	})
}

func TestNothingSpentIsNothingSent(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		all[0].Spend(t.Context(), "team", 0)
		all[0].Spend(t.Context(), "team", -5)
		require.Equal(t, [2]int{}, all[0].store.counts())
	})
}

// What one process spends, the others know within the age of their copy.
func TestProcessesShareACap(t *testing.T) {
	bubble(t, 3, func(t *testing.T, all []*process) {
		for _, p := range all {
			require.False(t, p.ask("team"))
		}
		all[0].Spend(t.Context(), "team", 50)
		all[1].Spend(t.Context(), "team", 50)
		require.True(t, all[1].ask("team"), "an addition's answer is the newest copy")
		require.False(t, all[2].ask("team"), "its copy is fresh")
		sleep(renewAfter + time.Millisecond)
		all[2].Prepare(t.Context(), "team")
		synctest.Wait()
		require.True(t, all[2].ask("team"))
		require.True(t, fleetOf(all[2]).ask("team"), "a process that starts now asks first")
	})
}

// fleetOf is one more process on another's store.
func fleetOf(p *process) *process {
	other := *p
	other.Caps = New(p.store, slog.New(slog.DiscardHandler)).Caps(p.limits)
	return &other
}

// A copy is read once however many ask, beside them while it isn't too old, and waited for 50 ms at most.
func TestReads(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		p.store.set(func(f *faulty) { f.delay = 20 * time.Millisecond })
		wait := func(tenants int) time.Duration {
			start := time.Now()
			var some sync.WaitGroup
			for range tenants {
				some.Go(func() { p.ask("team") })
			}
			some.Wait()
			waited := time.Since(start)
			synctest.Wait() // what was begun beside them has reached the store
			return waited
		}
		require.Equal(t, 20*time.Millisecond, wait(10), "the first have nothing to go by")
		require.Equal(t, [2]int{1, 0}, p.store.counts())
		sleep(renewAfter - time.Second)
		require.Zero(t, wait(10))
		require.Equal(t, [2]int{1, 0}, p.store.counts(), "young enough")
		sleep(2 * time.Second)
		require.Zero(t, wait(10), "read beside the requests")
		require.Equal(t, [2]int{2, 0}, p.store.counts())
		sleep(waitAfter + time.Second)
		p.store.set(func(f *faulty) { f.delay = 200 * time.Millisecond })
		require.Equal(t, patience, wait(10), "too old, but the store is slow")
		require.Zero(t, wait(10), "nobody waits twice for one read")
		require.Equal(t, [2]int{3, 0}, p.store.counts())
	})
}

func TestReadBegunEarlyIsWaitedForShortly(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		p.store.set(func(f *faulty) { f.delay = 40 * time.Millisecond })
		p.Prepare(t.Context(), "team")
		sleep(30 * time.Millisecond) // the body is read and checked
		start := time.Now()
		_, reached := p.Reached(t.Context(), "team")
		require.False(t, reached)
		require.Equal(t, 10*time.Millisecond, time.Since(start))
	})
}

// Nobody is refused because the store is away, nor kept waiting; what is spent then still counts here, and is added
// once the store is back.
func TestStoreAway(t *testing.T) {
	for name, trouble := range map[string]func(*faulty){
		"refuses":  func(f *faulty) { f.err = ErrRefused },
		"fails":    func(f *faulty) { f.err = errors.New("500") },
		"is quiet": func(f *faulty) { f.delay = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, all []*process) {
				p := all[0]
				require.False(t, p.ask("team"))
				p.store.set(trouble)
				for range 90 {
					start := time.Now()
					require.False(t, p.ask("team"))
					require.LessOrEqual(t, time.Since(start), patience)
					p.Spend(t.Context(), "team", 1)
					sleep(time.Second)
				}
				calls := p.store.counts()
				require.Less(t, calls[0]+calls[1], 15, "a store that is away is left alone")
				require.Equal(t, 1, strings.Count(p.log.String(), "level=WARN"), p.log.String())
				p.Spend(t.Context(), "team", 10)
				require.True(t, p.ask("team"), "its own spending it knows")
				require.Zero(t, p.stored())

				p.store.set(func(f *faulty) { f.err, f.delay = nil, 0 })
				sleep(longestPause)
				p.ask("team")
				synctest.Wait()
				require.EqualValues(t, 100, p.stored(), "all of it, once")
				require.True(t, p.ask("team"))
				require.Contains(t, p.log.String(), "is back")
			})
		})
	}
}

// An amount whose answer was lost isn't added twice, and one that never arrived is added after all.
func TestLostAnswers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		p.ask("team")
		p.store.set(func(f *faulty) { f.lose = true })
		for range 5 {
			p.Spend(t.Context(), "team", 10)
			sleep(longestPause + time.Second)
		}
		require.False(t, p.ask("team"), "50 of 100")
		p.store.set(func(f *faulty) { f.lose = false })
		sleep(longestPause + time.Second)
		p.Spend(t.Context(), "team", 10)
		require.EqualValues(t, 60, p.stored())
		require.False(t, p.ask("team"))
	})
}

// Many answers at once make few additions, and none is lost between two of them.
func TestAnswersAtOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		p.store.set(func(f *faulty) { f.delay = 5 * time.Millisecond })
		p.Prepare(t.Context(), "team") // a read is under way
		var answers sync.WaitGroup
		for i := range 50 {
			answers.Go(func() {
				time.Sleep(time.Duration(i%3) * time.Millisecond) //nolint:forbidigo // virtual time
				p.Spend(t.Context(), "team", 1)
			})
		}
		answers.Wait()
		require.EqualValues(t, 50, p.stored())
		require.Less(t, p.store.counts()[1], 5)
	})
}

// At midnight in UTC a tenant begins anew; what was spent before, but couldn't be added, goes to its own day.
func TestMidnight(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		first := DayOf(time.Now())
		sleep(24*time.Hour - 10*time.Second)
		p.Spend(t.Context(), "team", 60)
		p.store.set(func(f *faulty) { f.err = ErrRefused })
		p.Spend(t.Context(), "team", 40)
		until, reached := p.Reached(t.Context(), "team")
		require.True(t, reached)
		require.Equal(t, 10*time.Second, time.Until(until))
		p.store.set(func(f *faulty) { f.err = nil })
		sleep(10 * time.Second)
		require.False(t, p.ask("team"))
		p.Spend(t.Context(), "team", 5)
		require.EqualValues(t, 5, p.stored())
		yesterday, err := p.store.Store.Load(t.Context(), "team", first)
		require.NoError(t, err)
		require.EqualValues(t, 100, yesterday)
		for range 10 {
			sleep(24 * time.Hour)
			p.Spend(t.Context(), "team", 1)
		}
		require.Len(t, p.meter.accounts["team"], 2, "older days are forgotten")
	})
}

// A day that somebody took out of the table begins anew.
func TestResetByHand(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		p.Spend(t.Context(), "team", 100)
		require.True(t, p.ask("team"))
		p.store.Store.(*Memory).tenants = map[string]map[Day]int64{}
		sleep(renewAfter + time.Millisecond)
		p.Prepare(t.Context(), "team")
		synctest.Wait()
		require.False(t, p.ask("team"))
	})
}

// A new configuration knows what was spent under the old one.
func TestAnotherLimit(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		p.Spend(t.Context(), "team", 100)
		_, reached := p.meter.Caps(map[string]int64{"team": 101}).Reached(t.Context(), "team")
		require.False(t, reached)
		_, reached = p.meter.Caps(nil).Reached(t.Context(), "team")
		require.False(t, reached)
	})
}

func TestCloseAddsWhatIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fleet(t, 1)[0]
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		p.Spend(ended, "team", 7)
		require.Zero(t, p.stored())
		require.NoError(t, p.meter.Close(t.Context()))
		require.EqualValues(t, 7, p.stored())
	})
}

// Who comes while another adds leaves his amount to him.
func TestNobodyWaitsForAnothersAddition(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		p.store.set(func(f *faulty) { f.delay = addDeadline / 2 })
		go p.Spend(t.Context(), "team", 1)
		synctest.Wait()
		start := time.Now()
		p.Spend(t.Context(), "team", 1)
		require.Zero(t, time.Since(start))
		sleep(2 * addDeadline)
		require.EqualValues(t, 2, p.stored())
	})
}

// A read that a caller began goes on when he has left: it is everybody's.
func TestReadOutlivesItsCaller(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		_, err := p.store.Store.Add(t.Context(), "team", DayOf(time.Now()), 100)
		require.NoError(t, err)
		p.store.set(func(f *faulty) { f.delay = 30 * time.Millisecond })
		ctx, cancel := context.WithCancel(t.Context())
		p.Prepare(ctx, "team")
		cancel()
		require.True(t, p.ask("team"))
	})
}

func TestClockSetBack(t *testing.T) {
	bubble(t, 1, func(t *testing.T, all []*process) {
		p := all[0]
		later := time.Now().Add(time.Hour)
		a := p.meter.today("team")
		a.asOf = later
		require.True(t, a.older(waitAfter))
		p.meter.pause, p.meter.until = firstPause, later
		require.True(t, p.meter.ready(), "no pause is that long")
	})
}
