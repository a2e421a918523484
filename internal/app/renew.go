package app

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/config"
)

// When the configuration's source is asked again, and what was missing is tried again.
const (
	watchPeriod = 500 * time.Millisecond  // of a file; a change is taken within 2 s
	askAge      = 10 * time.Second        // of a URL's last asking; the next answer is followed by another
	askTime     = 1500 * time.Millisecond // what an asking may take: less than Lambda's hook has
	fillTime    = time.Second             // for parameters: a file that changes meanwhile, to bar a key, waits no longer
	healPause   = 5 * time.Second         // between two tries to fetch missing parameters
)

// renewal brings newer configurations into service, one at a time, so that the newest wins. A process that serves
// watches its file in a goroutine. A frozen function can't do that, and nobody should poll a URL: they are asked
// after answers, by age. So are the parameters that couldn't be fetched.
type renewal struct {
	mu      sync.Mutex     // held from asking to swapping
	feed    *config.Feed   // nil: the configuration stays
	waiting *config.Config // the newest, if its parameters couldn't be fetched; nil mostly

	next    atomic.Int64 // Unix ms by the wall clock, as a frozen process's other clock stands still; 0: nothing is due ever
	watched bool
	stop    context.CancelFunc // ends the watch
	done    chan struct{}      // closed when it has ended
}

// due says once an age that there is something to ask for. It costs next to nothing.
func (r *renewal) due() bool {
	now, next := time.Now().UnixMilli(), r.next.Load()
	if next == 0 || now < next && next-now <= askAge.Milliseconds() { // else the clock was set back
		return false
	}
	return r.next.CompareAndSwap(next, now+askAge.Milliseconds())
}

// schedule says when to ask again. The caller holds mu.
func (r *renewal) schedule() {
	age := askAge
	switch {
	case r.waiting != nil:
		age = healPause
	case r.feed == nil || r.watched:
		r.next.Store(0)
		return
	case r.feed.File():
		age = watchPeriod
	}
	r.next.Store(time.Now().Add(age).UnixMilli())
}

// begin starts the watch, or the first age.
func (a *App) begin(feed *config.Feed) {
	r := &a.renewal
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed = feed
	if r.watched = feed != nil && feed.File() && !a.options.Lambda; r.watched {
		ctx, cancel := context.WithCancel(context.Background())
		r.stop, r.done = cancel, make(chan struct{})
		go a.watch(ctx, r.done)
	}
	r.schedule()
}

// end stops the watch and waits for it. What it does is bounded, and ends with its context.
func (r *renewal) end() {
	if r.watched {
		r.stop()
		<-r.done
	}
}

func (a *App) watch(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.poll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// poll looks at the file once. Whatever it does to us, the old configuration serves on.
func (a *App) poll(ctx context.Context) {
	defer func() {
		if recover() != nil {
			a.log.Error("reloading panicked", "stack", string(debug.Stack()))
		}
	}()
	a.renewal.mu.Lock()
	defer a.renewal.mu.Unlock()
	if a.reload(ctx) {
		a.renewal.schedule()
	}
}

// renew asks for what is due. While somebody is at it already, it does nothing.
func (a *App) renew(ctx context.Context) {
	r := &a.renewal
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	defer r.schedule()
	if !r.watched && r.feed != nil && a.reload(ctx) {
		return
	}
	if r.waiting != nil {
		a.take(ctx, r.waiting)
	}
}

// reload asks the source, and brings what is new into service; a configuration that isn't right is told and left.
// It says whether there was something new that could be used.
func (a *App) reload(ctx context.Context) bool {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, warnings, err := a.renewal.feed.Next(asking)
	switch {
	case err != nil:
		a.refuse(err)
		return false
	case c == nil:
		return false
	}
	for _, w := range warnings {
		a.log.Warn("configuration", "file", w.File, "line", w.Line, "reason", w.Reason)
	}
	a.take(ctx, c)
	return true
}

// take brings a configuration into service. One whose parameters can't be fetched waits for them while the one in
// service is whole.
func (a *App) take(ctx context.Context, c *config.Config) {
	r, old := &a.renewal, a.now.Load()
	again := r.waiting == c
	r.waiting = nil
	filled, whole := a.fill(ctx, c, fillTime)
	if !whole {
		r.waiting = c
		if again {
			return
		}
		if old.whole {
			a.log.Warn("configuration waits for its parameters", "file", c.Source, "version", c.Version, "serving", old.config.Version)
			return
		}
	}
	s, err := a.build(filled, old)
	if err != nil {
		r.waiting = nil
		a.refuse(err)
		return
	}
	s.whole = whole
	s.warm(ctx)
	a.swap(s)
	a.log.Info("configuration reloaded", "file", c.Source, "old", old.config.Version, "new", c.Version)
}

// refuse says why a configuration isn't taken.
func (a *App) refuse(err error) {
	serving := a.now.Load().config
	var problems config.Errors
	if !errors.As(err, &problems) {
		problems = config.Errors{{File: serving.Source, Reason: err.Error()}}
	}
	for _, p := range problems {
		a.log.Warn("configuration refused", "file", p.File, "line", p.Line, "reason", p.Reason, "serving", serving.Version)
	}
}

// fill replaces ssm: values, and finds out where the database is. What can't be had leaves its provider without a
// client, the cache without the database, and says so; false: the store of parameters was away, so it is worth trying
// again.
func (a *App) fill(ctx context.Context, c *config.Config, d time.Duration) (*config.Config, bool) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	filled, warnings, err := a.secrets.Fill(ctx, c)
	if err != nil {
		a.log.Warn("parameters can't be fetched", "error", err)
	}
	for _, w := range warnings {
		a.log.Warn("configuration", "file", w.File, "reason", w.Reason)
	}
	located := c.Cache.Mode == "off" || a.locate(ctx)
	return filled, err == nil && located
}
