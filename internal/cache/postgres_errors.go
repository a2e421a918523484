package cache

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// errNoPassword is all that is told of why there is none.
var errNoPassword = errors.New("no password for the database can be had")

// reason is the kind of a failure, fit for a log.
func reason(err error) error {
	var pg *pgconn.PgError
	var op *net.OpError
	var dns *net.DNSError
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, errNoPassword):
		return errNoPassword
	case errors.As(err, &pg) && pg.Code == "57014": // the server gave up in time
		return context.DeadlineExceeded
	case errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703"): // no such table, no such column
		return errors.New("the database isn't migrated, holdfast migrate does it (SQLSTATE " + pg.Code + ")")
	case errors.As(err, &pg):
		return errors.New("SQLSTATE " + pg.Code)
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return context.DeadlineExceeded
	case errors.As(err, &dns):
		return errors.New("host not found")
	case errors.As(err, &op) && op.Err != nil:
		return errors.New(op.Op + ": " + op.Err.Error())
	case errors.As(err, &connect) && connect.Config.TLSConfig != nil: // no other step of connecting is left
		return errors.New("no TLS as the URL demands it: the server has none, or its certificate isn't the right one")
	case dead(err):
		return errors.New("connection lost")
	}
	return errors.New("failed")
}

// dead says whether a connection broke, rather than the database refusing what was asked.
func dead(err error) bool {
	if err == nil || errors.Is(err, errNoPassword) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P")
	}
	var connect *pgconn.ConnectError
	return !errors.As(err, &connect) && !errors.Is(err, context.Canceled) && !pgconn.Timeout(err)
}

// deadlocked says whether a statement and another waited for each other.
func deadlocked(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "40P01"
}

// isAway says whether a failure tells that the next request would fail as well.
func isAway(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err != nil
	}
	switch pg.Code[:2] {
	case "22", "23", "40": // of this statement alone
		return false
	}
	return true
}

// away remembers that a store failed: it is left alone for a second, then one call tries, and so on, doubling.
type away struct {
	mu    sync.Mutex
	until time.Time
	wait  time.Duration // 0: it isn't away
	round int           // calls that began in an earlier one say nothing new
}

const (
	awayFirst = time.Second
	awayMax   = 30 * time.Second
)

// enter says whether the store may be asked, and in which round.
func (a *away) enter(now time.Time) (round int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wait > 0 {
		if now.Before(a.until) {
			return 0, false
		}
		a.until = now.Add(a.wait) // the others wait for this one's news
	}
	return a.round, true
}

// leave says how a call of a round ended. It tells whether the store went away or came back by that.
func (a *away) leave(now time.Time, round int, failed bool) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if round != a.round || !failed && a.wait == 0 {
		return false
	}
	a.round++
	before := a.wait
	if !failed {
		a.wait = 0
		return true
	}
	a.wait = min(max(2*a.wait, awayFirst), awayMax)
	a.until = now.Add(a.wait)
	return before == 0
}

// known remembers what this process stored, so that it isn't written again. It is bounded: full, it forgets all.
type known struct {
	mu    sync.Mutex
	until map[place]time.Time
}

const (
	maxKnown = 20000
	// knownFor bounds how long an entry isn't written again that a purge of another process has deleted meanwhile.
	knownFor = time.Hour
)

func (k *known) has(at place, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Before(k.until[at])
}

func (k *known) add(at place, now time.Time, ttl time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until == nil || len(k.until) >= maxKnown {
		k.until = map[place]time.Time{}
	}
	k.until[at] = now.Add(min(ttl, knownFor))
}

func (k *known) remove(at place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.until, at)
}

func (k *known) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until = nil
}
