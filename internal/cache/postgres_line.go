package cache

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// partingTime is what a connection that timed out has for its goodbye.
const partingTime = 200 * time.Millisecond

// dial connects, within the time for that also where the driver would take longer, as for the cancelling of a query.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: connectTimeout, KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &line{Conn: c}, nil
}

// line is a connection that is given up quickly once it timed out. The driver would wait 15 s for the last words of one
// that is dead, and the pool keeps its place so long: an instance with one connection would have none.
type line struct {
	net.Conn
	dead atomic.Bool
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		l.dead.Store(true)
	}
	return n, err
}

func (l *line) SetDeadline(t time.Time) error {
	if parting := time.Now().Add(partingTime); l.dead.Load() && t.After(parting) {
		t = parting
	}
	return l.Conn.SetDeadline(t)
}
