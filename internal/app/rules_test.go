package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/config"
	"holdfast/internal/routing"
)

func TestRoutingRules(t *testing.T) {
	var seen *config.Facts
	c := &config.Config{Rules: []config.Rule{{
		Name: "r", Use: []string{"a"}, Only: true, Force: true, Message: map[string]string{"en": "later"},
		Matches: func(f *config.Facts) bool { seen = f; return f.Tokens > 1 },
	}, {Name: "s", UseChain: "x"}}}
	got := routingSettings(c, nil).Rules
	facts := routing.Facts{Tokens: 2, Task: "classify"}
	require.True(t, got[0].Match(&facts))
	require.Equal(t, config.Facts{Tokens: 2, Task: "classify"}, *seen)
	got[0].Match, got[1].Match = nil, nil // functions can't be compared
	require.Equal(t, []routing.Rule{
		{Name: "r", Use: []string{"a"}, Only: true, Force: true, Messages: map[string]string{"en": "later"}},
		{Name: "s", Chain: "x"},
	}, got)
}

// A rule of the file reaches the answer's metadata.
func TestARuleChooses(t *testing.T) {
	l := open(t, "rules: [{name: cheap, when: 'task == \"classify\" and not stream', use: [b]}]\n", healthy(), healthy())
	for _, tt := range []struct {
		stream          bool
		task            string
		candidate, rule string
	}{
		{false, "classify", "b", "cheap"},
		{true, "classify", "a", ""},
		{false, "write", "a", ""},
	} {
		got := l.ask(tt.stream, "What is a mill?", "Holdfast-Task", tt.task)
		require.Equal(t, tt.candidate, got.meta.Candidate)
		require.Equal(t, tt.rule, got.meta.Rule)
		require.Equal(t, "default", got.meta.Chain)
	}
}

// Estimates are corrected by what models really counted, and stay so under the next configuration.
func TestEstimatesAreCorrectedByUsage(t *testing.T) {
	const yaml = `auth: {anonymous: true}
candidates:
  - {id: small, provider: script, model: "text=yes", priority: 1}
  - {id: large, provider: script, model: "text=yes", priority: 2}
cache: {mode: "off"}
rules: [{name: long, when: tokens > 250, use: [large]}]
`
	text := strings.Repeat("one ", 200) // about 267 tokens; these models count words
	l := &lab{t: t, log: &locked{}}
	l.start(yaml, Options{})
	for range 50 {
		require.Equal(t, "large", l.ask(false, text).meta.Candidate, "few answers decide nothing")
	}
	require.Equal(t, "small", l.ask(false, text).meta.Candidate)
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	require.NoError(t, os.WriteFile(path, []byte(yaml+"limits: {body: 1MiB}\n"), 0o600))
	next, _, err := config.Load(t.Context(), config.Source{Location: path})
	require.NoError(t, err)
	before := l.app.now.Load()
	l.app.take(t.Context(), next)
	require.NotSame(t, before, l.app.now.Load())
	require.Equal(t, "small", l.ask(false, text).meta.Candidate)
}

// BenchmarkChoose is what fifty rules of a file, of which the last matches, and fifty candidates cost a request.
func BenchmarkChoose(b *testing.B) {
	var yaml strings.Builder
	yaml.WriteString("auth: {anonymous: true}\ncandidates:\n")
	for i := range 50 {
		fmt.Fprintf(&yaml, "  - {id: candidate-%d, provider: ollama, model: m, priority: %d}\n", i, i%5)
	}
	yaml.WriteString("rules:\n")
	for i := range 50 {
		fmt.Fprintf(&yaml, "  - {name: rule-%d, when: 'tokens > %d and task in [\"classify\", \"extract\"] or tenant == \"t%d\"', use: [candidate-7, candidate-30]}\n", i, 1000*(50-i), i)
	}
	path := filepath.Join(b.TempDir(), "holdfast.yaml")
	require.NoError(b, os.WriteFile(path, []byte(yaml.String()), 0o600))
	c, _, err := config.Load(b.Context(), config.Source{Location: path})
	require.NoError(b, err)
	settings := routingSettings(c, nil)
	facts := routing.Facts{Tokens: 1001, Task: "extract", Tenant: "anonymous", Messages: 1}
	b.ReportAllocs()
	for b.Loop() {
		if rule, _, _ := settings.Choose(&facts); rule != "rule-49" {
			b.Fatal(rule)
		}
	}
}
