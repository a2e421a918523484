package app

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// tableCalls is a DynamoDB API that counts what it is asked, before the real one.
type tableCalls struct {
	mu    sync.Mutex
	calls map[string]int // by operation
	down  bool           // every call is refused
}

func countCalls(t *testing.T) *tableCalls {
	target, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	require.NoError(t, err)
	c := &tableCalls{calls: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		c.mu.Lock()
		c.calls[operation]++
		down := c.down
		c.mu.Unlock()
		if down {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", srv.URL)
	return c
}

func (c *tableCalls) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *tableCalls) count(operation string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[operation]
}

// keyed adds a tenant whose key is his name.
func keyed(p Places, tenant string) Places {
	sum := sha256.Sum256([]byte(tenant))
	p.Keys = tenant + ":" + hex.EncodeToString(sum[:])
	return p
}

// answered waits until all is done that comes after answers.
func (l *lab) answered(t *testing.T) { require.NoError(t, l.app.after.wait(t.Context())) }

func requireCapped(t *testing.T, got reply) {
	t.Helper()
	require.Equal(t, 429, got.status)
	require.True(t, got.failed, "no error envelope")
	require.Equal(t, "false", got.header.Get("X-Should-Retry"))
	require.NotEmpty(t, got.header.Get("Retry-After"))
	require.Empty(t, got.header.Get("Holdfast-Tier"))
}

// A tenant has what his cap lets him have, then 429, also for what the cache could answer. Others don't notice.
func TestTenantCap(t *testing.T) {
	l := costed(t, "caps: [{tenant: anonymous, usd_per_day: 20}]\n", Options{Places: keyed(Places{}, "team")}, healthy())
	for i := range 2 { // each costs 10
		require.Equal(t, "model", l.ask(i == 0, "How do bridges carry heavy loads?").meta.Tier)
		l.answered(t)
	}
	for _, stream := range []bool{false, true} {
		requireCapped(t, l.ask(stream, "How do bridges carry heavy loads?"))
		require.Equal(t, "model", l.ask(stream, "How do bridges carry heavy loads?", "Authorization", "Bearer team").meta.Tier)
	}
	require.Equal(t, 4, l.up[0].Calls(), "no model was called for a capped tenant")
	l.up[0].Play(down())
	requireCapped(t, l.ask(false, "How do bridges carry heavy loads?"))
	require.Contains(t, l.log.String(), "a tenant's daily cap is reached")
}

// What failed late, what the caller left and what was estimated counts too.
func TestCapCountsFailures(t *testing.T) {
	l := costed(t, "caps: [{tenant: anonymous, usd_per_day: 0.000001}]\n", Options{}, []providertest.Behaviour{providertest.Ends(providertest.EndCut, "Hel", "lo")})
	require.True(t, l.ask(true, "How do bridges carry heavy loads?").failed)
	l.answered(t)
	requireCapped(t, l.ask(true, "How do bridges carry heavy loads?"))
}

func TestCapOfNothing(t *testing.T) {
	l := costed(t, "caps: [{tenant: anonymous, usd_per_day: 0}]\n", Options{}, healthy())
	requireCapped(t, l.ask(false, "How do bridges carry heavy loads?"))
	require.Zero(t, l.up[0].Calls())
}

func TestCapWithoutAPrice(t *testing.T) {
	l := open(t, "caps: [{tenant: anonymous, usd_per_day: 0.000001}]\n", healthy())
	for range 3 {
		require.Equal(t, "model", l.ask(false, "How do bridges carry heavy loads?").meta.Tier)
		l.answered(t)
	}
}

// Two processes on one table: what is spent in one is refused in the other.
func TestFleetSharesItsCaps(t *testing.T) {
	places := keyed(Places{Table: table(t)}, "free")
	calls := countCalls(t)
	up := providertest.Start(t, providertest.OpenAI, healthy()...)
	var both []*lab
	for range 2 {
		l := &lab{t: t, log: &locked{}, up: []*providertest.Upstream{up}}
		l.start(costs(yamlOf("caps: [{tenant: anonymous, usd_per_day: 40}]\n", l.up)), Options{Places: places})
		both = append(both, l)
	}
	reads := calls.count("GetItem")
	for i := range 10 {
		require.Equal(t, "a", both[i%2].ask(i < 5, "How do bridges carry heavy loads?", "Authorization", "Bearer free").meta.Candidate)
		both[i%2].answered(t)
	}
	require.Zero(t, calls.count("UpdateItem"), "a healthy request of a tenant without a cap writes nothing")
	require.LessOrEqual(t, calls.count("GetItem")-reads, 10, "and reads at most a breaker")

	for i := range 4 {
		require.Equal(t, "a", both[i%2].ask(i < 2, "How do bridges carry heavy loads?").meta.Candidate)
		both[i%2].answered(t)
	}
	require.Equal(t, 4, calls.count("UpdateItem"), "one a request")
	requireCapped(t, both[1].ask(false, "How do bridges carry heavy loads?"))
	require.Eventually(t, func() bool { // its copy may be some seconds old
		return both[0].ask(false, "How do bridges carry heavy loads?").status == 429
	}, 10*time.Second, 500*time.Millisecond)
	require.Equal(t, "a", both[0].ask(false, "How do bridges carry heavy loads?", "Authorization", "Bearer free").meta.Candidate)
}

// A table that isn't there refuses nobody but who has spent his cap in this very process.
func TestCapWithTheStoreAway(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	for name, address := range map[string]string{"refused": "127.0.0.1:1", "silent": silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://"+address)
			l := costed(t, "caps: [{tenant: anonymous, usd_per_day: 20}]\n", Options{Places: Places{Table: "nowhere"}}, healthy())
			for range 2 {
				require.Equal(t, "a", l.ask(false, "How do bridges carry heavy loads?").meta.Candidate)
				l.answered(t)
			}
			requireCapped(t, l.ask(false, "How do bridges carry heavy loads?"))
			require.Equal(t, 1, strings.Count(l.log.String(), "the store of what tenants spend is away"))
		})
	}
}

// What was spent while the table was away is added when it is back, at the latest when the process ends.
func TestSpentWhileTheTableIsAway(t *testing.T) {
	places := Places{Table: table(t)}
	calls := countCalls(t)
	const twenty = "caps: [{tenant: anonymous, usd_per_day: 20}]\n"
	l := costed(t, twenty, Options{Places: places}, healthy())
	calls.setDown(true)
	for range 2 {
		require.Equal(t, "a", l.ask(false, "How do bridges carry heavy loads?").meta.Candidate)
		l.answered(t)
	}
	calls.setDown(false)
	require.NoError(t, l.app.Close(t.Context()))
	requireCapped(t, costed(t, twenty, Options{Places: places}, healthy()).ask(false, "How do bridges carry heavy loads?"))
}
