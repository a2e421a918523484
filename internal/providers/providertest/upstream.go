package providertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	callLimit  = 5 * time.Minute  // no call lives longer, whatever its behaviour says
	awaitLimit = 20 * time.Second // how long Await waits
	bodyLimit  = 64 << 20         // of a request
)

// Upstream is one scripted provider: an http.Handler for any path, safe for concurrent use.
type Upstream struct {
	URL string // of the server that Start began; "" without one

	dialect Dialect
	done    context.Context
	close   context.CancelFunc

	mu      sync.Mutex
	plan    []Behaviour
	next    int
	seen    Seen
	changed chan struct{} // closed at every change of seen
}

// Seen is what an upstream has seen so far.
type Seen struct {
	Calls, Open, MaxOpen int
	Cancelled            int // calls whose caller left before the end
	// The last call.
	Method, Path string
	Header       http.Header
	Body         []byte
	Times        []time.Time // when each call came
}

// New is an upstream that gives each call the next behaviour, and the last one to all further calls; without any it
// gives the zero behaviour. Serve it as a handler, with Start's server or over Memory's connections.
func New(d Dialect, plan ...Behaviour) *Upstream {
	u := &Upstream{dialect: d, plan: plan, changed: make(chan struct{})}
	u.done, u.close = context.WithCancel(context.Background())
	return u
}

// Start is New with a TCP server on loopback at u.URL, until the test's end.
func Start(t testing.TB, d Dialect, plan ...Behaviour) *Upstream {
	u := New(d, plan...)
	srv := httptest.NewServer(u)
	u.URL = srv.URL
	t.Cleanup(func() {
		u.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return u
}

// Close ends every open call, hanging ones too.
func (u *Upstream) Close() { u.close() }

// Play sets the behaviours from the next call on, the first of them first.
func (u *Upstream) Play(plan ...Behaviour) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.plan, u.next = plan, 0
}

// Seen is a copy of what the upstream has seen so far.
func (u *Upstream) Seen() Seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.snapshot()
}

func (u *Upstream) snapshot() Seen {
	s := u.seen
	s.Header, s.Body, s.Times = s.Header.Clone(), slices.Clone(s.Body), slices.Clone(s.Times)
	return s
}

// Calls is the number of calls so far.
func (u *Upstream) Calls() int { return u.Seen().Calls }

// Await waits until what the upstream has seen is as wanted, and fails the test after 20 seconds.
func (u *Upstream) Await(t testing.TB, what string, wanted func(Seen) bool) Seen {
	t.Helper()
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	for {
		u.mu.Lock()
		s, changed := u.snapshot(), u.changed
		u.mu.Unlock()
		if wanted(s) {
			return s
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("the upstream never saw %s: %d calls, %d open, %d cancelled", what, s.Calls, s.Open, s.Cancelled)
		}
	}
}

// ServeHTTP answers one call.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit))
	if err != nil {
		return
	}
	b := u.enter(r, body).normal()
	ctx, cancel := context.WithTimeout(r.Context(), callLimit)
	defer cancel()
	defer context.AfterFunc(u.done, cancel)()

	words, q := newWire(u.dialect, b, r, body)
	p := player{ctx: ctx, w: w, b: b, words: words, q: q}
	err = p.play()
	u.leave(err != nil && !errors.Is(err, errCut) && u.done.Err() == nil)
	if err != nil {
		panic(http.ErrAbortHandler) // cuts the connection: the body gets no proper end
	}
}

func (u *Upstream) enter(r *http.Request, body []byte) Behaviour {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen.Calls++
	u.seen.Open++
	u.seen.MaxOpen = max(u.seen.MaxOpen, u.seen.Open)
	u.seen.Method, u.seen.Path, u.seen.Header, u.seen.Body = r.Method, r.URL.Path, r.Header.Clone(), body
	u.seen.Times = append(u.seen.Times, time.Now())
	u.tell()
	if len(u.plan) == 0 {
		return Behaviour{}
	}
	b := u.plan[min(u.next, len(u.plan)-1)]
	u.next++
	return b
}

func (u *Upstream) leave(cancelled bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen.Open--
	if cancelled {
		u.seen.Cancelled++
	}
	u.tell()
}

// tell wakes those who Await. The lock is held.
func (u *Upstream) tell() {
	close(u.changed)
	u.changed = make(chan struct{})
}
