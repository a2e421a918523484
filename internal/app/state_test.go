package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/api"
	"holdfast/internal/config"
	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

const everything = `
auth: {anonymous: true}
providers: {p: {dialect: openai, base_url: "http://127.0.0.1:1/v1"}}
candidates:
  - id: a
    provider: p
    model: m
    base_url: http://127.0.0.1:2/v1
    priority: 3
    weight: 7
    enabled: false
    supports_thinking: true
    listed: false
    context_window: 4096
    price: {input: 1.5, output: 2}
    features: [tools, json]
    tenants: [team]
    timeouts: {connect: 1s, header: 2s, first_token: 3s, idle: 4s, total: 5s}
    options: {stream: false, allow: [route], image_urls: true}
  - {id: b, provider: p, model: n}
  - {id: c, provider: p, model: o}
chains: [{name: x, primary: b, fallbacks: [{model: a, on_timeout: true, on_status: [500], max_retries: 2}]}]
deny: [{candidate: b, reason: r, until: "2999-01-01T00:00:00Z"}, {candidate: c, reason: r, until: "2001-01-01T00:00:00Z"}]
chat: {default_model: b, deep_thinking_model: a, first_token_timeout: 9s, thinking_timeout: 11s}
retries: {max: 1, last: 2, base: 3ms, cap: 4ms}
budget: {total: 50s, reserve: 5s}
content_policy: next
fallback: {status: 503, structured: message, retry_after: 7s, messages: {zh: 忙, en: busy}}
`

// Nothing that the configuration says of routing gets lost on its way.
func TestRoutingSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	require.NoError(t, os.WriteFile(path, []byte(everything), 0o600))
	c, _, err := config.Load(t.Context(), config.Source{Location: path})
	require.NoError(t, err)
	clients, err := connect(c, nil)
	require.NoError(t, err)
	client := clients["p"]
	require.NotNil(t, client)
	yes, two := true, 2
	plain := routing.Timeouts{Connect: 3 * time.Second, Header: 30 * time.Second, FirstToken: 9 * time.Second, Idle: 30 * time.Second}
	require.Equal(t, routing.Settings{
		Version: c.Version,
		Candidates: []routing.Candidate{
			{
				ID: "a", Provider: "p", Model: "m", BaseURL: "http://127.0.0.1:2/v1", Client: client, Priority: 3, Weight: 7,
				Disabled: true, Unlisted: true, Tenants: []string{"team"}, Thinking: true, Window: 4096,
				Price:    &routing.Price{Input: 1_500_000_000, CachedInput: 1_500_000_000, Output: 2_000_000_000},
				Features: &routing.Needs{Tools: true, JSON: true},
				Timeouts: routing.Timeouts{Connect: time.Second, Header: 2 * time.Second, FirstToken: 3 * time.Second, Idle: 4 * time.Second, Total: 5 * time.Second},
				Options:  providers.Options{NoStream: true, Allow: []string{"route"}, ImageURLs: true},
			},
			{ID: "b", Provider: "p", Model: "n", Client: client, Priority: 100, Weight: 1, Timeouts: plain, Denied: true, DeniedUntil: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Options: providers.Options{NoThinking: true}},
			{ID: "c", Provider: "p", Model: "o", Client: client, Priority: 100, Weight: 1, Timeouts: plain, Options: providers.Options{NoThinking: true}},
		},
		Chains:       []routing.Chain{{Name: "x", Primary: "b", Fallbacks: []routing.Entry{{Model: "a", OnTimeout: &yes, OnStatus: []int{500}, MaxRetries: &two}}}},
		DefaultModel: "b", ThinkingModel: "a",
		Retries:         routing.Retries{Max: 1, Last: 2, Base: 3 * time.Millisecond, Cap: 4 * time.Millisecond},
		Budget:          routing.Budget{Total: 50 * time.Second, Reserve: 5 * time.Second},
		ThinkingTimeout: 11 * time.Second, ContentPolicyNext: true,
		Fallback: routing.Fallback{Status: 503, StructuredMessage: true, RetryAfter: 7 * time.Second, Messages: map[string]string{"zh": "忙", "en": "busy"}},
	}, routingSettings(c, clients))
}

// Only a whole answer that is nothing but text is kept.
func TestKeepable(t *testing.T) {
	whole := api.Done{Complete: true, Finish: "stop", Text: "a"}
	require.True(t, keepable(whole))
	for name, spoil := range map[string]func(*api.Done){
		"incomplete":     func(d *api.Done) { d.Complete = false },
		"no room":        func(d *api.Done) { d.Finish = "length" },
		"filtered":       func(d *api.Done) { d.Finish = "content_filter" },
		"tool calls":     func(d *api.Done) { d.ToolCalls = true },
		"a refusal":      func(d *api.Done) { d.Refusal = true },
		"too long":       func(d *api.Done) { d.TooLong = true },
		"without a text": func(d *api.Done) { d.Text = "" },
	} {
		d := whole
		spoil(&d)
		require.False(t, keepable(d), name)
	}
}

// Who serves others has no switch that makes his models fail.
func TestNoDrillForOthers(t *testing.T) {
	cfg, _, err := config.Load(t.Context(), config.Source{Lookup: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	l := &lab{t: t, log: &locked{}}
	l.serve(cfg, Options{})
	res, err := http.Get(l.url + "/drill")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 404, res.StatusCode)
}

// Closing waits for what is still to be written, also where its caller has left.
func TestCloseWaitsForWork(t *testing.T) {
	cfg, _, err := config.Load(t.Context(), config.Source{Lookup: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	a, err := Open(t.Context(), cfg, Options{})
	require.NoError(t, err)
	left, leave := context.WithCancel(t.Context())
	leave()
	begin, written := make(chan struct{}), false
	a.after.run(left, func(ctx context.Context) {
		<-begin
		written = ctx.Err() == nil
	})
	time.AfterFunc(20*time.Millisecond, func() { close(begin) })
	require.NoError(t, a.Close(t.Context()))
	require.True(t, written)
}
