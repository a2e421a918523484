package app

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// What lives longer than a configuration: the stores, what the breakers know, a drill.

// The cache's settings follow the file; what is stored stays.
func TestCacheSettingsFollow(t *testing.T) {
	const question = "How do bridges carry heavy loads?"
	up := []*providertest.Upstream{providertest.Start(t, providertest.OpenAI)}
	with := func(cache string) string { return yamlOf("breaker: {enabled: false}\ncache: {"+cache+"}\n", up) }
	r := roll(t, with(`mode: "off"`), Options{})
	tier := func(question string, b providertest.Behaviour) string {
		t.Helper()
		up[0].Play(b)
		got := r.ask(false, question)
		require.NoError(t, r.app.after.wait(t.Context()))
		return got.meta.Tier
	}
	healthy := providertest.Says("Weight ", "goes down.")
	require.Equal(t, "model", tier(question, healthy))
	r.take(with("mode: fallback"))
	require.Equal(t, "fallback", tier(question, down()), "nothing was kept while it was off")
	require.Equal(t, "model", tier(question, healthy))
	require.Equal(t, "cache", tier(question, down()))

	r.take(with(`mode: "off"`))
	require.Equal(t, "fallback", tier(question, down()))
	r.take(with("mode: fallback, corpus: v2"))
	require.Equal(t, "fallback", tier(question, down()), "another corpus")
	r.take(with("mode: fallback"))
	require.Equal(t, "cache", tier(question, down()), "on again, with what it had")

	r.take(with("mode: fallback, max_entries: 1"))
	require.Equal(t, "model", tier("How do mills grind their corn?", healthy))
	require.Equal(t, "fallback", tier(question, down()), "there is room for one")
	require.Equal(t, "cache", tier("How do mills grind their corn?", down()))
	r.take(with("mode: fallback, max_entries: 2"))
	require.Equal(t, "model", tier(question, healthy))
	require.Equal(t, "cache", tier("How do mills grind their corn?", down()))
}

// An answer is kept by the configuration that gave it.
func TestAnAnswerIsKeptByItsOwnConfiguration(t *testing.T) {
	const question = "How do bridges carry heavy loads?"
	slow := slowly("Weight goes down to the ground.")
	up := []*providertest.Upstream{providertest.Start(t, providertest.OpenAI, slow)}
	r := roll(t, yamlOf("cache: {corpus: v1}\n", up), Options{})
	res, err := r.post(t.Context(), true, question)
	require.NoError(t, err)
	r.take(yamlOf("cache: {corpus: v2}\n", up))
	var got reply
	got.events(res.Body)
	require.NoError(t, res.Body.Close())
	require.True(t, got.done)
	require.NoError(t, r.app.after.wait(t.Context()))
	up[0].Play(down())
	require.Equal(t, "fallback", r.ask(false, question).meta.Tier)
	r.take(yamlOf("cache: {corpus: v1}\n", up))
	require.Equal(t, "cache", r.ask(false, question).meta.Tier)
}

func TestKeysFollow(t *testing.T) {
	const test = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	keyed := func(auth string) string {
		return "auth: " + auth + "\ncandidates: [{id: a, provider: script, model: echo}]\n"
	}
	r := roll(t, keyed("{keys: [{tenant: t, sha256: "+test+"}]}"), Options{})
	status := func() int { return r.ask(false, "q", "Authorization", "Bearer test").status }
	require.Equal(t, http.StatusOK, status())
	r.take(keyed("{keys: [{tenant: t, sha256: " + test[:63] + "9}]}"))
	require.Equal(t, http.StatusUnauthorized, status())
	r.take(keyed("{keys: [{tenant: u, sha256: " + test + "}]}"))
	require.Equal(t, http.StatusOK, status())
}

// A reload closes no breaker, whether the store is in memory, shared or away, and whether the settings change.
func TestReloadKeepsOpenBreakers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		places func(t *testing.T) Places
	}{
		{"memory", func(*testing.T) Places { return Places{} }},
		{"table", func(t *testing.T) Places { return Places{Table: table(t)} }},
		{"away", func(t *testing.T) Places {
			t.Setenv("AWS_REGION", "us-east-1")
			t.Setenv("AWS_ACCESS_KEY_ID", "test")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
			return Places{Table: "nowhere"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := []*providertest.Upstream{
				providertest.Start(t, providertest.OpenAI, down()), providertest.Start(t, providertest.OpenAI),
			}
			r := roll(t, yamlOf("breaker: {failure_threshold: 3}\n", up), Options{Places: tt.places(t)})
			for range 2 {
				require.Equal(t, []string{"a:server_error", "b:ok"}, r.ask(false, "q").outcomes())
			}
			r.take(yamlOf("breaker: {failure_threshold: 3}\nretries: {max: 0}\n", up))
			require.Equal(t, []string{"a:server_error", "b:ok"}, r.ask(false, "q").outcomes(), "the run goes on: the third")
			for _, more := range []string{
				"breaker: {failure_threshold: 3}\n", "breaker: {open_duration: 1s, max_open_duration: 1s}\n", "breaker: {failure_threshold: 9}\n",
			} {
				r.take(yamlOf(more, up))
				require.Equal(t, []string{"a:-breaker_open", "b:ok"}, r.ask(false, "q").outcomes(), more)
			}
			require.Equal(t, 3, up[0].Calls())
		})
	}
}

func TestReloadKeepsADrill(t *testing.T) {
	r := roll(t, scripted("a"), Options{Local: true})
	s := r.app.now.Load()
	setOutage(t, r, `{"outage": true}`)
	r.take(scripted("b"))
	require.NotSame(t, s, r.app.now.Load())
	require.Equal(t, "fallback", r.ask(false, "q").meta.Tier)
	setOutage(t, r, `{"outage": false}`)
	require.Equal(t, "b", r.ask(false, "q").meta.Candidate)
}

func setOutage(t *testing.T, r *rolled, order string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callerLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, r.url+"/drill", strings.NewReader(order))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}
