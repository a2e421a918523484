package lambdahttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// safeBuffer takes what a server and its processes print.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// running is a server with this test binary as its bootstrap.
type running struct {
	t      *testing.T
	url    string
	client *http.Client
	output *safeBuffer
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, role string, s Server, env ...string) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &running{t: t, url: "http://" + l.Addr().String(), output: &safeBuffer{}, ended: make(chan error, 1)}
	r.client = &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	s.Bootstrap, err = os.Executable()
	require.NoError(t, err)
	s.Env = append(append(os.Environ(), env...), roleVariable+"="+role)
	s.Stdout, s.Stderr, s.Log = r.output, r.output, slog.New(slog.NewTextHandler(r.output, nil))
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- s.Run(ctx, l) }()
	t.Cleanup(r.stop)
	return r
}

// stop asks the server to end, and checks that it did so in good order; a second call does nothing.
func (r *running) stop() {
	if r.ended == nil {
		return
	}
	r.cancel()
	require.NoError(r.t, <-r.ended, "%s", r.output)
	r.ended = nil
	r.client.CloseIdleConnections()
}

func (r *running) do(method, path string, body io.Reader) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, body)
	require.NoError(r.t, err)
	resp, err := r.client.Do(req)
	require.NoError(r.t, err, "%s", r.output)
	r.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// get reads a whole answer; err is how its body ended.
func (r *running) get(path string) (status int, body string, err error) {
	r.t.Helper()
	resp := r.do(http.MethodGet, path, nil)
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func (r *running) echo(method, path string, body io.Reader) echoed {
	r.t.Helper()
	resp := r.do(method, path, body)
	require.Equal(r.t, 200, resp.StatusCode)
	require.Equal(r.t, []string{"a=1", "b=2"}, resp.Header["Set-Cookie"])
	require.Equal(r.t, "application/json", resp.Header.Get("Content-Type"))
	var e echoed
	require.NoError(r.t, json.NewDecoder(resp.Body).Decode(&e))
	return e
}

// gate is where a function tells how far it is, and waits to be let on.
type gate struct {
	url     string
	arrived chan string
	open    chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{arrived: make(chan string, 16), open: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.arrived <- r.FormValue("name")
		select {
		case <-g.open:
		case <-r.Context().Done():
		}
	}))
	g.url = url.QueryEscape(s.URL)
	t.Cleanup(s.Close)
	return g
}

func TestServerPassesRequestsOn(t *testing.T) {
	for _, role := range []string{"streamed", "buffered"} {
		t.Run(role, func(t *testing.T) {
			r := start(t, role, Server{}, "LAMBDAHTTP_TEST_OWN=mine", "AWS_REGION=eu-central-1")
			e := r.echo(http.MethodPost, "/echo?a=1&b=x%20y&a=2", strings.NewReader("héllo"))
			require.Equal(t, "POST", e.Method)
			require.Equal(t, "/echo?a=1&b=x%20y&a=2", e.URI)
			require.Equal(t, strings.TrimPrefix(r.url, "http://"), e.Host)
			require.Equal(t, "127.0.0.1:0", e.Remote)
			require.Equal(t, "héllo", e.Body)
			require.Equal(t, []string{"127.0.0.1"}, e.Header["X-Forwarded-For"])
			require.NotEmpty(t, e.Header.Get("X-Amzn-Trace-Id"))
			require.Len(t, e.RequestID, 36)
			require.Equal(t, "mine", e.Own, "the server's environment is handed on")
			require.Equal(t, "eu-central-1", e.Region, "and wins over Lambda's defaults")
			require.NotEmpty(t, e.Function)
			require.InDelta(t, 27_000, e.LeftMS, 1000, "30 s but for the reserve")

			again := r.echo(http.MethodPost, "/echo", bytes.NewReader([]byte{0xff, 0x00, 0xfe}))
			require.Equal(t, e.PID, again.PID)
			require.NotEqual(t, e.RequestID, again.RequestID)
			require.Equal(t, "\ufffd\x00\ufffd", again.Body, "three bytes, two of which aren't UTF-8: %q", again.Body)
		})
	}
}

func TestServerHandsCookiesOn(t *testing.T) {
	r := start(t, "streamed", Server{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/echo", nil)
	require.NoError(t, err)
	req.Header.Set("Cookie", "c=1; d=2")
	resp, err := r.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var e echoed
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&e))
	require.Equal(t, "c=1; d=2", e.Header.Get("Cookie"))
}

// The function makes each chunk only after the client has the one before: nothing on the way may hold one back.
func TestServerStreams(t *testing.T) {
	r, g := start(t, "streamed", Server{}), newGate(t)
	responded := make(chan *http.Response, 1)
	go func() { responded <- r.do(http.MethodGet, "/steps?gate="+g.url, nil) }()
	require.Equal(t, "step", <-g.arrived)
	g.open <- struct{}{}
	resp := <-responded
	buf := make([]byte, len("chunk 0"))
	for i, want := range []string{"chunk 0", "chunk 1", "chunk 2", "chunk 3"} {
		if i > 0 {
			require.Equal(t, "step", <-g.arrived)
			g.open <- struct{}{}
		}
		_, err := io.ReadFull(resp.Body, buf)
		require.NoError(t, err)
		require.Equal(t, want, string(buf))
	}
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Empty(t, rest)
}

// Gaps between chunks are compared with each other, not with a clock: a machine under load stretches them all.
func TestServerKeepsTheGaps(t *testing.T) {
	r := start(t, "streamed", Server{})
	resp := r.do(http.MethodGet, "/ticks?gap=150ms", nil)
	buf, times := make([]byte, 100), []time.Time{}
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			times = append(times, time.Now())
		}
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
	}
	require.Len(t, times, 5)
	total, even := times[4].Sub(times[0]), 0
	for i := range 4 {
		if share := float64(times[i+1].Sub(times[i])) / float64(total); share > 0.1 && share < 0.5 {
			even++
		}
	}
	require.GreaterOrEqual(t, even, 3, "gaps of %v", times)
}

func TestServerSurvivesFailures(t *testing.T) {
	r := start(t, "streamed", Server{})
	pid := r.echo(http.MethodGet, "/echo", nil).PID

	status, body, err := r.get("/panic")
	require.NoError(t, err)
	require.Equal(t, 500, status)
	requireErrorEnvelope(t, []byte(body), "internal_error")

	status, body, err = r.get("/panic-late")
	require.NoError(t, err)
	require.Equal(t, 200, status)
	event, ok := strings.CutPrefix(body, "data: 1\n\ndata: ")
	require.True(t, ok, "body %q", body)
	requireErrorEnvelope(t, []byte(event), "internal_error")
	require.Equal(t, pid, r.echo(http.MethodGet, "/echo", nil).PID, "a panic costs no process")
	require.Contains(t, r.output.String(), "error_type=Handler.Panic")

	status, body, err = r.get("/exit")
	require.NoError(t, err)
	require.Equal(t, 502, status)
	requireErrorEnvelope(t, []byte(body), "function_error")
	next := r.echo(http.MethodGet, "/echo", nil).PID
	require.NotEqual(t, pid, next, "a crashed function is started again")

	g := newGate(t)
	go func() { <-g.arrived; close(g.open) }()
	status, body, err = r.get("/exit-late?gate=" + g.url)
	require.Equal(t, 200, status)
	require.Equal(t, "half", body)
	require.Error(t, err, "an answer that is broken off must not look whole")
	require.NotEqual(t, next, r.echo(http.MethodGet, "/echo", nil).PID)
}

func TestServerKillsWhatOverruns(t *testing.T) {
	r := start(t, "streamed", Server{Timeout: time.Second})
	pid := r.echo(http.MethodGet, "/echo", nil).PID
	status, body, err := r.get("/hang")
	require.NoError(t, err)
	require.Equal(t, 504, status)
	requireErrorEnvelope(t, []byte(body), "function_timeout")

	status, body, err = r.get("/hang-late")
	require.Equal(t, 200, status)
	require.Equal(t, "half", body)
	require.Error(t, err)
	require.NotEqual(t, pid, r.echo(http.MethodGet, "/echo", nil).PID)
}

func TestServerAfterResponse(t *testing.T) {
	for _, role := range []string{"streamed", "buffered"} {
		t.Run(role, func(t *testing.T) {
			r, g := start(t, role, Server{}), newGate(t)
			status, body, err := r.get("/after?gate=" + g.url)
			require.NoError(t, err)
			require.Equal(t, 200, status)
			require.Equal(t, "answer", body, "the client has his last byte while the work waits at the gate")
			require.Equal(t, "work begins", <-g.arrived)

			second := make(chan string, 1)
			go func() {
				_, body, _ := r.get("/pass?name=second&gate=" + g.url)
				second <- body
			}()
			g.open <- struct{}{}
			require.Equal(t, "work ends", <-g.arrived, "before the next event")
			g.open <- struct{}{}
			require.Equal(t, "second", <-g.arrived)
			g.open <- struct{}{}
			require.Equal(t, "passed", <-second)
		})
	}
}

func TestServerDoesNotTellTheFunctionOfACallerWhoLeft(t *testing.T) {
	r, g := start(t, "streamed", Server{}), newGate(t)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/steps?gate="+g.url, nil)
	require.NoError(t, err)
	gone := make(chan error, 1)
	go func() {
		resp, err := r.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		gone <- err
	}()
	require.Equal(t, "step", <-g.arrived)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	for range 3 {
		g.open <- struct{}{}
		require.Equal(t, "step", <-g.arrived, "the function goes on")
	}
	g.open <- struct{}{}
	r.echo(http.MethodGet, "/echo", nil)
}

func TestServerInstances(t *testing.T) {
	r, g := start(t, "streamed", Server{Instances: 2}), newGate(t)
	bodies := make(chan string, 2)
	for _, name := range []string{"one", "two"} {
		go func() {
			_, body, _ := r.get("/pass?name=" + name + "&gate=" + g.url)
			bodies <- body
		}()
	}
	require.ElementsMatch(t, []string{"one", "two"}, []string{<-g.arrived, <-g.arrived}, "both at once")
	close(g.open)
	require.Equal(t, []string{"passed", "passed"}, []string{<-bodies, <-bodies})
}

func TestServerBodies(t *testing.T) {
	r := start(t, "streamed", Server{})
	for _, tt := range []struct {
		name   string
		body   []byte
		status int
	}{
		{"5.9 MB of text", bytes.Repeat([]byte("a"), 5_900_000), 200},
		{"above 6 MB", bytes.Repeat([]byte("a"), maxRequest+1), 413},
		{"above 6 MB as an event", bytes.Repeat([]byte{0xff}, 5_000_000), 413},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := r.do(http.MethodPost, "/echo", bytes.NewReader(tt.body))
			require.Equal(t, tt.status, resp.StatusCode)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			if tt.status != 200 {
				requireErrorEnvelope(t, body, "request_too_large")
			}
		})
	}
	status, body, err := r.get("/big?n=20000000")
	require.NoError(t, err)
	require.Equal(t, 200, status)
	require.Len(t, body, 20_000_000, "a streamed answer may be larger than 6 MB")
}

func TestServerReadsOtherAnswers(t *testing.T) {
	const envelope = `{"statusCode":201,"headers":{"content-type":"x/y"},"multiValueHeaders":{"x-two":["1","2"]},"body":"aGk=","isBase64Encoded":true}`
	for _, tt := range []struct {
		name, contentType, response string
		status                      int
		body, header                string
	}{
		{"an envelope", "application/json", envelope, 201, "hi", "x/y"},
		{"JSON without a status", "application/json", `{"answer":42}`, 200, `{"answer":42}`, "application/json"},
		{"not an object", "application/json", `"hello"`, 200, `"hello"`, "application/json"},
		{"an envelope of the wrong types", "application/json", `{"statusCode":"x"}`, 502, "", "application/json"},
		{"an impossible status", "application/json", `{"statusCode":42}`, 502, "", "application/json"},
		{"not base64", "application/json", `{"statusCode":200,"body":"!","isBase64Encoded":true}`, 502, "", "application/json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, "raw", Server{}, "LAMBDAHTTP_TEST_TYPE="+tt.contentType, "LAMBDAHTTP_TEST_RESPONSE="+tt.response)
			resp := r.do(http.MethodGet, "/", nil)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, tt.status, resp.StatusCode)
			require.Equal(t, tt.header, resp.Header.Get("Content-Type"))
			if tt.status == 502 {
				requireErrorEnvelope(t, body, "function_error")
			} else {
				require.Equal(t, tt.body, string(body))
			}
		})
	}
}

func TestServerReportsAFunctionsError(t *testing.T) {
	r := start(t, "failing", Server{})
	status, body, err := r.get("/")
	require.NoError(t, err)
	require.Equal(t, 502, status)
	requireErrorEnvelope(t, []byte(body), "function_error")
	require.Contains(t, r.output.String(), `"the function failed"`)
}

func TestServerGivesUp(t *testing.T) {
	for _, tt := range []struct {
		role     string
		attempts int
		code     int
		reason   string
	}{
		{"refusing", 1, 2, "exit status 2"},
		{"crashing", 3, 7, "exit status 7"},
		{"init-error", 3, 1, "Config.Missing"},
	} {
		t.Run(tt.role, func(t *testing.T) {
			r := start(t, tt.role, Server{Instances: 2})
			err := <-r.ended
			r.ended = nil
			var failed *StartError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, tt.attempts, failed.Attempts)
			require.Equal(t, tt.code, failed.ExitCode)
			require.Contains(t, failed.Error(), tt.reason)
		})
	}
}

func TestServerRefusesWhatIsNoProgram(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var failed *StartError
	require.ErrorAs(t, Server{Bootstrap: "nowhere", Log: slog.New(slog.DiscardHandler)}.Run(t.Context(), l), &failed)
	require.Equal(t, 1, failed.Attempts)
	require.Contains(t, failed.Reason, "no such file")
}

func TestServerStops(t *testing.T) {
	t.Run("asks politely", func(t *testing.T) {
		r := start(t, "polite", Server{})
		r.echo(http.MethodGet, "/echo", nil)
		r.stop()
		require.Contains(t, r.output.String(), "asked to stop")
	})
	t.Run("makes a stubborn one", func(t *testing.T) {
		r := start(t, "stubborn", Server{})
		pid := r.echo(http.MethodGet, "/echo", nil).PID
		r.stop()
		p, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.ErrorIs(t, p.Signal(syscall.Signal(0)), os.ErrProcessDone)
	})
	t.Run("lets answers and work after them end", func(t *testing.T) {
		r, g := start(t, "streamed", Server{}), newGate(t)
		_, _, err := r.get("/after?gate=" + g.url)
		require.NoError(t, err)
		require.Equal(t, "work begins", <-g.arrived)
		go func() {
			g.open <- struct{}{}
			g.open <- struct{}{}
		}()
		r.stop()
		require.Equal(t, "work ends", <-g.arrived)
	})
}

func TestFrontWaitsForAnInstanceOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &front{queue: make(chan *invocation), gone: make(chan struct{}), timeout: 30 * time.Second, log: slog.New(slog.DiscardHandler)}
		start, w := time.Now(), httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, 30*time.Second, time.Since(start))
		require.Equal(t, 429, w.Code)
		requireErrorEnvelope(t, w.Body.Bytes(), "concurrency_limit_exceeded")

		close(f.gone)
		w = httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, 502, w.Code)
	})
}
