package config

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1B": 1, "2KB": 2000, "2KiB": 2048, "5MB": 5_000_000, "5.5MB": 5_500_000, "10MiB": 10 << 20, "10 MiB": 10 << 20,
		"1GB": 1_000_000_000, "1GiB": 1 << 30, "1024GiB": 1 << 40,
	} {
		got, ok := parseSize(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "B", "MiB", "5", "5M", "5Mi", "5miB", "NaNMB", "infGB", "1025GiB", "1MB2", "x1MB"} {
		_, ok := parseSize(text)
		require.False(t, ok, text)
	}
}

func TestMoments(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-08-01":                  time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC),
		"\"2026-08-01T10:00:00Z\"":    time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC),
		"2026-08-01T10:00:00.5+08:00": time.Date(2026, 8, 1, 2, 0, 0, 5e8, time.UTC),
	} {
		c := mustLoad(t, one+"deny: [{candidate: a, until: "+text+"}]\n")
		require.True(t, want.Equal(c.Deny[0].Until), text)
	}
}

func TestReferencesInValues(t *testing.T) {
	c := mustLoad(t, `
auth: {anonymous: "${ANON}"}
budget: {total: "${TOTAL}"}
limits: {body: "${BODY}"}
candidates: [{id: "${WHO}-1", provider: ollama, model: "x${WHO}y${WHO}z", price: {input: "${PRICE}", output: 1}}]
`, "ANON=true", "TOTAL=9s", "BODY=1MiB", "WHO=me", "PRICE=0.5")
	require.True(t, c.Auth.Anonymous)
	require.Equal(t, 9*time.Second, c.Budget.Total)
	require.EqualValues(t, 1<<20, c.Limits.Body)
	require.Equal(t, "me-1", c.Candidates[0].ID)
	require.Equal(t, "xmeymez", c.Candidates[0].Model)
	require.InDelta(t, 0.5, c.Candidates[0].Price.Input, 0)
}

func TestDollarAloneIsText(t *testing.T) {
	c := mustLoad(t, one+"fallback: {messages: {en: \"costs $5, or $$ {x}\"}}\n")
	require.Equal(t, "costs $5, or $$ {x}", c.Fallback.Messages["en"])
}

func TestSuggestions(t *testing.T) {
	f := fields{"max": nil, "last": nil, "base": nil, "cap": nil, "first_token": nil}
	for key, want := range map[string]string{
		"lsat": " (did you mean last?)", "frist_token": " (did you mean first_token?)", "firsttoken": " (did you mean first_token?)",
		"bases": " (did you mean base?)", "x": "", "timeout": "", "": "",
	} {
		require.Equal(t, want, suggest(key, maps.Keys(f)), key)
	}
}
