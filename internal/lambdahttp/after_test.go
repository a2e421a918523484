package lambdahttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// adapters are both ways to run a handler, as aws-lambda-go sees them.
func adapters(h http.Handler, o Options) map[string]func(context.Context) (io.ReadCloser, error) {
	return map[string]func(context.Context) (io.ReadCloser, error){
		"streamed": func(ctx context.Context) (io.ReadCloser, error) {
			return Streamed(h, o)(ctx, json.RawMessage(getEvent))
		},
		"buffered": func(ctx context.Context) (io.ReadCloser, error) {
			return Buffered(h, o)(ctx, json.RawMessage(getEvent))
		},
	}
}

func TestAfterResponseRunsAtClose(t *testing.T) {
	var order []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		require.True(t, AfterResponse(r.Context(), func(context.Context) { order = append(order, "work") }))
	})
	for name, run := range adapters(h, Options{}) {
		t.Run(name, func(t *testing.T) {
			order = nil
			reply, err := run(t.Context())
			require.NoError(t, err)
			_, err = io.ReadAll(reply)
			require.NoError(t, err)
			order = append(order, "last byte")
			require.NoError(t, reply.Close())
			require.NoError(t, reply.Close())
			require.Equal(t, []string{"last byte", "work"}, order, "after the last byte, and once")
		})
	}
}

func TestAfterResponseBudget(t *testing.T) {
	for _, tt := range []struct {
		name               string
		platform           time.Duration // 0: none
		streamed, buffered time.Duration // -1: dropped
	}{
		{"plenty", time.Minute, 5 * time.Second, 2 * time.Second},
		{"no deadline", 0, 5 * time.Second, 2 * time.Second},
		{"little", 2500 * time.Millisecond, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"nothing", time.Second, -1, -1},
	} {
		for name, want := range map[string]time.Duration{"streamed": tt.streamed, "buffered": tt.buffered} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					require.Equal(t, want, workedFor(t, name, tt.platform, &log))
					require.Equal(t, want < 0, log.Len() > 0, "log %q", &log)
				})
			})
		}
	}
}

// workedFor is how long work may go on that never ends by itself; two pieces share the budget side by side.
func workedFor(t *testing.T, adapter string, platform time.Duration, log io.Writer) time.Duration {
	ctx := t.Context()
	if platform > 0 {
		c, cancel := context.WithTimeout(ctx, platform)
		defer cancel()
		ctx = c
	}
	worked := make(chan time.Duration, 2)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for range 2 {
			AfterResponse(r.Context(), func(ctx context.Context) {
				start := time.Now()
				<-ctx.Done()
				worked <- time.Since(start)
			})
		}
	})
	reply, err := adapters(h, Options{Log: slog.New(slog.NewTextHandler(log, nil))})[adapter](ctx)
	require.NoError(t, err)
	_, err = io.ReadAll(reply)
	require.NoError(t, err)
	require.NoError(t, reply.Close())
	close(worked)
	first, ok := <-worked
	if !ok {
		return -1
	}
	require.Equal(t, first, <-worked)
	return first
}

func TestAfterResponsePanics(t *testing.T) {
	var log bytes.Buffer
	done := false
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		AfterResponse(r.Context(), func(context.Context) { panic("the words of a caller") })
		AfterResponse(r.Context(), func(context.Context) { done = true })
	})
	reply, err := Buffered(h, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})(t.Context(), json.RawMessage(getEvent))
	require.NoError(t, err)
	require.NoError(t, reply.Close())
	require.True(t, done)
	require.Contains(t, log.String(), "work after the response panicked")
	require.NotContains(t, log.String(), "the words of a caller")
}

func TestAfterResponseElsewhere(t *testing.T) {
	require.False(t, AfterResponse(t.Context(), func(context.Context) { t.Error("ran") }))

	var late context.Context
	reply, err := Buffered(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { late = r.Context() }), Options{})(t.Context(), json.RawMessage(getEvent))
	require.NoError(t, err)
	require.NoError(t, reply.Close())
	require.False(t, AfterResponse(late, func(context.Context) { t.Error("ran") }), "the time for registering is over")
}
