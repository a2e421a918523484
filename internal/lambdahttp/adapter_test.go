package lambdahttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/require"
)

const getEvent = `{"version":"2.0","rawPath":"/","requestContext":{"http":{"method":"GET","sourceIp":"192.0.2.1"}}}`

// answer is what Lambda got: the prelude, the body, and the error that its trailer would tell.
type answer struct {
	Envelope
	body []byte
	err  error
	log  string
}

// streamed runs one event through Streamed, as aws-lambda-go does.
func streamed(t *testing.T, h http.HandlerFunc) answer {
	t.Helper()
	var log bytes.Buffer
	reply, err := Streamed(h, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})(t.Context(), json.RawMessage(getEvent))
	require.NoError(t, err)
	raw, readErr := io.ReadAll(reply)
	require.NoError(t, reply.Close())
	head, body, found := bytes.Cut(raw, make([]byte, 8))
	require.True(t, found, "no prelude in %q", raw)
	a := answer{body: body, err: readErr, log: log.String()}
	require.NoError(t, json.Unmarshal(head, &a.Envelope))
	return a
}

// buffered runs one event through Buffered.
func buffered(t *testing.T, event string, h http.HandlerFunc) answer {
	t.Helper()
	var log bytes.Buffer
	reply, err := Buffered(h, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})(t.Context(), json.RawMessage(event))
	require.NoError(t, err)
	raw, err := io.ReadAll(reply)
	require.NoError(t, err)
	require.NoError(t, reply.Close())
	a := answer{log: log.String()}
	require.NoError(t, json.Unmarshal(raw, &a.Envelope))
	_, a.body, err = decodeEnvelope(raw)
	require.NoError(t, err)
	return a
}

func requireErrorEnvelope(t *testing.T, body []byte, code string) {
	t.Helper()
	var e struct {
		Error map[string]any `json:"error"`
	}
	require.NoError(t, json.Unmarshal(body, &e), "body %q", body)
	require.Equal(t, code, e.Error["code"])
	require.NotEmpty(t, e.Error["message"])
	require.NotEmpty(t, e.Error["type"])
	require.Contains(t, e.Error, "param")
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		h       http.HandlerFunc
		status  int
		headers map[string]string
		cookies []string
		body    string // of a buffered answer
		padded  bool   // a streamed one gets a byte instead
	}{
		{name: "plain", h: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello")
		}, status: 200, headers: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, body: "hello"},
		{name: "status and headers", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Holdfast-Tier", "model")
			w.WriteHeader(418)
			_, _ = io.WriteString(w, "{}")
		}, status: 418, headers: map[string]string{"Content-Type": "application/json", "Holdfast-Tier": "model"}, body: "{}"},
		{name: "many values", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Vary"] = []string{"Origin", "Accept"}
			w.Header()["Set-Cookie"] = []string{"a=1; Path=/", "b=2"}
			w.Header().Set("Content-Type", "x/y")
			_, _ = io.WriteString(w, "x")
		}, status: 200, headers: map[string]string{"Content-Type": "x/y", "Vary": "Origin, Accept"}, cookies: []string{"a=1; Path=/", "b=2"}, body: "x"},
		{name: "hop by hop", h: func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{"Keep-Alive", "Transfer-Encoding", "Upgrade", "Content-Length", "Trailer", "X-Hop", "Trailer:X-Sum"} {
				w.Header()[name] = []string{"5"}
			}
			w.Header().Set("Connection", "close, x-hop")
			w.Header().Set("Content-Type", "x/y")
			_, _ = io.WriteString(w, "hello")
		}, status: 200, headers: map[string]string{"Content-Type": "x/y"}, body: "hello"},
		{name: "nothing at all", h: func(http.ResponseWriter, *http.Request) {}, status: 200, padded: true},
		{name: "status only", h: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
		}, status: 503, padded: true},
		{name: "no content", h: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			_, err := io.WriteString(w, "x")
			require.ErrorIs(t, err, http.ErrBodyNotAllowed)
		}, status: 204, padded: true},
		{name: "informational first", h: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(201)
			w.WriteHeader(500)
		}, status: 201, padded: true},
		{name: "headers after the first write", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "x/y")
			_, _ = io.WriteString(w, "x")
			w.Header().Set("X-Late", "1")
			w.Header().Set("Content-Type", "late")
		}, status: 200, headers: map[string]string{"Content-Type": "x/y"}, body: "x"},
		{name: "flush", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "x/y")
			require.NoError(t, http.NewResponseController(w).Flush())
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}, status: 200, headers: map[string]string{"Content-Type": "x/y"}, body: "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for kind, a := range map[string]answer{"streamed": streamed(t, tt.h), "buffered": buffered(t, getEvent, tt.h)} {
				require.Equal(t, tt.status, a.StatusCode, kind)
				require.Equal(t, tt.headers, a.Headers, kind)
				require.Equal(t, tt.cookies, a.Cookies, kind)
				require.NoError(t, a.err, kind)
				if tt.padded && kind == "streamed" {
					require.Len(t, a.body, 1, "a streamed answer has a byte")
				} else {
					require.Equal(t, tt.body, string(a.body), kind)
				}
			}
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	event := strings.Replace(getEvent, `"GET"`, `"HEAD"`, 1)
	h := func(w http.ResponseWriter, _ *http.Request) {
		n, err := io.WriteString(w, "hello")
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	require.Empty(t, buffered(t, event, h).body)
}

func TestPanics(t *testing.T) {
	const secret = "the prompt of a caller"
	sse := func(first string, p any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = io.WriteString(w, first)
			panic(p)
		}
	}
	for _, tt := range []struct {
		name   string
		h      http.HandlerFunc
		status int
		prefix string // of the body, before the error
		event  bool
		failed string // error type of the trailer
		logged bool
	}{
		{"before the first byte", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Holdfast-Tier", "model")
			panic(secret)
		}, 500, "", false, "", true},
		{"before the first byte, abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 500, "", false, "", false},
		{"before the first byte, Goexit", func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, 500, "", false, "", false},
		{"Goexit after an event", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: 1\n\n")
			runtime.Goexit()
		}, 200, "data: 1\n\n", true, "Handler.Aborted", false},
		{"invalid status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(42) }, 500, "", false, "", true},
		{"after an event", sse("data: 1\n\n", secret), 200, "data: 1\n\n", true, "Handler.Panic", true},
		{"inside an event", sse("data: 1", errors.New(secret)), 200, "data: 1\n\n", true, "Handler.Panic", true},
		{"abort after an event", sse("data: 1\n\n", http.ErrAbortHandler), 200, "data: 1\n\n", true, "Handler.Aborted", false},
		{"after flushed headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			panic(secret)
		}, 200, "", true, "Handler.Panic", true},
		{"inside JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"a":`)
			panic(secret)
		}, 200, `{"a":`, false, "Handler.Panic", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := streamed(t, tt.h)
			require.Equal(t, tt.status, a.StatusCode)
			rest, ok := strings.CutPrefix(string(a.body), tt.prefix)
			require.True(t, ok, "body %q", a.body)
			switch {
			case tt.status == 500:
				require.Equal(t, map[string]string{"Content-Type": "application/json"}, a.Headers)
				requireErrorEnvelope(t, []byte(rest), "internal_error")
			case tt.event:
				data, ok := strings.CutPrefix(rest, "data: ")
				require.True(t, ok && strings.HasSuffix(data, "\n\n"), "body %q", a.body)
				requireErrorEnvelope(t, []byte(data), "internal_error")
			default:
				require.Empty(t, rest)
			}
			var failure messages.InvokeResponse_Error
			require.Equal(t, tt.failed != "", errors.As(a.err, &failure), "trailer: %v", a.err)
			require.Equal(t, tt.failed, failure.Type)
			require.Equal(t, tt.logged, strings.Contains(a.log, "panicked"), "log %q", a.log)

			b := buffered(t, getEvent, tt.h)
			require.Equal(t, 500, b.StatusCode, "a buffered answer has sent nothing yet")
			requireErrorEnvelope(t, b.body, "internal_error")
			require.NotContains(t, a.log+b.log+string(a.body)+fmt.Sprint(a.err), secret)
		})
	}
}

func TestBufferedLimits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chunk  []byte
		times  int
		status int
		base64 bool
	}{
		{"text", []byte("héllo"), 1, 200, false},
		{"binary", []byte{0xff, 0, 0xfe}, 1, 200, true},
		{"the largest", bytes.Repeat([]byte("a"), maxAnswer/10), 10, 200, false},
		{"one byte more", bytes.Repeat([]byte("a"), maxAnswer/10+1), 10, 413, false},
		{"too large once quoted", bytes.Repeat([]byte("\x01"), 2_000_000), 1, 413, false},
		{"too large in base64", bytes.Repeat([]byte{0xff}, 5_000_000), 1, 413, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var refused error
			a := buffered(t, getEvent, func(w http.ResponseWriter, _ *http.Request) {
				for range tt.times {
					if _, err := w.Write(tt.chunk); err != nil {
						refused = err
					}
				}
			})
			require.Equal(t, tt.status, a.StatusCode)
			require.Equal(t, tt.base64, a.IsBase64Encoded)
			if tt.status == 200 {
				require.NoError(t, refused)
				require.Equal(t, bytes.Repeat(tt.chunk, tt.times), a.body)
			} else {
				requireErrorEnvelope(t, a.body, "response_too_large")
			}
		})
	}
}

func TestOldPayloadHasCookiesAsHeaders(t *testing.T) {
	a := buffered(t, `{"httpMethod":"GET","path":"/"}`, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
	})
	require.Empty(t, a.Cookies)
	require.Equal(t, map[string][]string{"Set-Cookie": {"a=1", "b=2"}}, a.MultiValueHeaders)
}

// Each write must be readable before the handler goes on: that is what streaming means.
func TestStreamedWritesArriveOneByOne(t *testing.T) {
	next := make(chan string)
	reply, err := Streamed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		for chunk := range next {
			_, _ = io.WriteString(w, chunk)
		}
	}), Options{})(t.Context(), json.RawMessage(getEvent))
	require.NoError(t, err)
	buf := make([]byte, 1024)
	n, err := reply.Read(buf)
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(buf[:n], make([]byte, 8)), "the prelude comes alone: %q", buf[:n])
	for _, chunk := range []string{"one", "two", "three"} {
		next <- chunk
		n, err := reply.Read(buf)
		require.NoError(t, err)
		require.Equal(t, chunk, string(buf[:n]))
	}
	close(next)
	_, err = reply.Read(buf)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, reply.Close())
}

func TestDeadlineKeepsAReserve(t *testing.T) {
	for _, tt := range []struct{ platform, handler time.Duration }{
		{60 * time.Second, 57 * time.Second},
		{30 * time.Second, 27 * time.Second},
		{4 * time.Second, 3600 * time.Millisecond},
		{0, 0},
	} {
		t.Run(tt.platform.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1"})
				if tt.platform > 0 {
					c, cancel := context.WithTimeout(ctx, tt.platform)
					defer cancel()
					ctx = c
				}
				check := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					deadline, ok := r.Context().Deadline()
					require.Equal(t, tt.platform > 0, ok)
					if ok {
						require.Equal(t, tt.handler, time.Until(deadline))
					}
					require.Equal(t, "r-1", RequestID(r.Context()))
				})
				whole, err := Buffered(check, Options{})(ctx, json.RawMessage(getEvent))
				require.NoError(t, err)
				require.NoError(t, whole.Close())
			})
		})
	}
	require.Empty(t, RequestID(t.Context()))
}

func TestCloseEndsTheHandler(t *testing.T) {
	ended := make(chan error, 1)
	reply, err := Streamed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		<-r.Context().Done()
		_, err := io.WriteString(w, "too late")
		ended <- err
	}), Options{})(t.Context(), json.RawMessage(getEvent))
	require.NoError(t, err)
	require.NoError(t, reply.Close())
	require.ErrorIs(t, <-ended, io.ErrClosedPipe)
}

// A chunk's way through the writer costs nothing of its own.
func TestWritesDoNotAllocate(t *testing.T) {
	w, chunk := newWriter(http.MethodPost, io.Discard), []byte("data: {}\n\n")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = w.Write(chunk)
		w.Flush()
	}))
}
