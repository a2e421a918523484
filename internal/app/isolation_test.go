//go:build unix

package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// A provider that hangs, wherever it does, delays nobody else's answers: what hangs still hangs when all calls of a
// healthy provider are answered.

// hanging is how many calls hang, and how many the healthy provider answers meanwhile.
const hanging = 50

// full is the address of a listener whose queue of connections is full, so that a further one is never made. The
// system then says nothing to it at all.
func full(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Close(fd)) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 20 {
		c, err := net.DialTimeout("tcp", addr, 300*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	require.Fail(t, "the queue is never full")
	return ""
}

// mute is the address of a listener that accepts and never says a word, and how many connections it has.
func mute(t *testing.T) (addr string, conns func() int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var n atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			n.Add(1)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String(), func() int { return int(n.Load()) }
}

// between is a lab with one provider that hangs and one that is healthy, both with clocks that don't matter here.
func between(t *testing.T, bad string) (*lab, *providertest.Upstream) {
	good := providertest.Start(t, providertest.OpenAI, providertest.Says("fine"))
	const clocks = "{connect: 3m, header: 3m, first_token: 3m, idle: 3m}"
	l := &lab{t: t, log: &locked{}}
	l.start(fmt.Sprintf(`auth: {anonymous: true}
providers:
  p-bad: {dialect: openai, base_url: %q, api_key: sk-secret}
  p-good: {dialect: openai, base_url: %q, api_key: sk-secret}
candidates:
  - {id: bad, provider: p-bad, model: m, timeouts: %s}
  - {id: good, provider: p-good, model: m, timeouts: %s}
`, bad, good.URL+"/v1", clocks, clocks), Options{})
	return l, good
}

// callers ask a model at once, n of them; each gives what became of the body.
type callers struct {
	reached atomic.Int32 // whose request is written
	spoken  atomic.Int32 // who got the first bytes of an answer
	back    atomic.Int32 // who have an end
	all     sync.WaitGroup
	bodies  chan string
}

func (l *lab) callers(ctx context.Context, client *http.Client, model string) *callers {
	c := &callers{bodies: make(chan string, hanging)}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { c.reached.Add(1) },
	})
	question := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"q"}]}`, model)
	for range hanging {
		c.all.Go(func() {
			defer c.back.Add(1)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/v1/chat/completions", strings.NewReader(question))
			if err != nil {
				return
			}
			res, err := client.Do(req)
			if err != nil {
				return
			}
			defer func() { _ = res.Body.Close() }()
			first := make([]byte, 1)
			if _, err := io.ReadFull(res.Body, first); err == nil {
				c.spoken.Add(1)
			}
			rest, _ := io.ReadAll(res.Body) // one that is cut lacks its end
			c.bodies <- string(first) + string(rest)
		})
	}
	return c
}

func TestHangingProviderDelaysNobodyElse(t *testing.T) {
	ends := func(end providertest.End, chunks ...string) func(*testing.T) (string, func(*callers) int) {
		return func(t *testing.T) (string, func(*callers) int) {
			u := providertest.Start(t, providertest.OpenAI, providertest.Ends(end, chunks...))
			return u.URL + "/v1", func(*callers) int { return u.Seen().Open }
		}
	}
	for _, tt := range []struct {
		name string
		// bad gives the address of a provider, and how many of its callers are known to hang there.
		bad func(*testing.T) (base string, hung func(*callers) int)
	}{
		{"connect", func(t *testing.T) (string, func(*callers) int) {
			return "http://" + full(t) + "/v1", func(c *callers) int { return int(c.reached.Load()) }
		}},
		{"TLS handshake", func(t *testing.T) (string, func(*callers) int) {
			addr, conns := mute(t)
			return "https://" + addr + "/v1", func(*callers) int { return conns() }
		}},
		{"headers", ends(providertest.EndHangHeaders)},
		{"first token", ends(providertest.EndHang)},
		{"mid-stream", func(t *testing.T) (string, func(*callers) int) {
			base, _ := ends(providertest.EndHang, "a")(t)
			return base, func(c *callers) int { return int(c.spoken.Load()) }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, hung := tt.bad(t)
			l, good := between(t, base)
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)

			ctx, leave := context.WithCancel(t.Context())
			bad := l.callers(ctx, client, "bad")
			defer bad.all.Wait()
			defer leave()
			require.Eventually(t, func() bool { return hung(bad) == hanging }, callerLimit, time.Millisecond)

			limit, done := context.WithTimeout(t.Context(), callerLimit) // so that a fault shows as one
			defer done()
			healthy := l.callers(limit, client, "good")
			healthy.all.Wait()
			require.Zero(t, bad.back.Load(), "who hung has an end before the healthy had their answers")
			require.Equal(t, hanging, hung(bad), "who still hang")

			close(healthy.bodies)
			answers := 0
			for body := range healthy.bodies {
				require.Contains(t, body, `"content":"fine"`)
				require.Contains(t, body, "data: [DONE]")
				answers++
			}
			require.Equal(t, hanging, answers)
			require.Equal(t, hanging, good.Calls())
		})
	}
}
