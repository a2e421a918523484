package api

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/routing"
)

func TestPathsAndMethods(t *testing.T) {
	h := (&fake{steps: hello()}).open()
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", completions, 200, ""},
		{"GET", completions, 405, "POST"},
		{"OPTIONS", completions, 405, "POST"},
		{"GET", completions + "/chatcmpl-1", 404, ""},
		{"DELETE", completions + "/chatcmpl-1", 405, "GET, HEAD"},
		{"GET", "/v1/models", 200, ""},
		{"HEAD", "/v1/models", 200, ""},
		{"POST", "/v1/models", 405, "GET, HEAD"},
		{"GET", "/v1/models/a", 200, ""},
		{"GET", "/v1/models/none", 404, ""},
		{"GET", "/v1/status", 200, ""},
		{"PUT", "/v1/status", 405, "GET, HEAD"},
		{"GET", "/healthz", 200, ""},
		{"POST", "/healthz", 405, "GET, HEAD"},
		{"GET", "/", 404, ""},
		{"GET", "/v1/nowhere", 404, ""},
		{"POST", "/v1//chat/completions", 404, ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			w := call(h, c.method, c.path, ask(""))
			require.Equal(t, c.allow, w.Header().Get("Allow"))
			require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
			if c.status >= 400 {
				requireError(t, w, c.status)
				return
			}
			require.Equal(t, c.status, w.Code)
			require.True(t, gjson.Valid(w.Body.String()))
		})
	}
}

func TestHealthz(t *testing.T) {
	ready := false
	h := New(Settings{Keys: []Key{key("a", "k")}, Version: "v1"}, Deps{Ready: func() bool { return ready }})
	require.Equal(t, http.StatusServiceUnavailable, call(h, "GET", "/healthz", "").Code)
	ready = true
	w := call(h, "GET", "/healthz", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"status":"ok","version":"v1"}`, w.Body.String())
}

func TestModels(t *testing.T) {
	h := (&fake{}).with(Settings{Keys: []Key{key("team-a", "k")}})
	list := gjson.Parse(call(h, "GET", "/v1/models", "", "Authorization", "Bearer k").Body.String())
	require.Equal(t, "list", list.Get("object").Str)
	require.Equal(t, `["a","of-team-a"]`, list.Get("data.#.id").Raw)
	require.Equal(t, `["model","model"]`, list.Get("data.#.object").Raw)
	require.Equal(t, "p-a", list.Get("data.0.owned_by").Str)
	require.Positive(t, list.Get("data.0.created").Int())

	one := gjson.Parse(call(h, "GET", "/v1/models/of-team-a", "", "Authorization", "Bearer k").Body.String())
	require.Equal(t, "of-team-a", one.Get("id").Str)
	e := requireError(t, call(h, "GET", "/v1/models/of-team-b", "", "Authorization", "Bearer k"), 404)
	require.Equal(t, "model_not_found", e.Get("code").Str)
}

func TestStatus(t *testing.T) {
	w := call((&fake{}).open(), "GET", "/v1/status", "")
	require.JSONEq(t, `{
		"version": "v1", "config": "c0ffee",
		"candidates": [
			{"id": "a", "provider": "p-a", "model": "m", "priority": 1, "weight": 7, "supports_thinking": false,
			 "share": 0.7, "drawn": 0.6988,
			 "breaker": {"state": "open", "generation": 4, "until": "2001-09-09T01:46:40Z", "why": "timeout",
			  "mode": "hybrid", "local": true, "sample": {"began": "2001-09-09T01:46:30Z", "calls": 20, "ok": 3, "failed": 16, "slow": 2}}},
			{"id": "b", "provider": "", "model": "", "priority": 0, "weight": 0, "supports_thinking": false,
			 "skipped": "no_client", "breaker": {"state": "closed", "generation": 0, "mode": "consecutive"}}],
		"chains": [{"name": "a", "primary": "a", "fallbacks": [
			{"model": "b", "on_timeout": false, "on_status": [], "max_retries": 0}, {"model": "c"}]}]
	}`, w.Body.String())
	require.NotContains(t, w.Body.String(), "secret")
}

func TestPanics(t *testing.T) {
	routed := func(steps ...step) *fake { return &fake{steps: steps} }
	broken := func(context.Context, *routing.Request) *routing.Answer { panic("SECRET prompt") }
	first := data(`{"role":"assistant","content":"a"}`, "")
	for _, c := range []struct {
		name     string
		fake     *fake
		body     string
		streamed bool // something went out before
	}{
		{"router", &fake{answer: broken}, ask(""), false},
		{"router, stream", &fake{answer: broken}, ask(`"stream":true`), false},
		{"JSON", routed(first, step{panic: "SECRET prompt"}), ask(""), false},
		{"stream", routed(first, step{panic: "SECRET prompt"}), ask(`"stream":true`), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			var got []finish
			h := New(Settings{Anonymous: true}, Deps{
				Router: c.fake,
				Log:    slog.New(slog.NewTextHandler(&log, nil)),
				Finished: func(_ context.Context, req *routing.Request, trace routing.Trace, done Done) {
					got = append(got, finish{req, trace, done})
				},
			})
			w := post(h, c.body)
			if c.streamed {
				e, err := strict(w.Body.String(), false)
				require.NoError(t, err, w.Body.String())
				require.Equal(t, "internal_error", e.failure["code"])
				require.Equal(t, "a", e.text)
			} else {
				require.Equal(t, "internal_error", requireError(t, w, 500).Get("code").Str)
			}
			require.Contains(t, log.String(), "panic in a handler")
			require.NotContains(t, log.String()+w.Body.String(), "SECRET")
			require.Len(t, got, 1)
			require.True(t, got[0].done.Panicked)
			require.False(t, got[0].done.Complete)
			require.Equal(t, got[0].req.RouteID, got[0].trace.RouteID)
			if c.fake.answer == nil {
				require.Positive(t, c.fake.source.closed)
			}
		})
	}
}

func TestPanicNamesOnlyRuntimeErrors(t *testing.T) {
	defer func() {
		require.Contains(t, describe(recover()), "index out of range")
		require.Equal(t, "a value of type string", describe("SECRET"))
	}()
	var none []int
	_ = none[len(none)]
}

func TestAbortGoesOn(t *testing.T) {
	h := (&fake{answer: func(context.Context, *routing.Request) *routing.Answer { panic(http.ErrAbortHandler) }}).open()
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { post(h, ask("")) })
}

// halfway is a writer that panics in the middle of a body.
type halfway struct{ *httptest.ResponseRecorder }

func (h halfway) Write(b []byte) (int, error) {
	_, _ = h.ResponseRecorder.Write(b[:len(b)/2])
	panic("boom")
}

func TestHalfWrittenBodyIsCut(t *testing.T) {
	w := halfway{httptest.NewRecorder()}
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		(&fake{steps: hello()}).open().ServeHTTP(w, httptest.NewRequest("POST", completions, strings.NewReader(ask(""))))
	})
}

func TestTooLarge(t *testing.T) {
	f := &fake{steps: hello()}
	server := httptest.NewServer(f.with(Settings{Anonymous: true, MaxBody: 1000}))
	defer server.Close()
	big := `{"messages":[],"pad":"` + strings.Repeat("x", 20<<20) + `"}`
	for name, body := range map[string]io.Reader{
		"with a length":    strings.NewReader(big),
		"without a length": io.MultiReader(strings.NewReader(big)),
		"just above":       strings.NewReader(big[:1001]),
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := http.Post(server.URL+completions, "application/json", body)
			require.NoError(t, err)
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
			require.Equal(t, "request_too_large", gjson.GetBytes(got, "error.code").Str)
			require.True(t, resp.Close)
		})
	}
	require.Empty(t, f.requests)

	exact := ask(`"pad":"` + strings.Repeat("x", 900) + `"`)
	resp, err := http.Post(server.URL+completions, "text/plain", strings.NewReader(exact+strings.Repeat(" ", 1000-len(exact))))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// TestExpectContinue shows that a client which asks before it sends is refused without sending.
func TestExpectContinue(t *testing.T) {
	server := httptest.NewServer((&fake{}).with(Settings{Anonymous: true, MaxBody: 10}))
	defer server.Close()
	sent := &counter{Reader: strings.NewReader(strings.Repeat("x", 1<<20))}
	req, err := http.NewRequest("POST", server.URL+completions, sent)
	require.NoError(t, err)
	req.ContentLength = 1 << 20
	req.Header.Set("Expect", "100-continue")
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: 1 << 40}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Zero(t, sent.n)
}

type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

func TestCompressedBody(t *testing.T) {
	requireError(t, post((&fake{}).open(), ask(""), "Content-Encoding", "gzip"), http.StatusUnsupportedMediaType)
}

func TestBodyThatBreaksOff(t *testing.T) {
	w := httptest.NewRecorder()
	(&fake{}).open().ServeHTTP(w, httptest.NewRequest("POST", completions, iotest.ErrReader(io.ErrUnexpectedEOF)))
	requireError(t, w, 400)
}

// clocked notes the deadlines that are set, in seconds from now; 0 takes one back.
type clocked struct {
	*httptest.ResponseRecorder
	read, write []float64
}

func (c *clocked) SetReadDeadline(t time.Time) error  { return note(&c.read, t) }
func (c *clocked) SetWriteDeadline(t time.Time) error { return note(&c.write, t) }

func note(into *[]float64, t time.Time) error {
	if t.IsZero() {
		*into = append(*into, 0)
	} else {
		*into = append(*into, time.Until(t).Seconds())
	}
	return nil
}

// TestDeadlines shows that a caller who sends or takes nothing more doesn't keep us for ever, and that one who is
// slow is given more time for each piece.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := data(`{"content":"`+strings.Repeat("x", 150<<10)+`"}`, "")
		slow.wait = 50 * time.Second
		for mode, want := range map[string]int{"": 3, streaming: 2} { // pieces of 64 KiB; renewals
			w := &clocked{ResponseRecorder: httptest.NewRecorder()}
			f := &fake{steps: []step{data(`{"role":"assistant"}`, ""), slow, data(`{}`, "stop")}}
			f.open().ServeHTTP(w, httptest.NewRequest("POST", completions, strings.NewReader(ask(mode))))
			require.Equal(t, []float64{5, 60, 0}, w.read)
			require.Len(t, w.write, want)
			for _, d := range w.write {
				require.InDelta(t, 60, d, 1)
			}
		}
	})
}

// TestBodyThatNobodyWants shows that a refusal comes also to a caller who sends half a body and then nothing: the
// server reads on before it answers, and would for ever.
func TestBodyThatNobodyWants(t *testing.T) {
	for head, status := range map[string]int{
		"POST " + completions + " HTTP/1.1": 401,
		"PUT " + completions + " HTTP/1.1":  405,
		"POST /v1/nothing HTTP/1.1":         404,
		"GET /healthz HTTP/1.1":             200,
		"POST " + completions + " HTTP/1.1\r\nX-Api-Key: k\r\nContent-Encoding: gzip": 415,
	} {
		t.Run(head, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, conn := net.Pipe()
				l := make(listener, 1)
				l <- conn
				defer close(l)
				defer client.Close()
				server := &http.Server{Handler: (&fake{}).with(Settings{Keys: []Key{key("a", "k")}})}
				go func() { _ = server.Serve(l) }() // until l is closed
				_, err := io.WriteString(client, head+"\r\nHost: h\r\nContent-Length: 9\r\n\r\n{")
				require.NoError(t, err)
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
				require.NoError(t, err)
				require.Equal(t, status, resp.StatusCode)
			})
		})
	}
}

// listener has the connections that were put into it.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (listener) Close() error   { return nil }
func (listener) Addr() net.Addr { return &net.UnixAddr{} }

// TestBodyThatNeverComes is a caller who sends half a body and then nothing.
func TestBodyThatNeverComes(t *testing.T) {
	r := httptest.NewRequest("POST", completions, iotest.ErrReader(os.ErrDeadlineExceeded))
	w := httptest.NewRecorder()
	(&fake{}).open().ServeHTTP(w, r)
	requireError(t, w, http.StatusRequestTimeout)
	require.Equal(t, "close", w.Header().Get("Connection"))
}
