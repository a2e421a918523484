package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/config"
)

func TestCheckPicture(t *testing.T) {
	const golden = "testdata/check.golden"
	status, stdout, stderr := call(t, []string{"check", "--config", "testdata/check.yaml"})
	require.Equal(t, exitOK, status, stderr)
	require.Empty(t, stderr)
	require.NotContains(t, stdout, "CANARY")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(stdout), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), stdout)
}

func TestCheckOfTheEmbeddedConfiguration(t *testing.T) {
	status, stdout, stderr := call(t, []string{"check"}, "OPENAI_API_KEY=sk-CANARY")
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "embedded holdfast.yaml is right")
	require.Contains(t, stdout, "demo-primary")
	require.Contains(t, stdout, "SILICONFLOW_API_KEY is not set")
	require.NotContains(t, stdout, "OPENAI_API_KEY is not set")
	require.Regexp(t, `demo-primary .* left out, as there is a key\n`, stdout)
	require.NotContains(t, stdout, "CANARY")
}

func TestTriggersInWords(t *testing.T) {
	yes, no, two := true, false, 2
	for _, tt := range []struct {
		name string
		e    config.Entry
		want string
	}{
		{"nothing said", config.Entry{}, "on any failure"},
		{"timeout", config.Entry{OnTimeout: &yes}, "on a timeout"},
		{"no timeout", config.Entry{OnTimeout: &no}, "on any status"},
		{"no statuses", config.Entry{OnStatus: []int{}}, "on any status"},
		{"no timeout, no statuses", config.Entry{OnTimeout: &no, OnStatus: []int{}}, "on any status"},
		{"timeout, no statuses", config.Entry{OnTimeout: &yes, OnStatus: []int{}}, "on a timeout or any status"},
		{"statuses", config.Entry{OnStatus: []int{500, 502}}, "on status 500, 502"},
		{"no timeout, statuses", config.Entry{OnTimeout: &no, OnStatus: []int{500}}, "on status 500"},
		{"timeout, statuses", config.Entry{OnTimeout: &yes, OnStatus: []int{500}, MaxRetries: &two}, "on a timeout or status 500, retries: 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, trigger(tt.e))
		})
	}
}

// Each of ten mistakes is refused with one line: file, line, reason.
func TestCheckOfBrokenConfigurations(t *testing.T) {
	const golden = "testdata/broken.golden"
	files, err := filepath.Glob("testdata/broken/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 10)
	var all strings.Builder
	for _, path := range files {
		status, stdout, stderr := call(t, []string{"check", "--config", path})
		require.Equal(t, exitRefused, status, path)
		require.Empty(t, stdout)
		require.Regexp(t, "^"+regexp.QuoteMeta(path)+`:\d+: [^\n]+\n$`, stderr)
		all.WriteString(stderr)
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(all.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String())
}

func TestBreakerInWords(t *testing.T) {
	b := config.Breaker{
		Enabled: true, Mode: "consecutive", FailureThreshold: 2, OpenDuration: 30 * time.Second,
		Sample: config.Sample{Size: 20, MinCalls: 5, FailureRate: 0.5},
	}
	require.Equal(t, "consecutive, opens after 2 failures for 30s", breakerLine(b))
	b.Mode = "window"
	require.Equal(t, "window, opens for 30s when 50% of 20 calls of the fleet fail, judged from 5 on", breakerLine(b))
	slow := b
	slow.SlowCall, slow.AllOpen = config.SlowCall{After: 8 * time.Second, Rate: 0.8}, "earliest"
	require.Equal(t, breakerLine(b)+"; or 80% have no first token by 8s; where all are open, the one that opens first is tried", breakerLine(slow))
	b.Observe = true
	require.Equal(t, "counts, never refuses", breakerLine(b))
	b.Enabled = false
	require.Equal(t, "off", breakerLine(b))
}

func TestCacheInWords(t *testing.T) {
	require.Equal(t, "off", cacheLine(config.Cache{Mode: "off", Shadow: 1}))
	require.Equal(t, "front, similar, for 1h0m0s", cacheLine(config.Cache{Mode: "front", Accept: "similar", TTL: time.Hour}))
	require.Equal(t, "fallback, strict, for 1h0m0s; 5% of healthy requests are looked up to compare",
		cacheLine(config.Cache{Mode: "fallback", Accept: "strict", TTL: time.Hour, Shadow: 0.05}))
}
