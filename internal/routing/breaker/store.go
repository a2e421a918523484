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
	store Store
	log   *slog.Logger

	mu     sync.Mutex
	warm   bool // one call has succeeded: the first may be slow
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
	if now < l.until {
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

func (l *link) load(ctx context.Context, candidates []string) (map[string]Record, error) {
	start := time.Now()
	records, err := l.store.Load(ctx, candidates...)
	l.note(err, time.Since(start))
	return records, err
}

func (l *link) update(ctx context.Context, candidate string, c Change) (Record, bool, error) {
	start := time.Now()
	r, applied, err := l.store.Update(ctx, candidate, c)
	if !errors.Is(err, errLost) {
		l.note(err, time.Since(start))
	}
	return r, applied, err
}

// note counts what came late or not at all, and says once that the store is away and once that it is back.
func (l *link) note(err error, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inTime := err == nil && (took <= patience || !l.warm)
	l.warm = l.warm || err == nil
	l.late, l.silent = l.late+1, l.silent+1
	if err == nil {
		l.silent = 0
	}
	if inTime {
		l.late = 0
	}
	l.rest()
	l.tell(inTime, err)
}

// rest sets the pause of a dead store.
func (l *link) rest() {
	switch {
	case l.silent == missesToAway:
		l.pause = firstPause
	case l.silent > missesToAway:
		l.pause = min(2*l.pause, longestPause)
	}
	l.until = time.Now().UnixMilli() + l.pause.Milliseconds()
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
