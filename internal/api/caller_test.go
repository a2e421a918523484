package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// deaf is a writer whose caller takes some bytes and then no more.
type deaf struct {
	*httptest.ResponseRecorder
	takes int
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.takes -= len(b); d.takes < 0 {
		return 0, errors.New("broken pipe")
	}
	return d.ResponseRecorder.Write(b)
}

func TestCallerThatTakesNoMore(t *testing.T) {
	steps := []step{data(`{"role":"assistant","content":"a"}`, "")}
	for range 100 {
		steps = append(steps, data(`{"content":"b"}`, ""))
	}
	for mode, more := range map[string]string{"stream": streaming, "usage": withUsage} {
		t.Run(mode, func(t *testing.T) {
			f := &fake{steps: append(steps, data(`{}`, "stop"))}
			w := &deaf{httptest.NewRecorder(), 1000}
			f.open().ServeHTTP(w, httptest.NewRequest("POST", completions, strings.NewReader(ask(more))))
			require.Greater(t, f.source.left(), 90)
			require.Equal(t, 1, f.source.closed)
			require.NotContains(t, w.Body.String(), "error")
			done := (<-f.finished).done
			require.False(t, done.Complete)
			require.NotEmpty(t, done.Text)
		})
	}
}

// TestHeartbeatFindsTheCallerGone shows that a silent model is left when a comment can't be written.
func TestHeartbeatFindsTheCallerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := data(`{"content":"b"}`, "")
		long.wait = time.Hour
		f := &fake{steps: []step{data(`{"role":"assistant","content":"a"}`, ""), long}}
		start := time.Now()
		w := &deaf{httptest.NewRecorder(), 600}
		f.open().ServeHTTP(w, httptest.NewRequest("POST", completions, strings.NewReader(ask(streaming))))
		require.Less(t, time.Since(start), 2*time.Minute)
	})
}

func TestCallerLeaves(t *testing.T) {
	for mode, more := range map[string]string{"json": ``, "stream": streaming} {
		for _, when := range []string{"before the answer", "in the answer"} {
			t.Run(mode+" "+when, func(t *testing.T) {
				left := make(chan struct{})
				steps := []step{data(`{"role":"assistant","content":"a"}`, ""), data(`{}`, "stop")}
				f := &fake{}
				f.answer = func(ctx context.Context, req *routing.Request) *routing.Answer {
					if when == "before the answer" || mode == "json" {
						close(left)
						<-ctx.Done()
						return fixed("", &routing.Failure{Status: 499, Message: "left"})(ctx, req)
					}
					steps[1].wait = time.Hour
					return routing.NewAnswer(modelTrace(req), &script{ctx: ctx, steps: steps})
				}
				server := httptest.NewServer(f.open())
				defer server.Close()
				ctx, cancel := context.WithCancel(t.Context())
				req, err := http.NewRequestWithContext(ctx, "POST", server.URL+completions, strings.NewReader(ask(more)))
				require.NoError(t, err)
				go func() {
					resp, err := server.Client().Do(req)
					if err != nil {
						return
					}
					defer resp.Body.Close()
					_, _ = bufio.NewReader(resp.Body).ReadString('\n')
					close(left)
				}()
				<-left
				cancel()
				done := (<-f.finished).done
				require.False(t, done.Complete)
				require.Equal(t, providers.KindCanceled, done.Err.Kind)
			})
		}
	}
}

// TestLive shows that each chunk is there when it is produced, over a real connection.
func TestLive(t *testing.T) {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	f := &fake{answer: func(_ context.Context, req *routing.Request) *routing.Answer {
		return routing.NewAnswer(modelTrace(req), &paced{turn: turn, left: 5})
	}}
	server := httptest.NewServer(f.open())
	defer server.Close()
	resp, err := http.Post(server.URL+completions, "application/json", strings.NewReader(ask(streaming)))
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 5 { // a chunk that were held back would block for ever
		if i > 0 {
			turn <- struct{}{}
		}
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(line, "data: {"), line)
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
}

// paced gives one chunk a turn.
type paced struct {
	turn chan struct{}
	left int
}

func (p *paced) Next() (providers.Chunk, error) {
	if p.left == 0 {
		return providers.Chunk{}, io.EOF
	}
	<-p.turn
	if p.left--; p.left == 0 {
		return data(`{"role":"assistant"}`, "stop").chunk, nil
	}
	return data(`{"role":"assistant","content":"a"}`, "").chunk, nil
}

func (p *paced) Close() {}

func TestManyAtOnce(t *testing.T) {
	f := &fake{answer: func(ctx context.Context, req *routing.Request) *routing.Answer {
		text, _ := json.Marshal(req.Messages[0].Text)
		steps := []step{data(`{"role":"assistant","content":""}`, "")}
		for range 50 {
			steps = append(steps, data(fmt.Sprintf(`{"content":%s}`, text), ""))
		}
		return routing.NewAnswer(modelTrace(req), &script{ctx: ctx, steps: append(steps, data(`{}`, "stop"))})
	}}
	h := f.open()
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			text := fmt.Sprintf("number %d.", i)
			body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"stream":%t}`, text, i%2 == 0)
			w := post(h, body)
			got := gjson.Get(w.Body.String(), "choices.0.message.content").Str
			if i%2 == 0 {
				e, err := strict(w.Body.String(), false)
				if err != nil {
					t.Error(err)
				}
				got = e.text
			}
			if got != strings.Repeat(text, 50) {
				t.Errorf("%d: %s", i, got)
			}
		})
	}
	wg.Wait()
	require.Len(t, f.finished, 40)
}
