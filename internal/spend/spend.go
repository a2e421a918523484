// Package spend keeps tenants within what they may spend on a day.
//
// Its one idea: a tenant's day is one number, which the whole fleet adds to after answers and looks at before them. The
// number is looked at in a copy that may be some seconds old, and requests in flight have not been added yet, so a cap
// may be overshot by what is spent meanwhile. A store that is away refuses nobody: what is spent then is kept and added
// later. Only tenants with a cap are counted. Amounts are whole nano-dollars.
package spend

import (
	"context"
	"errors"
	"math"
	"time"
)

// Store keeps the numbers that the fleet shares. Safe for concurrent use. Its calls end when their context does.
type Store interface {
	// Load gives what a tenant has spent on a day, including all that was added before: 0 where nobody added anything.
	Load(ctx context.Context, tenant string, day Day) (nanos int64, err error)
	// Add adds an amount and gives the sum. After an error that isn't ErrRefused it may have been added or not.
	Add(ctx context.Context, tenant string, day Day, nanos int64) (sum int64, err error)
}

// ErrRefused is wrapped by an error of Add after which it is certain that nothing was added.
var ErrRefused = errors.New("nothing was added")

// Day is a day in UTC, as in 2026-02-28.
type Day string

// DayOf gives the day of a time.
func DayOf(t time.Time) Day { return Day(t.UTC().Format(time.DateOnly)) }

// End is the midnight at which a day of DayOf ends.
func (d Day) End() time.Time {
	t, _ := time.Parse(time.DateOnly, string(d)) // of DayOf
	return t.AddDate(0, 0, 1)
}

// plus adds amounts, which are never negative, up to the largest there is.
func plus(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }
