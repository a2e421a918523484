package functions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/app"
	"holdfast/internal/lambdahttp"
)

const (
	instances = 50
	openTime  = 2 * time.Second
	every     = 500 * time.Millisecond // a caller asks
	outage    = 4 * time.Second        // of the table
	// aTrial is until when one comes: at the end of the open time, or, where the answer to the write that claimed one was
	// lost on a busy machine, at the end of its lease (5 s for the first token and 11 s more).
	aTrial = openTime + 20*time.Second
	// aRequest is how long one may take on a machine as busy as tests make it. The breaker's own share is at most 50 ms;
	// without its bounds a table that doesn't answer would hold requests for the whole outage.
	aRequest = outage / 2
)

// vendor is a model's server that counts the calls it is in.
type vendor struct {
	*httptest.Server
	mu           sync.Mutex
	status       int           // of its answers
	takes        time.Duration // until the answer
	now, most, n int           // calls: at the moment, at most at once, in all
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{status: http.StatusOK}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	v.mu.Lock()
	v.now++
	v.n++
	v.most = max(v.most, v.now)
	status, takes := v.status, v.takes
	v.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
	}
	v.mu.Lock()
	v.now-- // before the caller may know: afterwards another may begin at once
	v.mu.Unlock()
	if status != http.StatusOK {
		http.Error(w, `{"error":{"message":"down"}}`, status)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// becomes changes what it answers, and counts anew.
func (v *vendor) becomes(status int, takes time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status, v.takes, v.most, v.n = status, takes, v.now, 0
}

func (v *vendor) seen() (most, calls int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.most, v.n
}

// called waits until it was called.
func (v *vendor) called(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { _, calls := v.seen(); return calls > 0 }, aTrial, 5*time.Millisecond, "a trial")
}

// way is a TCP proxy before a server: it can be cut, and it can swallow what comes.
type way struct {
	to      string
	address string
	mu      sync.Mutex
	l       net.Listener
	conns   []net.Conn
	silent  bool
	all     sync.WaitGroup
}

func newWay(t *testing.T, to string) *way {
	w := &way{to: to, address: "127.0.0.1:0"}
	w.open(t)
	t.Cleanup(func() { w.cut(); w.all.Wait() })
	return w
}

func (w *way) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", w.address)
	require.NoError(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.l, w.address = l, l.Addr().String()
	w.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { w.carry(c) })
		}
	})
}

func (w *way) carry(c net.Conn) {
	defer c.Close()
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	w.conns = append(w.conns, c, far)
	w.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { w.copy(c, far) })
	w.copy(far, c)
	back.Wait()
}

func (w *way) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		silent := w.silent
		w.mu.Unlock()
		if !silent {
			_, _ = to.Write(buffer[:n])
		}
	}
}

// cut ends every connection and takes no more.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.l.Close()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

func (w *way) swallow(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = on
}

// journal is what the functions log.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// away counts how often a function held the table for away, and how many do.
func (j *journal) away() (ever, now int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	ever = strings.Count(j.text.String(), "breaker store is away")
	return ever, ever - strings.Count(j.text.String(), "breaker store is back")
}

// calmly does something and judges it. A function that holds the table for away has breakers of its own; where this
// machine is so busy that one does meanwhile, it proves nothing, and is done again.
func (j *journal) calmly(t *testing.T, do, judge func()) {
	t.Helper()
	for range 10 {
		require.Eventually(t, func() bool { _, now := j.away(); return now == 0 }, time.Minute, 50*time.Millisecond, "the table is held for away")
		before, _ := j.away()
		do()
		if after, _ := j.away(); after == before {
			judge()
			return
		}
		t.Log("this machine was too busy")
	}
	t.Fatal("this machine is too busy to tell")
}

// dynamo gives a table, the way to it, and the environment that leads there.
func dynamo(t *testing.T) (w *way, env []string) {
	t.Helper()
	endpoint := os.Getenv("HOLDFAST_TEST_DYNAMODB_URL")
	if endpoint == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") != "" {
			t.Fatal("HOLDFAST_TEST_DYNAMODB_URL is not set")
		}
		t.Skip("needs a DynamoDB API: make test brings one up and sets HOLDFAST_TEST_DYNAMODB_URL")
	}
	w = newWay(t, strings.TrimPrefix(endpoint, "http://"))
	table := fmt.Sprintf("functions-%d", time.Now().UnixNano())
	settings := map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": "http://" + w.address, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	}
	for name, value := range settings {
		t.Setenv(name, value)
		env = append(env, name+"="+value)
	}
	require.NoError(t, app.Migrate(t.Context(), app.Places{Table: table}, func(string) {}))
	return w, append(env, "HOLDFAST_TABLE="+table)
}

// load asks from as many callers as there are instances until it is stopped.
type load struct {
	url  string
	stop context.CancelFunc
	all  sync.WaitGroup
	mu   sync.Mutex
	got  []got
}

type got struct {
	by      string // the candidate that answered, where it was the only one called
	err     string
	took    time.Duration
	started time.Time
}

func newLoad(t *testing.T, url string) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{url: url, stop: stop}
	for n := range instances {
		l.all.Go(func() {
			pause(time.Duration(n) * every / instances) // they come one after another
			pace := time.NewTicker(every)
			defer pace.Stop()
			for ctx.Err() == nil {
				g := ask(url)
				l.mu.Lock()
				l.got = append(l.got, g)
				l.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-pace.C:
				}
			}
		})
	}
	t.Cleanup(func() { stop(); l.all.Wait() })
	return l
}

func ask(url string) got {
	g := got{started: time.Now()}
	res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		g.err = err.Error()
		return g
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	g.took = time.Since(g.started)
	if err != nil || res.StatusCode != http.StatusOK || !json.Valid(body) {
		g.err = fmt.Sprintf("%d %s %v", res.StatusCode, body, err)
	}
	g.by = res.Header.Get("Holdfast-Candidate")
	if attempts := res.Header.Get("Holdfast-Attempts"); attempts != "1" {
		g.by += " after others"
	}
	return g
}

// since gives what was asked after a time.
func (l *load) since(at time.Time) []got {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.got), func(g got) bool { return g.started.Before(at) })
}

// answeredBy waits until the last hundred requests were answered by one candidate.
func (l *load) answeredBy(t *testing.T, candidate string, within time.Duration) {
	t.Helper()
	from := time.Now()
	require.Eventually(t, func() bool {
		all := l.since(from)
		return len(all) >= 100 && !slices.ContainsFunc(all[len(all)-100:], func(g got) bool { return g.by != candidate })
	}, within, 50*time.Millisecond, "everything by %s", candidate)
}

// judge says how long requests took, and that every one was answered, by one of the candidates and in time.
func (l *load) judge(t *testing.T, what string, from time.Time, candidates ...string) {
	t.Helper()
	all := l.since(from)
	require.NotEmpty(t, all)
	took := make([]time.Duration, 0, len(all))
	for _, g := range all {
		require.Empty(t, g.err, what)
		require.Contains(t, candidates, g.by, what)
		took = append(took, g.took)
	}
	slices.Sort(took)
	t.Logf("%s: %d requests, median %s, 99%% %s, slowest %s", what, len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	require.Less(t, took[len(took)-1], aRequest, what)
}

// Fifty real functions share one table. A model dies and comes back: one trial at once, as the model sees it. The table
// goes away, in two ways, and comes back: nobody notices.
func TestFleetOfBootstraps(t *testing.T) {
	a, b := newVendor(t), newVendor(t)
	table, env := dynamo(t)
	dir := t.TempDir()
	build(t, dir, "chat")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chat", "holdfast.yaml"), []byte(fmt.Sprintf(`
auth: {anonymous: true}
breaker: {mode: hybrid, open_duration: %[3]s, max_open_duration: %[3]s}
providers: {pa: {dialect: openai, base_url: %[1]q}, pb: {dialect: openai, base_url: %[2]q}}
candidates:
  - {id: a, provider: pa, model: m, priority: 1, timeouts: {first_token: 5s}}
  - {id: b, provider: pb, model: m, priority: 2}
`, a.URL+"/v1", b.URL+"/v1", openTime)), 0o600))
	log := &journal{}
	l := newLoad(t, fleet(t, bootstrap(dir, "chat"), env, log))
	l.answeredBy(t, "a", 20*time.Second)

	began := time.Now()
	pause(2 * time.Second)
	l.judge(t, "healthy", began, "a")

	a.becomes(http.StatusInternalServerError, 0)
	l.answeredBy(t, "b", 20*time.Second)
	began = time.Now()
	log.calmly(t, func() {
		a.becomes(http.StatusInternalServerError, 400*time.Millisecond) // long enough for a second trial to meet the first
		a.called(t)
		pause(3*openTime + time.Second)
	}, func() {
		most, trials := a.seen()
		require.Equal(t, 1, most, "trials at once, of %d", trials)
	})
	l.judge(t, "the model is dead", began, "b", "b after others")

	log.calmly(t, func() {
		a.becomes(http.StatusInternalServerError, 0)
		l.answeredBy(t, "b", 20*time.Second)
		a.becomes(http.StatusOK, time.Second)
		a.called(t)
		pause(time.Second / 2) // in the middle of the call that will close the breaker
	}, func() {
		most, trials := a.seen()
		require.Equal(t, [2]int{1, 1}, [2]int{most, trials}, "one call closes it")
	})
	a.becomes(http.StatusOK, 0)
	l.answeredBy(t, "a", 20*time.Second)

	for name, away := range map[string]struct{ stop, start func() }{
		"the table is cut off":      {table.cut, func() { table.open(t) }},
		"the table answers nothing": {func() { table.swallow(true) }, func() { table.swallow(false); table.cut(); table.open(t) }},
	} {
		began = time.Now()
		away.stop()
		pause(outage)
		away.start()
		pause(2 * time.Second)
		l.judge(t, name, began, "a")
	}
	l.stop()
	l.all.Wait()
}

func pause(d time.Duration) { <-time.After(d) }

// fleet runs as many instances of a function behind one URL.
func fleet(t *testing.T, program string, env []string, log io.Writer) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := lambdahttp.Server{
		Bootstrap: program, Instances: instances, Env: start(ctx, "", env...).Env, Stdout: log, Stderr: log,
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String()
}
