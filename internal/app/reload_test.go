package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/config"
	"holdfast/internal/providers/providertest"
)

// rolled is a lab whose configuration comes from a file that the test changes.
type rolled struct {
	*lab
	path string
}

// roll starts Holdfast with a file that it watches.
func roll(t *testing.T, yaml string, o Options) *rolled {
	r := &rolled{&lab{t: t, log: &locked{}}, filepath.Join(t.TempDir(), "holdfast.yaml")}
	r.write(yaml)
	o.Feed = config.NewFeed(config.Source{Location: r.path})
	c, _, err := o.Feed.Next(t.Context())
	require.NoError(t, err)
	r.serve(c, o)
	return r
}

// write replaces the file by one that its writer has left alone.
func (r *rolled) write(yaml string) {
	next := r.path + ".next"
	require.NoError(r.t, os.WriteFile(next, []byte(yaml), 0o600))
	require.NoError(r.t, os.Chtimes(next, time.Time{}, time.Now().Add(-time.Hour)))
	require.NoError(r.t, os.Rename(next, r.path))
}

// take writes a file and looks at it at once.
func (r *rolled) take(yaml string) {
	r.t.Helper()
	r.write(yaml)
	r.app.poll(r.t.Context())
}

func (r *rolled) version() string { return r.app.now.Load().config.Version }

// side is one of two configurations that have nothing in common. A busy machine is no outage to them.
func side(name, base string) string {
	return fmt.Sprintf(`auth: {anonymous: true}
breaker: {enabled: false}
cache: {mode: "off"}
providers: {p-%[1]s: {dialect: openai, base_url: %[2]q, api_key: sk-secret}}
candidates: [{id: %[1]s, provider: p-%[1]s, model: model-%[1]s, timeouts: {connect: 30s, first_token: 30s}}]
chains: [{name: chain-%[1]s, primary: %[1]s, fallbacks: []}]
rules: [{name: rule-%[1]s, when: 'messages > 0', use: {chain: chain-%[1]s}}]
`, name, base)
}

// slowly is a whole answer that takes a tenth of a second.
func slowly(text string) providertest.Behaviour {
	b := providertest.Says(strings.SplitAfter(text, " ")...)
	b.FirstToken, b.Gap = 20*time.Millisecond, 20*time.Millisecond
	return b
}

// 200 requests a second while the configuration changes all the time: every one is answered, wholly by one of the
// two, and none by what was refused.
func TestReloadUnderLoad(t *testing.T) {
	const text = "one two three four"
	a := providertest.Start(t, providertest.OpenAI, slowly("a "+text))
	b := providertest.Start(t, providertest.OpenAI, slowly("b "+text))
	sides := []string{side("a", a.URL+"/v1"), side("b", b.URL+"/v1")}
	r := roll(t, sides[0], Options{})
	transport := &http.Transport{MaxIdleConnsPerHost: 200}
	defer transport.CloseIdleConnections()
	r.client.Transport = transport
	versions := map[string]string{r.version(): "a"}
	r.take(sides[1])
	versions[r.version()] = "b"
	require.Len(t, versions, 2)

	const requests = 600
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var swaps, all sync.WaitGroup
	swaps.Go(func() {
		swap := time.NewTicker(50 * time.Millisecond)
		defer swap.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			r.take(append(sides, "colour: red\n")[i%3])
			<-swap.C
		}
	})
	answers := make(chan reply, requests)
	begin := time.Now()
	slots := make(chan struct{}, 100) // five times what is open at once; only a busy machine has to wait for one
	for i := range requests {
		<-time.After(time.Until(begin.Add(time.Duration(i) * time.Second / 200)))
		slots <- struct{}{}
		all.Go(func() {
			answers <- r.ask(i%2 == 0, "q")
			<-slots
		})
	}
	took := time.Since(begin)
	all.Wait()
	cancel()
	swaps.Wait()
	close(answers)
	of := map[string]int{}
	for got := range answers {
		require.False(t, got.failed, "%+v", got)
		require.Equal(t, 200, got.status)
		require.Equal(t, "model", got.meta.Tier)
		name := versions[got.meta.Config]
		require.NotEmpty(t, name, "%+v", got)
		require.Equal(t, name+" "+text, got.text)
		require.Equal(t, []string{name + ":ok"}, got.outcomes())
		require.Equal(t, []string{name, "rule-" + name, "chain-" + name}, []string{got.meta.Candidate, got.meta.Rule, got.meta.Chain})
		require.Equal(t, name, got.header.Get("Holdfast-Candidate"))
		for _, c := range got.configs {
			require.Equal(t, got.meta.Config, c, "first and last chunk")
		}
		of[name]++
	}
	t.Logf("%d requests in %s, %v, %d reloads", requests, took, of, strings.Count(r.log.String(), "configuration reloaded"))
	require.Equal(t, requests, of["a"]+of["b"])
	require.Greater(t, of["a"], 50)
	require.Greater(t, of["b"], 50)
	require.Greater(t, strings.Count(r.log.String(), "configuration reloaded"), 5)
}

// A stream that a reload overtakes ends as it began, and leaves no connection behind.
func TestAStreamKeepsItsConfiguration(t *testing.T) {
	going := make(chan struct{})
	conns := &counter{}
	up := conns.start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"begun "}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-going
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"ended"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	other := providertest.Start(t, providertest.OpenAI, providertest.Says("other"))
	r := roll(t, side("a", up), Options{})
	version := r.version()
	res, err := r.post(t.Context(), true, "q")
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	first := make([]byte, 1)
	_, err = io.ReadFull(res.Body, first)
	require.NoError(t, err)

	r.take(side("b", other.URL+"/v1"))
	require.Equal(t, "b", r.ask(true, "q").meta.Candidate)
	require.Equal(t, 1, conns.open(), "the old stream's own")
	close(going)
	var got reply
	got.events(io.MultiReader(bytes.NewReader(first), res.Body))
	require.Equal(t, "begun ended", got.text)
	require.True(t, got.done)
	require.Equal(t, version, got.meta.Config)
	require.Equal(t, "rule-a", got.meta.Rule)
	require.Eventually(t, func() bool { return conns.open() == 0 }, callerLimit, time.Millisecond)
}

// A request that a reload overtakes may still switch; the connection that it makes then is closed after it.
func TestASwitchAfterAReloadLeavesNothing(t *testing.T) {
	asked, going := make(chan struct{}), make(chan struct{})
	failing, healthy := &counter{}, &counter{}
	a := failing.start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-going
		w.WriteHeader(http.StatusInternalServerError)
	}))
	b := healthy.start(t, providertest.New(providertest.OpenAI))
	r := roll(t, fmt.Sprintf(`auth: {anonymous: true}
providers: {p-a: {dialect: openai, base_url: %q, api_key: sk-secret}, p-b: {dialect: openai, base_url: %q, api_key: sk-secret}}
candidates: [{id: a, provider: p-a, model: m, priority: 1}, {id: b, provider: p-b, model: m, priority: 2}]
`, a, b), Options{})
	answer := make(chan reply, 1)
	go func() { answer <- r.ask(false, "q") }()
	<-asked
	r.take(scripted("c"))
	require.Equal(t, "c", r.ask(false, "q").meta.Candidate)
	close(going)
	require.Equal(t, []string{"a:server_error", "b:ok"}, (<-answer).outcomes())
	require.Equal(t, 1, healthy.all)
	require.Eventually(t, func() bool { return failing.open()+healthy.open() == 0 }, callerLimit, time.Millisecond)
}

// counter counts a server's connections.
type counter struct {
	mu  sync.Mutex
	now map[net.Conn]bool
	all int
}

func (c *counter) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s {
	case http.StateNew:
		c.now[conn] = true
		c.all++
	case http.StateClosed:
		delete(c.now, conn)
	}
}

// start serves until the test's end, and gives the base URL.
func (c *counter) start(t *testing.T, h http.Handler) string {
	c.now = map[net.Conn]bool{}
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ConnState = c.state
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func (c *counter) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.now)
}

// A hundred reloads, each between requests, leave neither connections nor goroutines.
func TestReloadsLeaveNothing(t *testing.T) {
	conns := &counter{}
	up := conns.start(t, providertest.New(providertest.OpenAI))
	r := roll(t, side("a", up), Options{})
	require.Equal(t, "a", r.ask(true, "q").meta.Candidate)
	before := runtime.NumGoroutine()
	for i := range 100 {
		name := []string{"b", "a"}[i%2]
		r.take(side(name, up))
		require.Equal(t, name, r.ask(i%3 == 0, "q").meta.Candidate)
	}
	require.Eventually(t, func() bool { return conns.open() <= 1 && runtime.NumGoroutine() <= before+5 }, callerLimit, 10*time.Millisecond,
		"%d connections", conns.open())
	require.GreaterOrEqual(t, conns.all, 100, "each configuration has clients of its own")
}
