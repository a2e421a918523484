package app

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"holdfast/internal/lambdahttp"
)

// afterBudget bounds work after a response where no platform does.
const afterBudget = 5 * time.Second

// afterwork runs work after the last byte: in Lambda's hook, or else in a goroutine that Close waits for.
type afterwork struct {
	log *slog.Logger
	all sync.WaitGroup
}

func (a *afterwork) run(ctx context.Context, work func(context.Context)) {
	if lambdahttp.AfterResponse(ctx, work) {
		return
	}
	a.all.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterBudget)
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				a.log.Error("work after a response panicked", "stack", string(debug.Stack()))
			}
		}()
		work(ctx)
	})
}

// wait waits for all work, until ctx ends.
func (a *afterwork) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { // ends with the work, which has its own deadline
		a.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
