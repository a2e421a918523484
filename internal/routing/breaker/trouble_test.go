package breaker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A request that goes down a long chain waits for the store no longer than many requests would. (The last wait and
// the verdict on it end at the same moment; one more may have begun.)
func TestStoreAwayCostsALongChainLittle(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faulty{Store: NewMemory()}
				g := gateOn(t, Settings{Mode: mode}, store)
				call(t, g, passed)
				store.set(func(f *faulty) { f.hang = true })
				start := time.Now()
				for i := range 16 {
					p, err := g.Enter(t.Context(), fmt.Sprint("model-", i), lease)
					require.NoError(t, err)
					p.Done(failed)
				}
				require.LessOrEqual(t, time.Since(start), (missesToAway+1)*patience)
			})
		})
	}
}

// Many calls that one hiccup catches are no reason to stay away from the store for long.
func TestManyMissesAtOnceAreOnePause(t *testing.T) {
	for name, err := range map[string]error{"errors": errors.New("cut"), "hangs": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faulty{Store: NewMemory()}
				g := gateOn(t, Settings{}, store)
				call(t, g, passed)
				store.set(func(f *faulty) { f.err, f.hang, f.delay = err, err == nil, 10*time.Millisecond })
				for i := range 20 {
					g.Refresh(t.Context(), fmt.Sprint("model-", i))
				}
				pass(storeDeadline)
				synctest.Wait()
				store.set(func(f *faulty) { f.err, f.hang, f.delay = nil, false, 0 })
				pass(firstPause)
				before, _ := store.counts()
				g.Refresh(t.Context(), "model-x")
				synctest.Wait()
				after, _ := store.counts()
				require.Equal(t, before+1, after, "asked again after the first pause")
			})
		})
	}
}

// A caller's deadline bounds the wait to become the trial; what comes of the write is not lost.
func TestTrialWaitsNoLongerThanItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: NewMemory()}
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		pass(33 * time.Second)
		status(t, g)
		store.set(func(f *faulty) { f.delay = 280 * time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		if p, err := g.Enter(ctx, model, lease); err == nil {
			p.Done(Outcome{Class: Cancelled})
			start = start.Add(patience) // to give it back
		}
		require.LessOrEqual(t, time.Since(start), 200*time.Millisecond)
		store.set(func(f *faulty) { f.delay = 0 })
		require.True(t, enter(t, g).Trial())
	})
}

// readOnly is a store whose writes fail while its reads are answered: throttled, or a policy without UpdateItem.
type readOnly struct {
	*Memory
	on bool
}

func (s *readOnly) Update(ctx context.Context, id string, c Change) (Record, bool, error) {
	if s.on {
		return Record{}, false, errors.New("denied")
	}
	return s.Memory.Update(ctx, id, c)
}

// What nobody may write can still be tried: the fleet's opening must not outlive the model's trouble.
func TestStoreThatTakesNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &readOnly{Memory: NewMemory()}
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		store.on = true
		pass(33 * time.Second)
		for range 2 * missesToAway {
			status(t, g)
			if p, err := g.Enter(t.Context(), model, lease); err == nil {
				require.True(t, p.Trial())
				p.Started()
				call(t, g, passed)
				return
			}
			pass(time.Second)
		}
		require.Fail(t, "refused for ever")
	})
}

// stubborn refuses every write and shows no reason.
type stubborn struct {
	*Memory
	refuse bool
}

func (s *stubborn) Update(ctx context.Context, id string, c Change) (Record, bool, error) {
	if s.refuse {
		return Record{}, false, nil
	}
	return s.Memory.Update(ctx, id, c)
}

func TestStoreThatContradictsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stubborn{Memory: NewMemory(), refuse: true}
		g := gateOn(t, Settings{}, store)
		call(t, g, failed, failed)
		refused(t, g)
		store.refuse = false
		pass(3 * time.Second)
		g.Refresh(t.Context(), model)
		synctest.Wait()
		require.Equal(t, Open, store.records[model].State)
		refused(t, g)
	})
}

// unwritable is a store whose item nothing can be done with, say one that another program wrote.
type unwritable struct{ *Memory }

func (u unwritable) Update(context.Context, string, Change) (Record, bool, error) {
	return Record{}, false, nil
}

// With an item that nobody can write on, a process still keeps away from a dead model, by itself.
func TestItemThatCannotBeWritten(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gateOn(t, Settings{Mode: mode}, unwritable{NewMemory()})
				calls := 0
				for range 100 { // 10 s
					if p, err := g.Enter(t.Context(), model, lease); err == nil {
						calls++
						p.Done(failed)
					}
					pass(100 * time.Millisecond)
				}
				require.LessOrEqual(t, calls, missesToAway+1+5)
			})
		})
	}
}
