package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/config"
	"holdfast/internal/providers"
	"holdfast/internal/providers/providertest"
)

func down() providertest.Behaviour { return providertest.Fails(500) }

// One request's whole way, tier by tier: a model answers, its answer is kept, and serves when every model is away.
func TestTiers(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream=", stream), func(t *testing.T) {
			l := open(t, "", []providertest.Behaviour{providertest.Says("Weight ", "goes down.")}, healthy())
			got := l.ask(stream, "How do bridges carry heavy loads?")
			require.Equal(t, "model", got.meta.Tier)
			require.Equal(t, "a", got.header.Get("Holdfast-Candidate"))
			require.NoError(t, l.app.after.wait(t.Context()))

			l.up[0].Play(down())
			l.up[1].Play(down())
			got = l.ask(stream, "How do bridges carry heavy loads?")
			require.Equal(t, "cache", got.meta.Tier)
			require.Equal(t, "exact", got.meta.Cache.Rule)
			require.Equal(t, "Weight goes down.", got.text)
			require.Empty(t, got.header.Get("Holdfast-Candidate"))

			require.Contains(t, l.ask(stream, "How does a suspension bridge differ?").text, "busy")
			require.Contains(t, l.ask(stream, "如何在家里种植番茄？").text, "繁忙")
		})
	}
}

func TestNothingOfAFailedAnswerIsKept(t *testing.T) {
	cut := providertest.Ends(providertest.EndCut, "half ", "an answer")
	l := open(t, "", []providertest.Behaviour{cut})
	require.True(t, l.ask(true, "How do bridges carry heavy loads?").failed)
	require.NoError(t, l.app.after.wait(t.Context()))
	l.up[0].Play(down())
	require.Equal(t, "fallback", l.ask(false, "How do bridges carry heavy loads?").meta.Tier)
}

func TestCacheOff(t *testing.T) {
	l := open(t, "cache: {mode: \"off\"}\n", []providertest.Behaviour{{}})
	require.Equal(t, "model", l.ask(false, "How do bridges carry heavy loads?").meta.Tier)
	l.up[0].Play(down())
	require.Equal(t, "fallback", l.ask(false, "How do bridges carry heavy loads?").meta.Tier)
}

// Neither the log nor an answer has a word of a prompt, a key or a provider's text.
func TestSecretsStayIn(t *testing.T) {
	leaky := providertest.Behaviour{Status: 500, Body: `{"error":{"message":"LEAK-text sk-secret","type":"server_error","code":"LEAK"}}`}
	l := open(t, "", []providertest.Behaviour{leaky}, []providertest.Behaviour{leaky})
	for _, stream := range []bool{false, true} {
		got := l.ask(stream, "PROMPT-word")
		require.Equal(t, "fallback", got.meta.Tier)
		require.NotContains(t, fmt.Sprintf("%+v", got), "LEAK")
	}
	require.NoError(t, l.app.after.wait(t.Context()))
	log := l.log.String()
	require.Contains(t, log, `"tier":"fallback"`)
	for _, secret := range []string{"PROMPT-word", "sk-secret", "LEAK-text"} {
		require.NotContains(t, log, secret)
	}
}

func TestDeadlineHint(t *testing.T) {
	slow := []providertest.Behaviour{providertest.Ends(providertest.EndHangHeaders)}
	l := open(t, "", slow, slow, slow, slow)
	got := l.ask(false, "q", "Holdfast-Deadline-Ms", "2000")
	require.Equal(t, "fallback", got.meta.Tier)
	require.Equal(t, []string{"a:timeout", "b:deadline"}, got.outcomes())
}

func TestDenied(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	l := open(t, "deny: [{candidate: a, reason: leaks, until: "+soon+"}]\n", []providertest.Behaviour{{}}, healthy())
	require.Equal(t, []string{"a:-denied", "b:ok"}, l.ask(false, "q").outcomes())
}

func TestDrill(t *testing.T) {
	cfg, _, err := config.Load(t.Context(), config.Source{Lookup: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	l := &lab{t: t, log: &locked{}}
	l.serve(cfg, Options{Local: true})
	require.Equal(t, "model", l.ask(false, "How do bridges carry heavy loads?").meta.Tier)
	require.NoError(t, l.app.after.wait(t.Context()))

	drill := func(method, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, l.url+"/drill", strings.NewReader(body))
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = res.Body.Close() }()
		got, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, strings.TrimSpace(string(got))
	}
	status, got := drill(http.MethodPut, `{"outage": true}`)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"outage":true}`, got)
	require.Equal(t, "cache", l.ask(true, "How do bridges carry heavy loads?").meta.Tier)
	require.Equal(t, "fallback", l.ask(true, "Something new altogether?").meta.Tier)
	status, _ = drill(http.MethodPut, `{}`)
	require.Equal(t, 400, status)
	_, got = drill(http.MethodGet, "")
	require.JSONEq(t, `{"outage":true}`, got)
	drill(http.MethodPut, `{"outage": false}`)

	status, _ = drill(http.MethodPost, "{}")
	require.Equal(t, 404, status)
	noRedirects := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := noRedirects.Get(l.url + "//v1/models")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 404, res.StatusCode, "the switch changes nothing of other paths")
}

func TestScriptedModelsLeaveWithARealKey(t *testing.T) {
	cfg, _, err := config.Load(t.Context(), config.Source{Lookup: func(name string) (string, bool) { return "sk-x", name == "OPENAI_API_KEY" }})
	require.NoError(t, err)
	clients, err := connect(cfg, nil)
	require.NoError(t, err)
	require.Contains(t, clients, "openai")
	require.NotContains(t, clients, "script")
}

// parameterStore plays AWS Systems Manager.
func parameterStore(t *testing.T, values map[string]string) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Names          []string
			WithDecryption bool
		}
		if r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParameters" || !strings.Contains(r.Header.Get("Authorization"), "/ssm/aws4_request") ||
			json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Names) > 10 || !in.WithDecryption {
			w.WriteHeader(400)
			return
		}
		var out struct{ Parameters []map[string]string }
		for _, name := range in.Names {
			if v, ok := values[name]; ok {
				out.Parameters = append(out.Parameters, map[string]string{"Name": name, "Value": v})
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ENDPOINT_URL_SSM", srv.URL)
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	return srv
}

func TestParameters(t *testing.T) {
	values := map[string]string{}
	var paths []string
	for i := range 23 {
		path := fmt.Sprint("/holdfast/", i)
		paths, values[path] = append(paths, path), fmt.Sprint("v", i)
	}
	srv := parameterStore(t, values)
	got, err := (&parameters{find: providers.EnvironmentAWS}).Fetch(t.Context(), append(paths, "/nowhere"))
	require.NoError(t, err)
	require.Equal(t, values, got)

	srv.Close()
	_, err = (&parameters{find: providers.EnvironmentAWS}).Fetch(t.Context(), paths)
	require.ErrorContains(t, err, "can't be reached")
}

func TestSecretsHeal(t *testing.T) {
	up := providertest.Start(t, providertest.OpenAI)
	srv := parameterStore(t, map[string]string{"/holdfast/key": "sk-from-store"})
	t.Setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1")
	l := &lab{t: t, log: &locked{}}
	l.start(fmt.Sprintf(`
auth: {anonymous: true}
providers: {p: {dialect: openai, base_url: %q, api_key: "ssm:/holdfast/key"}}
candidates: [{id: a, provider: p, model: m}]
`, up.URL+"/v1"), Options{})
	require.Equal(t, []string{"a:-no_client"}, l.ask(false, "q").outcomes())
	require.NoError(t, l.app.after.wait(t.Context()))

	t.Setenv("AWS_ENDPOINT_URL_SSM", srv.URL)
	l.app.renewal.next.Store(1) // the pause is over
	l.ask(false, "q")
	require.NoError(t, l.app.after.wait(t.Context()))
	require.Zero(t, l.app.renewal.next.Load(), "nothing is missing any more")
	require.Equal(t, []string{"a:ok"}, l.ask(false, "q").outcomes())
	require.Equal(t, "Bearer sk-from-store", up.Seen().Header.Get("Authorization"))
	require.NotContains(t, l.log.String(), "sk-from-store")
}
