package providers

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestModelVersion(t *testing.T) {
	claude := map[string]int{
		"claude-opus-4-7": 407, "claude-sonnet-4-5-20250929": 405, "claude-opus-4-20250514": 400, "claude-3-5-sonnet-latest": 305,
		"claude-3-opus-20240229": 300, "claude-2.1": 201, "claude-opus-5": 500, "anthropic/claude-opus-4.6": 406, "claude-haiku-4-10": 410,
		"us.anthropic.claude-sonnet-4-6-v1:0": 406, "Claude-Opus-4-1@20250805": 401, "claude-mythos-preview": newest, "MiniMax-M2": 0, "m": 0, "": 0,
	}
	for name, want := range claude {
		require.Equal(t, want, modelVersion(name, "claude"), name)
	}
	gemini := map[string]int{
		"gemini-2.5-pro": 205, "gemini-2.0-flash-001": 200, "gemini-3-pro-preview": 300, "models/gemini-3.1-flash": 301,
		"gemini-2.5-flash-lite-preview-09-2025": 205, "gemini-flash-latest": newest, "gemma-3-27b-it": 0,
	}
	for name, want := range gemini {
		require.Equal(t, want, modelVersion(name, "gemini"), name)
	}
}

func TestTurnsAlternate(t *testing.T) {
	var talk turns
	talk.add("assistant", block{"n": 1})
	talk.add("assistant", block{"n": 2})
	talk.add("user")
	talk.add("assistant", block{"n": 3})
	talk.add("user", block{"n": 4})
	require.JSONEq(t, `[{"role":"user","c":[{"n":0}]},{"role":"assistant","c":[{"n":1},{"n":2},{"n":3}]},{"role":"user","c":[{"n":4}]}]`,
		string(encode(talk.opened(block{"n": 0}).objects("c"))))
	require.Len(t, turns{{"user", nil}}.opened(nil), 1)
}

// Whatever ids a history has, calls get ids of plain characters, none twice, and results those of calls, in order.
func TestCallIDs(t *testing.T) {
	plain := regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	rapid.Check(t, func(t *rapid.T) {
		ids := newCallIDs()
		seen := map[string]bool{}
		for range rapid.IntRange(1, 4).Draw(t, "turns") {
			turn := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "a:0", "a_0", "call_1", "é"}), 1, 4).Draw(t, "calls")
			var given []string
			for _, id := range turn {
				got := ids.call(id)
				if !plain.MatchString(got) || seen[got] {
					t.Fatalf("%q became %q", id, got)
				}
				seen[got] = true
				given = append(given, got)
			}
			for i, id := range turn {
				if got := ids.result(id); got != given[i] {
					t.Fatalf("the result of call %d, %q, went to %q instead of %q", i, id, got, given[i])
				}
			}
		}
	})
	require.Equal(t, "of_no_call", newCallIDs().result("of:no call"))
}
