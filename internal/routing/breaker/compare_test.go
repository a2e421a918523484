package breaker

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// client is one process as a store sees it: it goes by what it last heard, and may send a change twice.
type client struct {
	copy Record
	last Change
}

// again leaves the last change to be sent once more, if there was one.
func (c *client) again(d dice, now int64) {
	if c.last == (Change{}) {
		c.last = randomChange(d, c.copy, now)
	}
}

// compare makes n random changes by four clients, one after another, and says where the store does something else than
// the specification.
func compare(d dice, store Store, id string, n int) error {
	var want Record
	var clients [4]client
	for now := int64(100); now < int64(100+n); now++ { // no time of the protocol is below 0
		c := &clients[d.IntN(len(clients))]
		switch d.IntN(8) {
		case 0:
			found, err := store.Load(context.Background(), id)
			if err != nil {
				return err
			}
			if c.copy = found[id]; c.copy != want {
				return fmt.Errorf("at %d: read %+v, want %+v", now, c.copy, want)
			}
			continue
		case 1:
			c.again(d, now)
		default:
			c.last = randomChange(d, c.copy, now)
		}
		before := want
		after, ok := c.last.Apply(want)
		want = after
		got, applied, err := store.Update(context.Background(), id, c.last)
		if err != nil {
			return err
		}
		if got != want || applied != (ok || c.last.made(want)) {
			return fmt.Errorf("at %d: %+v on %+v gave %+v (%v), want %+v (%v)", now, c.last, before, got, applied, want, ok)
		}
		c.copy = got
	}
	return nil
}

// drawn is chance as rapid has it.
type drawn struct{ t *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "n") }

func (d drawn) Int64N(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(d.t, "n") }

// All writes of the protocol, by several clients: after each the store has the record of the specification. A hundred
// histories of a hundred changes; rapid shows the shortest that fails.
func isTheSpecification(t *testing.T, store Store) {
	histories := 0
	rapid.Check(t, func(t *rapid.T) {
		histories++
		if err := compare(drawn{t}, store, fmt.Sprintf("history-%d", histories), 100); err != nil {
			t.Fatal(err)
		}
	})
	require.GreaterOrEqual(t, histories, 100)
}

func TestMemoryIsTheSpecification(t *testing.T) { isTheSpecification(t, NewMemory()) }

func TestDynamoIsTheSpecification(t *testing.T) {
	store, _, _ := dynamoTable(t)
	isTheSpecification(t, store)
}
