// Package bench runs parts of Holdfast beside others' of the same kind, in one run. It is a module of its own, so that
// what it compares with is no dependency of Holdfast's.
package bench

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"holdfast/internal/routing/breaker"
)

const (
	candidate = "model-a"
	lease     = 10 * time.Second
)

// breakers are what is compared: one call of a healthy model through a closed breaker, all that the breaker has to do
// with it. Holdfast's has the fleet's record at hand, in a copy that is read again every two seconds; the others count
// for one process only.
func breakers(tb testing.TB) []named {
	return []named{
		{"holdfast", holdfast(tb, breaker.ModeConsecutive)},
		{"holdfast-hybrid", holdfast(tb, breaker.ModeHybrid)},
		{"gobreaker", twoStep()},
		{"failsafe-go", permits()},
	}
}

type named struct {
	name string
	call func(tb testing.TB)
}

func holdfast(tb testing.TB, mode breaker.Mode) func(testing.TB) {
	gate := breaker.New(breaker.Settings{Mode: mode}, breaker.NewMemory(), slog.New(slog.DiscardHandler))
	tb.Cleanup(func() {
		if err := gate.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	gate.Warm(context.Background(), candidate)
	ctx := context.Background()
	return func(tb testing.TB) {
		permit, err := gate.Enter(ctx, candidate, lease)
		if err != nil {
			tb.Fatal(err)
		}
		permit.Started()
		permit.Done(breaker.Outcome{Class: breaker.Success})
	}
}

// twoStep is gobreaker's form for outcomes that come later than the call.
func twoStep() func(testing.TB) {
	b := gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{Name: candidate})
	return func(tb testing.TB) {
		done, err := b.Allow()
		if err != nil {
			tb.Fatal(err)
		}
		done(nil)
	}
}

func permits() func(testing.TB) {
	b := circuitbreaker.NewBuilder[any]().WithFailureThreshold(2).WithDelay(30 * time.Second).Build()
	return func(tb testing.TB) {
		if !b.TryAcquirePermit() {
			tb.Fatal("refused")
		}
		b.RecordSuccess()
	}
}

func BenchmarkClosed(b *testing.B) {
	for _, one := range breakers(b) {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one.call(b)
			}
		})
	}
}

func BenchmarkClosedParallel(b *testing.B) {
	for _, one := range breakers(b) {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					one.call(b)
				}
			})
		})
	}
}
