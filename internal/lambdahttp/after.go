package lambdahttp

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// How long work after a response may take. A buffered answer may be held back until it is done (the runtime emulator
// does so), a streamed one has left.
const (
	streamedWork = 5 * time.Second
	bufferedWork = 2 * time.Second
	lastSecond   = time.Second // left untouched before the platform's deadline
)

// AfterResponse registers work for the time after the last byte and before Lambda may freeze the process. All work of
// one request runs at once, in no order, under one budget: 5 s for streamed answers, 2 s for buffered ones, and never
// the last second before the platform's deadline. The work's context has the invocation's values and that budget; it
// must end with it. Nothing is done where no time is left.
//
// It reports false when ctx isn't that of a request on Lambda, or its time for registering is over: then the caller
// runs the work himself.
func AfterResponse(ctx context.Context, work func(context.Context)) bool {
	a, ok := ctx.Value(afterKey{}).(*afterWork)
	return ok && a.add(work)
}

type afterKey struct{}

type afterWork struct {
	mu     sync.Mutex
	work   []func(context.Context)
	closed bool
}

func (a *afterWork) add(work func(context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.work = append(a.work, work)
	return true
}

func (a *afterWork) take() []func(context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.work
}

// run does what was registered, once, and waits for it. ctx is the invocation's own, with the platform's deadline.
func (a *afterWork) run(ctx context.Context, budget time.Duration, log *slog.Logger) {
	work := a.take()
	if len(work) == 0 {
		return
	}
	if deadline, ok := ctx.Deadline(); ok {
		budget = min(budget, time.Until(deadline)-lastSecond)
	}
	if budget <= 0 {
		log.Warn("no time left for work after the response", "dropped", len(work))
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()
	var all sync.WaitGroup
	for _, f := range work {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					log.Error("work after the response panicked", panicked(p)...)
				}
			}()
			f(ctx)
		})
	}
	all.Wait()
}
