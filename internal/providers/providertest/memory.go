package providertest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Memory serves the upstream over connections in memory and gives a transport that reaches it at any address. With it
// HTTP runs inside a testing/synctest bubble, in the bubble's time.
func (u *Upstream) Memory(t testing.TB) *http.Transport {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: u}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // always http.ErrServerClosed
	}()
	tr := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		u.Close()
		tr.CloseIdleConnections()
		_ = srv.Close()
		<-served
	})
	return tr
}

// pipes is a net.Listener whose connections are net.Pipes.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next dial.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further dials.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is the name of no place.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
