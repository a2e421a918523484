package breaker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Store keeps the records that the fleet shares. Safe for concurrent use. Its calls end when their context does.
type Store interface {
	// Load reads records, perhaps slightly old ones. A candidate nobody wrote about has the zero Record; one that
	// could not be read is missing from the answer.
	Load(ctx context.Context, candidates ...string) (map[string]Record, error)
	// Look reads one record as all the writes before have left it: for those who are about to write.
	Look(ctx context.Context, candidate string) (Record, error)
	// Update makes the change if its condition holds. Either way the answer is the record that holds now, and
	// whether it is this change that made it. After an error the change may have been made or not.
	Update(ctx context.Context, candidate string, c Change) (r Record, applied bool, err error)
}

// errLost: the condition failed, and the record that made it fail could not be read. Somebody else was faster.
var errLost = errors.New("breaker: condition failed, record unknown")

const (
	missesToAway = 3
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// link is the way to the store. Three calls in a row that were answered late make it slow: it is used, but not waited
// for. Three without any answer make it dead: it is left alone but for one call after a pause that doubles, so that it
// costs next to nothing.
type link struct {
	world world
	store Store
	log   *slog.Logger

	mu     sync.Mutex
	warm   bool // a call has ended: the first may be slow
	late   int  // calls in a row without an answer in time
	silent int  // calls in a row without any answer
	told   bool
	pause  time.Duration
	until  int64 // Unix ms; while dead, the time of the next try
}

// ready says whether the store may be asked now. While it is dead that is a claim on the one try.
func (l *link) ready(now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent < missesToAway {
		return true
	}
	if pause := l.pause.Milliseconds(); now < l.until && l.until <= now+pause { // else the clock was put back
		return false
	}
	l.until = now + l.pause.Milliseconds()
	return true
}

// wait is how long a caller may wait for an answer: not at all for that of a store that is slow or dead.
func (l *link) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late >= missesToAway {
		return 0
	}
	return patience
}

func (l *link) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent >= missesToAway
}

func (l *link) load(ctx context.Context, candidates []string) (records map[string]Record, err error) {
	l.ask(func() error {
		records, err = l.store.Load(ctx, candidates...)
		return err
	})
	return records, err
}

func (l *link) look(ctx context.Context, candidate string) (r Record, err error) {
	l.ask(func() error {
		r, err = l.store.Look(ctx, candidate)
		return err
	})
	return r, err
}

func (l *link) update(ctx context.Context, candidate string, c Change) (r Record, applied bool, err error) {
	l.ask(func() error {
		r, applied, err = l.store.Update(ctx, candidate, c)
		return err
	})
	return r, applied, err
}

// ask makes a call of the store and notes how it went. An answer is late as soon as nobody waits for it, not when it
// comes: one request that asks for many candidates would wait for each of them until then.
func (l *link) ask(call func() error) {
	l.mu.Lock()
	limit, dead := patience, l.silent >= missesToAway
	if !l.warm {
		limit = storeDeadline
	}
	l.mu.Unlock()
	stop := l.world.after(limit, l.overdue)
	err := call()
	inTime := stop()
	if !errors.Is(err, errLost) {
		l.note(err, inTime, dead)
	}
}

func (l *link) overdue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late++
	l.tell(false, nil)
}

// note counts what came or failed, and says once that the store is away and once that it is back. dead: it was held
// for dead when the call began. Of those before, many at once perhaps, none makes the pause longer.
func (l *link) note(err error, inTime, dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warm = true
	if err != nil && inTime {
		l.late++
	}
	switch {
	case err == nil && inTime:
		l.late, l.silent = 0, 0
	case err == nil:
		l.silent = 0
	case dead || l.silent < missesToAway:
		l.silent++
		l.rest()
	}
	l.tell(err == nil && inTime, err)
}

// rest sets the pause of a dead store.
func (l *link) rest() {
	switch {
	case l.silent == missesToAway:
		l.pause = firstPause
	case l.silent > missesToAway:
		l.pause = min(2*l.pause, longestPause)
	}
	l.until = unixMilli(l.world) + l.pause.Milliseconds()
}

func (l *link) tell(inTime bool, err error) {
	switch {
	case inTime && l.told:
		l.told = false
		l.log.Info("breaker store is back")
	case !inTime && !l.told && (err != nil || l.late >= missesToAway):
		l.told = true
		l.log.Warn("breaker store is away, breakers are local", "reason", reason(err))
	}
}

func reason(err error) string {
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return "slow"
	}
	return err.Error()
}
