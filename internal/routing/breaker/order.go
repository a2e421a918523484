package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Order is an operator's word about one candidate. It holds for the whole fleet, whatever the state was, until its
// end or the next order; breakers themselves never leave a forced state.
type Order struct {
	To    State     // ForcedOpen, ForcedClosed, or Closed: back to normal, with nothing remembered
	Until time.Time // when a forced state ends, closed; zero: it has no end
	Why   string    // for /v1/status and the log: one line, 200 characters at most
}

const longestWhy = 200

// FleetSees is how long a serving process may go on by what it knew before an order: the age from which the copy of an
// open breaker is read again.
const FleetSees = ageOpen * time.Millisecond

// Give carries the order out and gives the record that holds now. The gates of the fleet hear of it when they next
// read, within FleetSees.
func (o Order) Give(ctx context.Context, store Store, candidate string) (Record, error) {
	now := time.Now()
	if err := o.Check(now); err != nil {
		return Record{}, err
	}
	c := Change{Op: Force, State: o.To, Now: now.UnixMilli(), Why: o.Why}
	if !o.Until.IsZero() {
		c.Until = o.Until.UnixMilli()
	}
	r, _, err := store.Update(ctx, candidate, c)
	if err != nil {
		return Record{}, fmt.Errorf("force breaker: %w", err)
	}
	return r, nil
}

// Check says what is wrong with the order.
func (o Order) Check(now time.Time) error {
	switch {
	case o.To != ForcedOpen && o.To != ForcedClosed && o.To != Closed:
		return fmt.Errorf("a breaker can't be forced %s", o.To)
	case o.To == Closed && !o.Until.IsZero():
		return errors.New("a reset has no end")
	case !o.Until.IsZero() && (!o.Until.After(now) || o.Until.UnixMilli() > maxNumber):
		return errors.New("the end of a forced state must be ahead, and before the year 2109")
	case !utf8.ValidString(o.Why) || utf8.RuneCountInString(o.Why) > longestWhy:
		return fmt.Errorf("a reason has %d characters at most", longestWhy)
	}
	for _, r := range o.Why {
		if !unicode.IsPrint(r) {
			return errors.New("a reason is one line of printable characters")
		}
	}
	return nil
}

// Status is what the record says at a time.
func (r Record) Status(candidate string, now time.Time) Status {
	r = r.at(now.UnixMilli())
	s := Status{Candidate: candidate, State: r.State, Cooling: r.cooling(), Generation: r.Gen, Why: r.Why}
	if r.State != Closed && r.State != HalfOpen && r.OpenUntil > 0 {
		s.Until = time.UnixMilli(r.OpenUntil)
	}
	return s
}
