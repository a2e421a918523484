package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/config"
	"holdfast/internal/providers/providertest"
)

// within is how soon a changed file is taken.
const within = 2 * time.Second

func scripted(id string) string {
	return "auth: {anonymous: true}\ncandidates: [{id: " + id + ", provider: script, model: echo}]\n"
}

// The file's own watch takes a change within its time; what is half written or wrong changes nothing, and is told once.
func TestWatchedFile(t *testing.T) {
	r := roll(t, scripted("a"), Options{})
	first := r.version()
	begin := time.Now()
	require.NoError(t, os.WriteFile(r.path, []byte(scripted("b")), 0o600)) // in place, as editors do
	require.Eventually(t, func() bool { return r.ask(false, "q").meta.Candidate == "b" }, within, 10*time.Millisecond)
	t.Logf("taken after %s", time.Since(begin))
	second := r.version()
	require.Contains(t, r.log.String(), fmt.Sprintf(`"msg":"configuration reloaded","file":%q,"old":%q,"new":%q`, r.path, first, second))

	refused := func() int { return strings.Count(r.log.String(), `"level":"WARN","msg":"configuration refused"`) }
	require.NoError(t, os.WriteFile(r.path, []byte(scripted("c")+"colour: red\n"), 0o600))
	require.Eventually(t, func() bool { return refused() == 1 }, within, 10*time.Millisecond)
	require.Contains(t, r.log.String(), fmt.Sprintf(`"file":%q,"line":3,"reason":"unknown key \"colour\"","serving":%q`, r.path, second))
	for range 5 {
		r.app.poll(t.Context())
	}
	require.Equal(t, 1, refused(), "told once")
	require.Equal(t, "b", r.ask(false, "q").meta.Candidate)
	require.NoError(t, os.WriteFile(r.path, []byte(scripted("c")), 0o600))
	require.Eventually(t, func() bool { return r.ask(false, "q").meta.Candidate == "c" }, within, 10*time.Millisecond)
}

// What only shows while a state is built refuses a configuration too.
func TestRefusedByTheBuild(t *testing.T) {
	r := roll(t, scripted("a"), Options{Lambda: true})
	r.take("candidates: [{id: b, provider: script, model: echo}]\n")
	require.Equal(t, "a", r.ask(false, "q").meta.Candidate)
	require.Contains(t, r.log.String(), `"msg":"configuration refused","file":"`+r.path+`","line":0,"reason":"`)
	require.Contains(t, r.log.String(), "there are no keys")
	r.take(scripted("c"))
	require.Equal(t, "c", r.ask(false, "q").meta.Candidate)
}

// shelf serves a configuration by HTTP.
type shelf struct {
	text   atomic.Value
	status atomic.Int32
	asked  atomic.Int32
	url    string
}

func newShelf(t *testing.T, text string) *shelf {
	s := &shelf{}
	s.text.Store(text)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		if status := s.status.Load(); status != 0 {
			w.WriteHeader(int(status))
			return
		}
		_, _ = w.Write([]byte(s.text.Load().(string)))
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL + "/config"
	return s
}

// quiet is an App without a listener, for tests in virtual time.
type quiet struct {
	*App
	t   *testing.T
	log *locked
}

func newQuiet(t *testing.T, location string, lambda bool) *quiet {
	q := &quiet{t: t, log: &locked{}}
	feed := config.NewFeed(config.Source{Location: location})
	c, _, err := feed.Next(t.Context())
	require.NoError(t, err)
	q.App, err = Open(t.Context(), c, Options{Feed: feed, Lambda: lambda, Log: slog.New(slog.NewJSONHandler(q.log, nil))})
	require.NoError(t, err)
	return q
}

func (q *quiet) close() { require.NoError(q.t, q.Close(q.t.Context())) }

// get makes n requests at once and lets the work after them end.
func (q *quiet) get(path string, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			r := httptest.NewRequestWithContext(q.t.Context(), http.MethodGet, path, nil)
			q.Handler().ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	all.Wait()
	require.NoError(q.t, q.after.wait(q.t.Context()))
}

func (q *quiet) candidate() string { return q.now.Load().ids[0] }

// A URL is asked after answers, whatever they were, at most once an age and by one request at once.
func TestURLIsAskedByAge(t *testing.T) {
	for _, lambda := range []bool{false, true} {
		s := newShelf(t, scripted("a"))
		synctest.Test(t, func(t *testing.T) {
			q := newQuiet(t, s.url, lambda)
			defer q.close()
			pass(time.Hour)
			require.EqualValues(t, 1, s.asked.Load(), "no answer, no asking")
			s.text.Store(scripted("b"))
			q.get("/nowhere", 50)
			require.EqualValues(t, 2, s.asked.Load())
			require.Equal(t, "b", q.candidate())
			pass(askAge - time.Millisecond)
			q.get("/healthz", 50)
			require.EqualValues(t, 2, s.asked.Load(), "too young")
			pass(time.Millisecond)
			s.status.Store(503)
			q.get("/healthz", 50)
			require.EqualValues(t, 3, s.asked.Load())
			for range 5 {
				pass(askAge)
				q.get("/healthz", 1)
			}
			require.EqualValues(t, 8, s.asked.Load())
			require.Equal(t, 1, strings.Count(q.log.String(), "answers with status 503"), "told once")
			s.status.Store(0)
			s.text.Store("colour: red\n")
			pass(askAge)
			q.get("/healthz", 1)
			require.Equal(t, "b", q.candidate())
			s.text.Store(scripted("c"))
			pass(askAge)
			q.get("/healthz", 1)
			require.Equal(t, "c", q.candidate())
		})
	}
}

// A server that doesn't answer is given up, and meanwhile nobody else asks.
func TestURLThatHangs(t *testing.T) {
	hang := make(chan struct{})
	asked := make(chan struct{}, 10)
	var hanging atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if hanging.Load() {
			asked <- struct{}{}
			<-hang
		}
		_, _ = w.Write([]byte(scripted("a")))
	}))
	defer srv.Close()
	defer close(hang)
	q := newQuiet(t, srv.URL, false)
	defer q.close()
	hanging.Store(true)
	begin := time.Now()
	q.renewal.next.Store(1)
	first := make(chan struct{})
	go func() { defer close(first); q.get("/healthz", 1) }()
	<-asked
	q.renewal.next.Store(1)
	q.renew(t.Context())
	require.Less(t, time.Since(begin), askTime, "who comes meanwhile doesn't wait")
	<-first
	require.GreaterOrEqual(t, time.Since(begin), askTime)
	require.Empty(t, asked)
	require.Contains(t, q.log.String(), "no answer in time")
}

// A function's file is looked at after answers.
func TestFileOfAFunction(t *testing.T) {
	r := roll(t, scripted("a"), Options{Lambda: true})
	require.False(t, r.app.renewal.watched)
	r.write(scripted("b"))
	require.Eventually(t, func() bool { return r.ask(false, "q").meta.Candidate == "b" }, within, 10*time.Millisecond)
}

func TestUpkeepAsksToo(t *testing.T) {
	s := newShelf(t, scripted("a"))
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, s.url, true)
		defer q.close()
		s.text.Store(scripted("b"))
		pass(askAge)
		_, err := q.Upkeep(t.Context())
		require.NoError(t, err)
		require.Equal(t, "b", q.candidate())
	})
}

// Nothing is due where the configuration stays; a clock that is set back keeps nobody from asking.
func TestDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r renewal
		r.schedule()
		pass(time.Hour)
		require.False(t, r.due())
		r.waiting = &config.Config{}
		r.schedule()
		for range 2 {
			require.False(t, r.due())
			pass(healPause)
			require.True(t, r.due())
			require.False(t, r.due())
			r.schedule()
		}
		r.next.Store(time.Now().Add(time.Hour).UnixMilli())
		require.True(t, r.due())
	})
}

func keyFrom(id, up, path string) string {
	return fmt.Sprintf("auth: {anonymous: true}\nproviders: {p: {dialect: openai, base_url: %q, api_key: %q}}\n"+
		"candidates: [{id: %s, provider: p, model: m}]\n", up+"/v1", path, id)
}

// A new configuration waits for its parameters while the old one has all of its own; the newest of those that wait
// wins, and so does one that needs none.
func TestReloadWaitsForParameters(t *testing.T) {
	up := providertest.Start(t, providertest.OpenAI)
	srv := parameterStore(t, map[string]string{"/k/1": "sk-one-from-store", "/k/2": "sk-two-from-store"})
	away := func() { t.Setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1") }
	back := func() { t.Setenv("AWS_ENDPOINT_URL_SSM", srv.URL) }
	r := roll(t, keyFrom("a", up.URL, "ssm:/k/1"), Options{})
	answers := func(candidate string) {
		t.Helper()
		got := r.ask(false, "q")
		require.NoError(t, r.app.after.wait(t.Context()))
		require.Equal(t, []string{candidate + ":ok"}, got.outcomes())
	}
	answers("a")
	away()
	r.take(keyFrom("b", up.URL, "ssm:/k/2"))
	r.take(keyFrom("c", up.URL, "ssm:/k/2"))
	require.Equal(t, 2, strings.Count(r.log.String(), "configuration waits for its parameters"))
	answers("a")
	r.take(keyFrom("d", up.URL, "ssm:/k/1"))
	answers("d")
	r.app.renew(t.Context())
	answers("d")
	require.Zero(t, r.app.renewal.next.Load(), "nothing waits any more")

	r.take(keyFrom("e", up.URL, "ssm:/k/2"))
	r.take("colour: red\n")
	r.app.renew(t.Context())
	answers("d")
	back()
	r.app.renewal.next.Store(1)
	answers("d")
	answers("e")
	require.Equal(t, "Bearer sk-two-from-store", up.Seen().Header.Get("Authorization"))
	require.NotContains(t, r.log.String(), "from-store")
}

// A parameter store that doesn't answer leaves time to take the next change of the file within 2 s.
func TestSilentParametersHoldUpNoChange(t *testing.T) {
	up := providertest.Start(t, providertest.OpenAI)
	parameterStore(t, nil)
	r := roll(t, keyFrom("a", up.URL, "sk-of-the-file"), Options{})
	t.Setenv("AWS_ENDPOINT_URL_SSM", "http://"+silent(t))
	start := time.Now()
	r.take(keyFrom("b", up.URL, "ssm:/k/1"))
	require.Less(t, time.Since(start)+watchPeriod, 2*time.Second)
	require.Contains(t, r.log.String(), "configuration waits for its parameters")
	r.take(keyFrom("c", up.URL, "sk-of-the-file"))
	require.Equal(t, []string{"c:ok"}, r.ask(false, "q").outcomes())
}

// One that lacks parameters itself holds up nobody.
func TestReloadOfWhatIsNotWhole(t *testing.T) {
	up := providertest.Start(t, providertest.OpenAI)
	parameterStore(t, nil)
	t.Setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1")
	r := roll(t, keyFrom("a", up.URL, "ssm:/k/1"), Options{})
	require.Equal(t, []string{"a:-no_client"}, r.ask(false, "q").outcomes())
	r.take(keyFrom("b", up.URL, "ssm:/k/2"))
	require.Equal(t, []string{"b:-no_client"}, r.ask(false, "q").outcomes())
	r.take(keyFrom("c", up.URL, "sk-of-the-file"))
	require.Equal(t, []string{"c:ok"}, r.ask(false, "q").outcomes())
}

// Reloads and healing at once: they take turns, and the newest file is what serves in the end.
func TestTheNewestWins(t *testing.T) {
	up := providertest.Start(t, providertest.OpenAI)
	srv := parameterStore(t, map[string]string{"/k/1": "sk-one-from-store"})
	t.Setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1")
	r := roll(t, keyFrom("a", up.URL, "ssm:/k/1"), Options{})
	t.Setenv("AWS_ENDPOINT_URL_SSM", srv.URL)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				r.app.renew(ctx)
			}
		})
	}
	for i := range 20 {
		id := fmt.Sprint("c", i)
		r.take(keyFrom(id, up.URL, "ssm:/k/1"))
		require.Equal(t, id, r.app.now.Load().ids[0])
	}
	cancel()
	all.Wait()
	require.Equal(t, []string{"c19:ok"}, r.ask(false, "q").outcomes())
}

// pass lets virtual time go by.
func pass(d time.Duration) { <-time.After(d) }
