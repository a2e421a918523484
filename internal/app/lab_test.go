package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/config"
	"holdfast/internal/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is every clock of a candidate in these tests.
const clock = time.Second

// lab is a whole Holdfast on loopback before scripted upstreams a, b, … in the order of priority.
type lab struct {
	t   testing.TB
	url string
	up  []*providertest.Upstream
	app *App
	log *locked
	// client is the callers' side; the zero client keeps few connections.
	client http.Client
}

// open starts Holdfast. more is added to the configuration as it stands.
func open(t testing.TB, more string, plans ...[]providertest.Behaviour) *lab {
	l := &lab{t: t, log: &locked{}}
	for _, plan := range plans {
		l.up = append(l.up, providertest.Start(t, providertest.OpenAI, plan...))
	}
	l.start(yamlOf(more, l.up), Options{})
	return l
}

// yamlOf is a configuration with one candidate an upstream, and more as it stands.
func yamlOf(more string, up []*providertest.Upstream) string {
	var providers, candidates strings.Builder
	for i, u := range up {
		id := string(rune('a' + i))
		fmt.Fprintf(&providers, "  p-%s: {dialect: openai, base_url: %q, api_key: sk-secret}\n", id, u.URL+"/v1")
		fmt.Fprintf(&candidates, "  - {id: %s, provider: p-%s, model: model-%s, priority: %d, timeouts: {connect: 1s, first_token: %s, idle: %s}}\n",
			id, id, id, i+1, clock, clock)
	}
	return "auth: {anonymous: true}\nproviders:\n" + providers.String() + "candidates:\n" + candidates.String() + more
}

// silent is the address of a listener that accepts and never answers.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var held []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range held {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

func (l *lab) start(yaml string, o Options) {
	path := filepath.Join(l.t.TempDir(), "holdfast.yaml")
	require.NoError(l.t, os.WriteFile(path, []byte(yaml), 0o600))
	cfg, _, err := config.Load(l.t.Context(), config.Source{Location: path})
	require.NoError(l.t, err)
	l.serve(cfg, o)
}

func (l *lab) serve(cfg *config.Config, o Options) {
	var err error
	o.Log = slog.New(slog.NewJSONHandler(l.log, nil))
	l.app, err = Open(l.t.Context(), cfg, o)
	require.NoError(l.t, err)
	srv := httptest.NewServer(l.app.Handler())
	l.url = srv.URL
	l.t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(l.t, l.app.Close(ctx))
	})
}

// reply is what a caller got.
type reply struct {
	status  int
	header  http.Header
	text    string
	finish  string
	done    bool     // [DONE] came
	failed  bool     // an error event, an error body or a body that broke off
	hung    bool     // the caller's own limit ended it
	configs []string // each time that metadata came
	meta    struct {
		Tier, Candidate, Chain, Rule, Config string
		Attempts                             []struct {
			Candidate, Outcome, Skipped string
			Cost                        *float64 `json:"cost_usd"`
			Estimated                   bool     `json:"cost_estimated"`
		}
		Cache struct {
			Rule, Question string
			Similarity     float64
			Age            int64 `json:"age_s"`
		}
	}
}

func (r reply) outcomes() (out []string) {
	for _, a := range r.meta.Attempts {
		if a.Skipped != "" {
			out = append(out, a.Candidate+":-"+a.Skipped)
		} else {
			out = append(out, a.Candidate+":"+a.Outcome)
		}
	}
	return out
}

// callerLimit is how long a caller waits for a whole answer.
const callerLimit = 15 * time.Second

func (l *lab) ask(stream bool, question string, headers ...string) reply {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), callerLimit)
	defer cancel()
	res, err := l.post(ctx, stream, question, headers...)
	if err != nil {
		return reply{failed: true, hung: errors.Is(err, context.DeadlineExceeded)}
	}
	defer func() { _ = res.Body.Close() }()
	out := reply{status: res.StatusCode, header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		out.events(res.Body)
		return out
	}
	body, err := io.ReadAll(res.Body)
	out.broke(err)
	out.take(body)
	return out
}

func (l *lab) post(ctx context.Context, stream bool, question string, headers ...string) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": question}}, "stream": stream})
	require.NoError(l.t, err)
	return l.send(ctx, string(body), headers...)
}

func (l *lab) send(ctx context.Context, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(l.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return l.client.Do(req)
}

func (r *reply) events(body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if data == "[DONE]" {
			r.done = true
		} else if ok {
			r.take([]byte(data))
		}
	}
	r.broke(lines.Err())
}

func (r *reply) broke(err error) {
	r.failed = r.failed || err != nil
	r.hung = r.hung || errors.Is(err, context.DeadlineExceeded)
}

// take reads a JSON answer or one chunk of a stream.
func (r *reply) take(data []byte) {
	var v struct {
		Error    json.RawMessage
		Holdfast json.RawMessage
		Choices  []struct {
			Message, Delta struct{ Content string }
			Finish         string `json:"finish_reason"`
		}
	}
	if json.Unmarshal(data, &v) != nil {
		r.failed = true
		return
	}
	if v.Holdfast != nil {
		r.meta.Attempts = nil
		_ = json.Unmarshal(v.Holdfast, &r.meta) // what isn't there fails the assertions on it
		r.configs = append(r.configs, r.meta.Config)
	}
	r.failed = r.failed || v.Error != nil
	for _, c := range v.Choices {
		r.text += c.Message.Content + c.Delta.Content
		if c.Finish != "" {
			r.finish = c.Finish
		}
	}
}

// locked makes a buffer safe for the log of concurrent requests.
type locked struct {
	mu sync.Mutex
	to bytes.Buffer
}

func (w *locked) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

func (w *locked) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.String()
}
