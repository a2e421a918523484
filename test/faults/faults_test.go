// Package faults breaks a real Postgres under a real Holdfast whose models all fail, and looks at what callers get.
//
// Its one idea: the database is behind toxiproxy and is nobody else's, so it can be stopped, slowed, filled and locked
// while requests run. The module is one of its own so that toxiproxy is nobody else's dependency.
package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"holdfast/internal/app"
	"holdfast/internal/config"
	"holdfast/internal/providers/providertest"
)

const (
	deadline = 3 * time.Second         // of each request
	faulty   = 1200 * time.Millisecond // how long a fault lasts
	healing  = 20 * time.Second        // in which all is well again
	callers  = 8                       // at once
	known    = "How do bridges carry heavy loads?"
)

// services is a call of scripts/services postgres, which gives a server of our own.
func services(t *testing.T, args ...string) []string {
	t.Helper()
	c := exec.Command("../../scripts/services", append([]string{"postgres"}, args...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// lab is a Holdfast over a database that can be broken.
type lab struct {
	t      *testing.T
	folder string // of the server
	direct string // its URL, past the proxy
	proxy  *toxiproxy.Proxy
	up     *providertest.Upstream
	app    *app.App
	url    string
	holder *pgx.Conn // who holds a lock
}

func open(t *testing.T) *lab {
	l := &lab{t: t}
	made := services(t, "start")
	l.folder, l.direct = made[0], made[1]
	t.Cleanup(func() { services(t, "remove", l.folder) })
	at, err := url.Parse(l.direct)
	require.NoError(t, err)
	l.proxy = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "db", "127.0.0.1:0", at.Host)
	require.NoError(t, l.proxy.Start())
	t.Cleanup(l.proxy.Stop)
	at.Host = l.proxy.Listen
	places := app.Places{DatabaseURL: at.String()}
	require.NoError(t, app.Migrate(t.Context(), places, func(string) {}))

	l.up = providertest.Start(t, providertest.OpenAI)
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `auth: {anonymous: true}
breaker: {enabled: false}
retries: {last: 0}
providers: {p: {dialect: openai, base_url: %q, api_key: sk-secret}}
candidates: [{id: a, provider: p, model: m}]
`, l.up.URL+"/v1"), 0o600))
	cfg, _, err := config.Load(t.Context(), config.Source{Location: path})
	require.NoError(t, err)
	l.app, err = app.Open(t.Context(), cfg, app.Options{Places: places})
	require.NoError(t, err)
	srv := httptest.NewServer(l.app.Handler())
	l.url = srv.URL
	t.Cleanup(func() {
		srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, l.app.Close(ctx))
	})
	return l
}

// answer is what a caller got.
type answer struct {
	status int
	tier   string
	took   time.Duration
	err    error
}

func (l *lab) ask(question string, stream bool) answer {
	body, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": question}}, "stream": stream})
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Holdfast-Deadline-Ms", fmt.Sprint(deadline.Milliseconds()))
	start := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && (len(text) == 0 || stream && !bytes.Contains(text, []byte("data: [DONE]"))) {
		err = fmt.Errorf("not whole: %q", text)
	}
	return answer{res.StatusCode, res.Header.Get("Holdfast-Tier"), time.Since(start), err}
}

// during asks from many callers until the fault is over, and gives all answers.
func (l *lab) during(fault func()) (all []answer) {
	var mu sync.Mutex
	var callersDone sync.WaitGroup
	over := make(chan struct{})
	for i := range callers {
		callersDone.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				question := known
				if n%4 == 3 {
					question = fmt.Sprintf("How do the arches of kind %d %d stand?", i, n)
				}
				a := l.ask(question, n%2 == 0)
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
		})
	}
	fault()
	close(over)
	callersDone.Wait()
	return all
}

// healthy says whether what is known is answered from the cache, and what is new is stored.
func (l *lab) healthy() bool {
	l.up.Play(providertest.Fails(500))
	if l.ask(known, false).tier != "cache" {
		return false
	}
	question := fmt.Sprintf("How do the domes of kind %d stand?", time.Now().UnixMilli()%1e6)
	l.up.Play(providertest.Says("By ", "themselves."))
	stored := l.ask(question, false).tier == "model"
	l.up.Play(providertest.Fails(500))
	if !stored {
		return false
	}
	for range 20 { // it is stored after the answer
		if l.ask(question, false).tier == "cache" {
			return true
		}
	}
	return false
}

func (l *lab) sql(statements ...string) {
	l.t.Helper()
	conn, err := pgx.Connect(context.Background(), l.direct)
	require.NoError(l.t, err)
	defer conn.Close(context.Background())
	for _, s := range statements {
		_, err = conn.Exec(context.Background(), s)
		require.NoError(l.t, err)
	}
}

// toxic puts a toxic of toxiproxy between Holdfast and the database.
func (l *lab) toxic(definition string) {
	l.t.Helper()
	_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(definition))
	require.NoError(l.t, err)
}

// hangUp ends the connections that there are, so that a setting counts for new ones.
const hangUp = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"

// fault is a way in which a database fails.
type fault struct {
	name  string
	begin func(l *lab)
	end   func(l *lab)
	reads bool // lookups go on
}

func faults() []fault {
	toxic := func(definition string) func(*lab) { return func(l *lab) { l.toxic(definition) } }
	pure := func(l *lab) { l.proxy.Toxics.ResetToxics(context.Background()) }
	return []fault{
		{"nobody listens", func(l *lab) { l.proxy.Stop() }, func(l *lab) { require.NoError(l.t, l.proxy.Start()) }, false},
		{"silent", toxic(`{"type":"timeout","attributes":{"timeout":0}}`), pure, false},
		{"silent towards the server", toxic(`{"type":"timeout","stream":"upstream","attributes":{"timeout":0}}`), pure, false},
		{"slower than anybody waits", toxic(`{"type":"latency","attributes":{"latency":5000}}`), pure, false},
		{"slow", toxic(`{"type":"latency","attributes":{"latency":60,"jitter":20}}`), pure, true},
		{"a thin line", toxic(`{"type":"bandwidth","attributes":{"rate":1}}`), pure, false},
		{"connections are reset", toxic(`{"type":"reset_peer","attributes":{"timeout":0}}`), pure, false},
		{"cut in the middle of answers", toxic(`{"type":"limit_data","attributes":{"bytes":700}}`), pure, false},
		{"in small pieces", toxic(`{"type":"slicer","attributes":{"average_size":7,"size_variation":3,"delay":10}}`), pure, true},
		{"stopped, and started again", func(l *lab) { services(l.t, "stop", l.folder) }, func(l *lab) { services(l.t, "start", l.folder) }, false},
		{"restarted", func(l *lab) {
			services(l.t, "stop", l.folder)
			services(l.t, "start", l.folder)
		}, func(*lab) {}, false},
		{
			"read only",
			func(l *lab) { l.sql("alter database holdfast set default_transaction_read_only = on", hangUp) },
			func(l *lab) {
				l.sql("set default_transaction_read_only = off", "alter database holdfast set default_transaction_read_only = off", hangUp)
			}, true,
		},
		{
			"full",
			func(l *lab) {
				l.sql(`create or replace function full_disk() returns trigger language plpgsql as $$
					begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`,
					"create trigger full_disk before insert or update on cache_entry execute function full_disk()")
			},
			func(l *lab) { l.sql("drop trigger full_disk on cache_entry") }, true,
		},
		{"locked", func(l *lab) {
			var err error
			l.holder, err = pgx.Connect(context.Background(), l.direct)
			require.NoError(l.t, err)
			_, err = l.holder.Exec(context.Background(), "begin; lock table cache_entry in access exclusive mode")
			require.NoError(l.t, err)
		}, func(l *lab) { require.NoError(l.t, l.holder.Close(context.Background())) }, false},
	}
}

// Whatever the database does, every request is answered within its deadline, and when it is over the cache heals by
// itself.
func TestDatabaseFaults(t *testing.T) {
	l := open(t)
	l.up.Play(providertest.Says("Through ", "piers."))
	require.Equal(t, "model", l.ask(known, false).tier)
	require.Eventually(t, l.healthy, healing, 50*time.Millisecond)
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			l.t = t
			got := l.during(func() {
				f.begin(l)
				<-time.After(faulty)
				f.end(l)
			})
			cached := 0
			for _, a := range got {
				require.NoError(t, a.err)
				require.Equal(t, http.StatusOK, a.status)
				require.Contains(t, []string{"cache", "fallback"}, a.tier)
				require.Less(t, a.took, deadline)
				if a.tier == "cache" {
					cached++
				}
			}
			slowest := slices.MaxFunc(got, func(a, b answer) int { return int(a.took - b.took) }).took
			start := time.Now()
			require.Eventually(t, l.healthy, healing, 50*time.Millisecond, "it doesn't heal")
			t.Logf("%d requests, %d from the cache, the slowest %d ms; well again after %d ms",
				len(got), cached, slowest.Milliseconds(), time.Since(start).Milliseconds())
			if f.reads {
				require.Greater(t, cached, len(got)/2)
			}
		})
	}
}

// While a model answers, nobody waits for the database, however it fails.
func TestDatabaseFaultsBehindAHealthyModel(t *testing.T) {
	l := open(t)
	l.toxic(`{"type":"timeout","attributes":{"timeout":0}}`)
	l.up.Play(providertest.Says("Through ", "piers."))
	for i := range 20 {
		got := l.ask(fmt.Sprintf("How do the bridges of kind %d stand?", i), i%2 == 0)
		require.NoError(t, got.err)
		require.Equal(t, "model", got.tier)
		require.Less(t, got.took, time.Second)
	}
}
