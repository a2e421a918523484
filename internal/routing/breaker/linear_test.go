package breaker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// answer is what a store said to a change.
type answer struct {
	record  Record
	applied bool
}

// linear is the protocol as porcupine reads it. apart: a change that failed is answered with a record that was read
// later, so only its failing counts.
func linear(apart bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return Record{} },
		Step: func(state, input, output any) (bool, any) {
			c, got := input.(Change), output.(answer)
			want, ok := c.Apply(state.(Record))
			switch {
			case ok:
				return got == answer{want, true}, want
			case apart:
				return !got.applied || c.made(want), want
			default:
				return got == answer{want, c.made(want)}, want
			}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	}
}

// history has eight clients make sixty changes each of one candidate, at the same time.
func history(store Store, id string, seed uint64) ([]porcupine.Operation, error) {
	const clients, each = 8, 60
	var clock, failed atomic.Int64
	clock.Store(100) // no time of the protocol is below 0
	var mu sync.Mutex
	var all []porcupine.Operation
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			d := rand.New(rand.NewPCG(seed, uint64(n)))
			var me client
			for range each {
				if d.IntN(10) > 0 || me.last == (Change{}) { // else once more
					me.last = randomChange(d, me.copy, clock.Add(1))
					if me.last.Op == Acquire { // a nonce is one call's
						me.last.Holder = fmt.Sprint(n, me.last.Now)
					}
				}
				op := porcupine.Operation{ClientId: n, Input: me.last, Call: clock.Add(1)}
				r, applied, err := store.Update(context.Background(), id, me.last)
				if err != nil {
					failed.Add(1)
					return
				}
				op.Output, op.Return = answer{r, applied}, clock.Add(1)
				me.copy = r
				mu.Lock()
				all = append(all, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failed.Load() > 0 || len(all) != clients*each {
		return nil, fmt.Errorf("%d clients were not answered", failed.Load())
	}
	return all, nil
}

// concurrent says that what clients were told at the same time could not have been told one after another.
func concurrent(store Store, apart bool, seed uint64) error {
	ops, err := history(store, fmt.Sprintf("linear-%d", seed), seed)
	if err != nil {
		return err
	}
	if got := porcupine.CheckOperationsTimeout(linear(apart), ops, time.Minute); got != porcupine.Ok {
		return fmt.Errorf("seed %d: linearizable: %s", seed, got)
	}
	return nil
}

func TestMemoryIsLinearizable(t *testing.T) {
	for range 20 {
		require.NoError(t, concurrent(NewMemory(), false, rand.Uint64()))
	}
}

func TestDynamoIsLinearizable(t *testing.T) {
	store, _, _ := dynamoTable(t)
	for range 2 {
		require.NoError(t, concurrent(store, true, rand.Uint64()))
	}
}
