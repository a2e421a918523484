package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
	"holdfast/internal/routing/breaker"
)

// flushes is a caller who sees only what was flushed, and when.
type flushes struct {
	header  http.Header
	pending strings.Builder

	mu   sync.Mutex
	seen []string
	at   []time.Time
}

func (f *flushes) Header() http.Header         { return f.header }
func (f *flushes) WriteHeader(int)             {}
func (f *flushes) Write(b []byte) (int, error) { return f.pending.Write(b) }

func (f *flushes) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.at = append(f.seen, f.pending.String()), append(f.at, time.Now())
	f.pending.Reset()
}

func (f *flushes) text() string { return strings.Join(f.seen, "") }

// flushed plays a request to its end.
func flushed(h http.Handler, body string) *flushes {
	f := &flushes{header: http.Header{}}
	h.ServeHTTP(f, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	return f
}

// burst is a script whose steps without a wait are there already.
type burst struct{ *script }

func (b burst) Buffered() bool { return len(b.steps) > 0 && b.steps[0].wait == 0 }

func bursts(steps ...step) *fake {
	f := &fake{}
	f.answer = func(_ context.Context, req *routing.Request) *routing.Answer {
		f.source.steps = steps
		return routing.NewAnswer(modelTrace(req), burst{f.source})
	}
	return f
}

func TestFlushes(t *testing.T) {
	word := func(w string) step { return data(`{"content":"`+w+`"}`, "") }
	after := func(wait time.Duration, s step) step { s.wait = wait; return s }
	full := usage(`{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`)
	nothing := step{}
	failing := step{err: &providers.Error{Kind: providers.KindTimeout}}
	for _, c := range []struct {
		name  string
		more  string
		steps []step
		want  string // contents of each flush: its words, . for finish, u for usage, D for [DONE], ! for an error, : for a heartbeat
	}{
		{"a burst", streaming, []step{word("a"), word("b"), word("c"), data(`{}`, "stop")}, "abc. D"},
		{"a slow model", streaming, []step{word("a"), after(1, word("b")), after(1, word("c")), after(1, data(`{}`, "stop"))}, "a b c . D"},
		{"two bursts", streaming, []step{word("a"), word("b"), after(1, word("c")), word("d"), data(`{}`, "stop")}, "ab cd. D"},
		{"usage", withUsage, []step{word("a"), data(`{}`, "stop"), full}, "a. u D"},
		{"usage between", streaming, []step{word("a"), full, after(1, word("b")), data(`{}`, "stop")}, "a b. D"},
		{"nothing, then silence", streaming, []step{word("a"), nothing, after(1, word("b")), data(`{}`, "stop")}, "a b. D"},
		{"an error in the burst", streaming, []step{word("a"), word("b"), failing}, "ab!"},
		{"an error later", streaming, []step{word("a"), word("b"), after(1, failing)}, "ab !"},
		{"a heartbeat", streaming, []step{word("a"), after(20*time.Second, word("b")), data(`{}`, "stop")}, "a : b. D"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := bursts(c.steps...)
				got := flushed(f.open(), ask(c.more))
				require.Empty(t, got.pending.String(), "the end is flushed")
				require.Equal(t, c.want, strings.Join(marks(got.seen), " "))
				plain := &fake{steps: c.steps}
				want, have := post(plain.open(), ask(c.more)).Body.String(), got.text()
				require.Equal(t, unnamed(want), unnamed(have), "order and bytes are those of a source that doesn't tell")
			})
		})
	}
}

// unnamed is a stream without its route id.
func unnamed(s string) string {
	at := strings.Index(s, `"route_id":"`) + len(`"route_id":"`)
	return strings.ReplaceAll(s, s[at:at+strings.IndexByte(s[at:], '"')], "id")
}

// marks says what each flush brought.
func marks(flushes []string) (out []string) {
	for _, f := range flushes {
		mark := ""
		for event := range strings.SplitSeq(strings.TrimSuffix(f, "\n\n"), "\n\n") {
			mark += markOf(strings.TrimPrefix(event, "data: "))
		}
		out = append(out, mark)
	}
	return out
}

func markOf(event string) string {
	switch {
	case event == "[DONE]":
		return "D"
	case event[0] == ':':
		return ":"
	case gjson.Get(event, "error").Exists():
		return "!"
	case gjson.Get(event, "usage").Exists():
		return "u"
	case gjson.Get(event, "choices.0.finish_reason").Str != "":
		return "."
	}
	return gjson.Get(event, "choices.0.delta.content").Str
}

// through is a router over one OpenAI-compatible provider.
func through(tb testing.TB, url string, transport http.RoundTripper) *routing.Router {
	p, err := providers.New(providers.Settings{Name: "p", Dialect: "openai", BaseURL: url, Transport: transport})
	require.NoError(tb, err)
	return routing.New(routing.Settings{
		Candidates: []routing.Candidate{{
			ID: "a", Provider: "p", Model: "m", Client: p, Priority: 1, Weight: 1,
			Timeouts: routing.Timeouts{Connect: time.Second, Header: time.Minute, FirstToken: time.Minute, Idle: time.Minute},
		}},
		Budget: routing.Budget{Total: time.Minute, Reserve: time.Second},
	}, breaker.New(breaker.Settings{}, breaker.NewMemory(), slog.New(slog.DiscardHandler)), nil)
}

// words are n events of a provider, all right.
func words(from, n int) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		b.WriteString("data: " + chunkJSON(`{"content":"w`+strconv.Itoa(i)+` "}`, "") + "\n\n")
	}
	return b.String()
}

// A hundred events in one write of the provider become few flushes; events that come one by one are flushed each.
func TestABurstThroughAllLayers(t *testing.T) {
	const role, end = `{"role":"assistant","content":""}`, "data: [DONE]\n\n"
	next := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+chunkJSON(role, "")+"\n\n"+words(0, 100))
		for i := range 5 {
			_ = http.NewResponseController(w).Flush()
			<-next
			_, _ = io.WriteString(w, words(100+i, 1))
		}
		_, _ = io.WriteString(w, "data: "+chunkJSON(`{}`, "stop")+"\n\n"+end)
	}))
	defer up.Close()
	h := New(Settings{Anonymous: true}, Deps{Router: through(t, up.URL, nil)})
	f := &slowly{flushes: flushes{header: http.Header{}}, next: next}
	h.ServeHTTP(f, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(ask(streaming))))
	e := requireStrict(t, f.text(), false)
	var want strings.Builder
	for i := range 105 {
		want.WriteString("w" + strconv.Itoa(i) + " ")
	}
	require.Equal(t, want.String(), e.text)
	require.Contains(t, f.text(), words(1, 99), "the very bytes")
	require.Empty(t, f.pending.String())
	require.Less(t, f.burst, 34, "flushes for 100 events")
}

// slowly lets the provider go on only when the caller has seen all that the provider has sent.
type slowly struct {
	flushes
	next  chan struct{}
	sent  int // words that the provider was let send
	burst int // flushes until the first hundred were seen
}

func (s *slowly) Flush() {
	s.flushes.Flush()
	if s.sent == 0 {
		s.burst++
	}
	last := "w" + strconv.Itoa(99+s.sent) + " "
	if s.sent < 5 && strings.Contains(s.seen[len(s.seen)-1], last) {
		s.sent++
		s.next <- struct{}{}
	}
}
