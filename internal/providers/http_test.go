package providers

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// testClient is a client with a transport that is closed at the test's end.
func testClient(t testing.TB, s Settings) *client {
	t.Helper()
	if s.Transport == nil {
		tr := newTransport()
		t.Cleanup(tr.CloseIdleConnections)
		s.Transport = tr
	}
	return newClient(s, "Authorization")
}

// serve is a server that is closed at the test's end.
func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// rawServer hands each connection to handle, with its number from 0, and closes it afterwards.
func rawServer(t testing.TB, handle func(n int, c net.Conn)) (url string, conns *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conns = new(atomic.Int32)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(conns.Add(1)) - 1
			go func() {
				defer c.Close()
				handle(n, c)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String(), conns
}

// readRequest reads one request off a connection.
func readRequest(c net.Conn) error {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestPostSendsHeadersAndKey(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings Settings
		auth     string
		header   string
		want     string
	}{
		{"bearer", Settings{APIKey: "k"}, "Authorization", "Authorization", "Bearer k"},
		{"no key, no header", Settings{}, "Authorization", "Authorization", ""},
		{"a header of its own", Settings{APIKey: "k"}, "Api-Key", "Api-Key", "k"},
		{"configured headers", Settings{Headers: map[string]string{"X-Team": "a"}}, "Authorization", "X-Team", "a"},
		{"configured headers win", Settings{APIKey: "k", Headers: map[string]string{"authorization": "x"}}, "Authorization", "Authorization", "x"},
		{"of the call", Settings{}, "Authorization", "Accept", "text/event-stream"},
		{"the type", Settings{}, "Authorization", "Content-Type", "application/json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			url := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get(tt.header) })
			tr := newTransport()
			defer tr.CloseIdleConnections()
			tt.settings.Transport = tr
			resp, err := newClient(tt.settings, tt.auth).post(t.Context(), url, nil, http.Header{"Accept": {"text/event-stream"}}, 0)
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, tt.want, got)
		})
	}
}

func TestPostTakesCredentialsOfTheURL(t *testing.T) {
	var user, password string
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { user, password, _ = r.BasicAuth() })
	resp, err := testClient(t, Settings{}).post(t.Context(), strings.Replace(url, "://", "://me:secret@", 1), nil, nil, 0)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, []string{"me", "secret"}, []string{user, password})

	_, err = testClient(t, Settings{}).post(t.Context(), "http://me:secret@127.0.0.1:x", nil, nil, 0)
	require.Equal(t, KindConnect, AsError(err).Kind)
	require.NotContains(t, err.Error(), "secret")
}

func TestPostFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		handle func(c net.Conn)
		want   Kind
		status int
	}{
		{"closed before a byte", func(net.Conn) {}, KindConnect, 0},
		{"closed after the request", func(c net.Conn) { _ = readRequest(c) }, KindConnect, 0},
		{"reset after the request", func(c net.Conn) { _ = readRequest(c); _ = c.(*net.TCPConn).SetLinger(0) }, KindConnect, 0},
		{"not HTTP", func(c net.Conn) { _ = readRequest(c); _, _ = io.WriteString(c, "SSH-2.0-secret\r\n\r\n") }, KindMalformed, 0},
		{"endless headers", func(c net.Conn) {
			_ = readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("secret", 64<<10)+"\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, KindMalformed, 0},
		{"an error's status", func(c net.Conn) {
			_ = readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 503 X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
		}, KindOverloaded, 503},
		{"an error cut in its body", func(c net.Conn) {
			_ = readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 429 X\r\nContent-Length: 100\r\n\r\n{\"err")
		}, KindRateLimited, 429},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := rawServer(t, func(_ int, c net.Conn) { tt.handle(c) })
			_, err := testClient(t, Settings{}).post(t.Context(), url, []byte("{}"), nil, 0)
			e := AsError(err)
			require.Equal(t, tt.want.String(), e.Kind.String(), "%v", err)
			require.Equal(t, tt.status, e.Status)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	t.Run("refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l.Close()
		_, err = testClient(t, Settings{}).post(t.Context(), "http://"+l.Addr().String(), nil, nil, time.Second)
		require.Equal(t, KindConnect, AsError(err).Kind)
	})
	t.Run("TLS towards HTTP", func(t *testing.T) {
		url := serve(t, func(http.ResponseWriter, *http.Request) {})
		_, err := testClient(t, Settings{}).post(t.Context(), strings.Replace(url, "http", "https", 1), nil, nil, 0)
		require.Equal(t, KindConnect, AsError(err).Kind)
	})
	t.Run("a certificate nobody knows", func(t *testing.T) {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		_, err := testClient(t, Settings{}).post(t.Context(), s.URL, nil, nil, 0)
		require.Equal(t, KindConnect, AsError(err).Kind)
	})
	t.Run("no such name", func(t *testing.T) {
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
		}}
		_, err := testClient(t, Settings{Transport: tr}).post(t.Context(), "http://nowhere", nil, nil, 0)
		require.Equal(t, KindConnect, AsError(err).Kind)
	})
}

func TestPostNeverFollowsARedirect(t *testing.T) {
	var calls atomic.Int32
	target := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, status) })
		_, err := testClient(t, Settings{APIKey: "secret"}).post(t.Context(), url, []byte("{}"), nil, 0)
		require.Equal(t, KindMalformed, AsError(err).Kind)
		require.Zero(t, AsError(err).Status)
	}
	require.Zero(t, calls.Load())
}

// hung is a transport whose dials end at the dialer's own limit; net/http goes on dialling for a cancelled request.
func hung(t testing.TB) *http.Transport {
	t.Cleanup(func() { <-time.After(time.Minute) }) // until the dials have ended
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		<-time.After(30 * time.Second)
		return nil, context.DeadlineExceeded
	}}
}

func TestPostConnectClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := testClient(t, Settings{Transport: hung(t)}).post(t.Context(), "http://x", nil, nil, 3*time.Second)
		require.Equal(t, KindTimeout, AsError(err).Kind)
		require.ErrorIs(t, err, errConnectClock)
		require.Zero(t, AsError(err).Status)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
	t.Run("the dialer's own limit is a clock too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, err := testClient(t, Settings{Transport: hung(t)}).post(t.Context(), "http://x", nil, nil, 0)
			require.Equal(t, KindTimeout, AsError(err).Kind)
		})
	})
}

// The connect clock is over once there is a connection: a slow answer is for other clocks.
func TestPostConnectClockStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := memory(func(c net.Conn) {
			if readRequest(c) == nil {
				<-time.After(time.Minute)
				_, _ = io.WriteString(c, okResponse)
			}
		})
		defer tr.CloseIdleConnections()
		resp, err := testClient(t, Settings{Transport: tr}).post(t.Context(), "http://x", nil, nil, time.Second)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "ok", string(body))
		resp.Body.Close()
	})
}

// memory is a transport whose connections are served by handle, in memory.
func memory(handle func(net.Conn)) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			handle(theirs)
		}()
		return ours, nil
	}}
}

var errBudget = errors.New("the budget is over")

func TestPostCancelled(t *testing.T) {
	silent := func(response string) func(testing.TB) *http.Transport {
		return func(testing.TB) *http.Transport {
			return memory(func(c net.Conn) {
				_ = readRequest(c)
				_, _ = io.WriteString(c, response)
				_, _ = io.Copy(io.Discard, c)
			})
		}
	}
	for name, transport := range map[string]func(testing.TB) *http.Transport{
		"connecting":             hung,
		"waiting for headers":    silent(""),
		"within an error's body": silent("HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errBudget) })
				_, err := testClient(t, Settings{Transport: transport(t)}).post(ctx, "http://x", []byte("{}"), nil, time.Minute)
				require.Equal(t, KindCanceled, AsError(err).Kind)
				require.ErrorIs(t, err, errBudget)
			})
		})
	}
	t.Run("within the body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tr := memory(func(c net.Conn) {
				_ = readRequest(c)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
				_, _ = io.Copy(io.Discard, c)
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			resp, err := testClient(t, Settings{Transport: tr}).post(ctx, "http://x", nil, nil, 0)
			require.NoError(t, err)
			defer resp.Body.Close()
			time.AfterFunc(time.Second, func() { cancel(errBudget) })
			_, err = io.ReadAll(resp.Body)
			require.Equal(t, KindCanceled, AsError(err).Kind)
			require.ErrorIs(t, err, errBudget)
		})
	})
}

func TestPostBodyCutIsTruncated(t *testing.T) {
	url, _ := rawServer(t, func(_ int, c net.Conn) {
		_ = readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
	})
	resp, err := testClient(t, Settings{}).post(t.Context(), url, nil, nil, 0)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.Equal(t, KindTruncated, AsError(err).Kind)
}

// keepAlive answers one request and then, when the next has come (or at once), closes the connection.
func keepAlive(waits bool) func(c net.Conn) {
	return func(c net.Conn) {
		_ = readRequest(c)
		_, _ = io.WriteString(c, okResponse)
		if waits {
			_ = readRequest(c)
		}
	}
}

// A connection that died while idle is replaced once, at once, whether its death shows before or after the request
// was written; a fresh one that dies is a failure.
func TestPostReplacesADeadIdleConnection(t *testing.T) {
	for _, tt := range []struct {
		name  string
		waits bool // the server takes the second request, and dies of it
		then  func(c net.Conn)
		conns int32
		want  Kind
	}{
		{"closed while idle", false, keepAlive(false), 2, KindNone},
		{"closed on the next request", true, keepAlive(false), 2, KindNone},
		{"and so is the fresh one", true, func(c net.Conn) { _ = readRequest(c) }, 2, KindConnect},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, conns := rawServer(t, func(n int, c net.Conn) {
				if n == 0 {
					keepAlive(tt.waits)(c)
				} else {
					tt.then(c)
				}
			})
			c := testClient(t, Settings{})
			require.NoError(t, readAll(c.post(t.Context(), url, []byte("{}"), nil, time.Second)))
			err := readAll(c.post(t.Context(), url, []byte("{}"), nil, time.Second))
			if tt.want == KindNone {
				require.NoError(t, err)
			} else {
				require.Equal(t, tt.want, AsError(err).Kind)
			}
			require.Equal(t, tt.conns, conns.Load())
		})
	}
}

// However many idle connections died, a call makes at most two tries.
func TestPostReplacesOnlyOnce(t *testing.T) {
	const idle = 4
	var first, after atomic.Int32
	together := make(chan struct{}) // closed when each connection has its request: no sooner is one idle
	url, _ := rawServer(t, func(n int, c net.Conn) {
		if n >= idle {
			_ = readRequest(c)
			after.Add(1)
			return
		}
		_ = readRequest(c)
		if first.Add(1) == idle {
			close(together)
		}
		<-together
		_, _ = io.WriteString(c, okResponse)
		if readRequest(c) == nil {
			after.Add(1)
		}
	})
	c := testClient(t, Settings{})
	errs := make(chan error, idle)
	for range idle {
		go func() { errs <- readAll(c.post(context.Background(), url, []byte("{}"), nil, 0)) }()
	}
	for range idle {
		require.NoError(t, <-errs)
	}
	err := readAll(c.post(t.Context(), url, []byte("{}"), nil, 0))
	require.Equal(t, KindConnect, AsError(err).Kind)
	require.Equal(t, int32(2), after.Load(), "requests that reached the server")
}

func readAll(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

func TestPostReadsGzip(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.WriteHeader(500)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "data: a\n\n")
		_ = z.Flush()
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // the event has to come through before the end
	})
	resp, err := testClient(t, Settings{}).post(t.Context(), url, nil, nil, 0)
	require.NoError(t, err)
	defer resp.Body.Close()
	ev, err := newSSE(resp.Body).next()
	require.NoError(t, err)
	require.Equal(t, "a", string(ev.data))
}

func TestPostSpeaksHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	tr := newTransport()
	defer tr.CloseIdleConnections()
	tr.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	resp, err := testClient(t, Settings{Transport: tr}).post(t.Context(), s.URL, nil, nil, time.Second)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", string(body))
}

func TestPostReadsLittleOfAnError(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		for range 1 << 10 {
			if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
				return
			}
		}
	})
	_, err := testClient(t, Settings{}).post(t.Context(), url, nil, nil, 0)
	require.Equal(t, KindBadRequest, AsError(err).Kind)
	require.Len(t, AsError(err).Message, maxMessage)
}

func TestClientScrubsItsSecrets(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"error":{"message":"bad key pa55-word-of-ours and h3ader-of-ours","code":"pa55-word-of-ours"}}`)
	})
	c := testClient(t, Settings{APIKey: "pa55-word-of-ours", Headers: map[string]string{"X-Other": "h3ader-of-ours"}})
	_, err := c.post(t.Context(), url, nil, nil, 0)
	require.Equal(t, "bad key [removed] and [removed]", AsError(err).Message)
	require.Empty(t, AsError(err).Code)
}
