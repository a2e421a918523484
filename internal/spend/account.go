package spend

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// account is one tenant's day as this process sees it. It makes one call of the store at a time, so that each answer
// is newer than the one before.
type account struct {
	tenant string
	day    Day

	mu       sync.Mutex
	sum      int64     // as the store said last
	asOf     time.Time // when it was asked for that; zero: never
	owed     int64     // spent here, to be added
	sent     int64     // being added, or in doubt
	doubt    bool      // nobody knows whether sent was added
	flushing bool      // somebody adds what is owed, and what will be while he does
	call     *call     // of the store, in flight; nil: none
	told     bool      // that the cap is reached
}

// call is a call of the store. Who needs its answer waits no longer than until.
type call struct {
	done  chan struct{}
	until time.Time
}

// spent is all that is known.
func (a *account) spent() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return plus(a.sum, plus(a.owed, a.sent))
}

// owe notes an amount.
func (a *account) owe(nanos int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owed = plus(a.owed, nanos)
}

// age is the copy's, by the wall clock, as a frozen process's other clock stands still. The lock is held.
func (a *account) age() time.Duration {
	if age := time.Now().Round(0).Sub(a.asOf); age >= 0 {
		return age
	}
	return math.MaxInt64 // the clock was set back
}

// older says whether the copy is older than a duration.
func (a *account) older(d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.age() > d
}

// begin claims a call that renews an old copy, if nobody asks the store already: it adds an amount, or reads where that
// is 0. flusher: the caller has to go on with what is owed.
func (a *account) begin() (amount int64, flusher, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.call != nil || a.flushing || a.age() <= renewAfter {
		return 0, false, false
	}
	a.flushing = a.owes()
	return a.take(), a.flushing, true
}

// owes says whether there is something to add, or may be. The lock is held.
func (a *account) owes() bool { return a.owed > 0 || a.doubt }

// take claims the next call: it adds what is owed, but a doubt comes first, which takes a read. The lock is held.
func (a *account) take() (amount int64) {
	a.call = &call{done: make(chan struct{}), until: time.Now().Add(patience)}
	if a.doubt {
		return 0
	}
	a.sent, a.owed = a.owed, 0
	return a.sent
}

// await waits for the call in flight, as long as anybody waits for it.
func (a *account) await(ctx context.Context) {
	a.mu.Lock()
	c := a.call
	a.mu.Unlock()
	if c != nil {
		c.wait(ctx, time.Until(c.until))
	}
}

func (c *call) wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// claim makes the caller the one who flushes, false if there is nothing to do or somebody does it.
func (a *account) claim() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flushing || !a.owes() {
		return false
	}
	a.flushing = true
	return true
}

// next claims the flusher's next call, once no other is in flight: it adds an amount, or reads where that is 0. false:
// nothing is left, or ctx has ended; he is no flusher any more.
func (a *account) next(ctx context.Context) (amount int64, more bool) {
	for {
		a.mu.Lock()
		other := a.call
		if other == nil || ctx.Err() != nil {
			break
		}
		a.mu.Unlock()
		other.wait(ctx, readDeadline)
	}
	defer a.mu.Unlock()
	if ctx.Err() != nil || !a.owes() {
		a.flushing = false
		return 0, false
	}
	return a.take(), true
}

// loaded ends a read. It settles a doubt: had the last amount been added, the sum would have grown by it. Where others
// have added as much meanwhile it is taken for added, in the tenant's favour.
func (a *account) loaded(sum int64, err error, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		if a.doubt && sum < plus(a.sum, a.sent) {
			a.owed = plus(a.owed, a.sent)
		}
		a.sum, a.asOf = sum, asked.Round(0)
		if a.doubt {
			a.sent, a.doubt = 0, false
		}
	}
	a.end()
}

// added ends the adding of what was sent.
func (a *account) added(sum int64, err error, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.sum, a.asOf, a.sent = sum, asked.Round(0), 0
	case errors.Is(err, ErrRefused):
		a.owed, a.sent = plus(a.owed, a.sent), 0
	default:
		a.doubt = true
	}
	a.end()
}

// end ends the call in flight. The lock is held.
func (a *account) end() {
	close(a.call.done)
	a.call = nil
}

// give ends a flush that failed.
func (a *account) give() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flushing = false
}

// tell is true once.
func (a *account) tell() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.told
	a.told = true
	return first
}
