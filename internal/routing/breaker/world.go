package breaker

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"time"
)

// world is what breakers ask of the machine they run on: clocks, chance, and work beside the caller's. There is one
// real world; the fleet simulation has another, so that it can run the breakers themselves in virtual time.
type world interface {
	now() time.Time
	chance() float64 // in [0, 1)
	nonce() string
	spawn(work func())
	wait(ctx context.Context, done <-chan struct{}, atMost time.Duration)
	after(d time.Duration, f func()) (stop func() bool)
	within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

type machine struct{}

func (machine) now() time.Time  { return time.Now() }
func (machine) chance() float64 { return rand.Float64() }
func (machine) nonce() string   { return crand.Text() }
func (machine) spawn(f func())  { go f() }

func (machine) wait(ctx context.Context, done <-chan struct{}, atMost time.Duration) {
	if atMost <= 0 {
		return
	}
	t := time.NewTimer(atMost)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	}
}

func (machine) after(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func (machine) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func unixMilli(w world) int64 { return w.now().UnixMilli() }
