package routing

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// The trigger table of the contract, §4, cell by cell.
func TestTriggers(t *testing.T) {
	yes, no := true, false
	failures := map[string]*providers.Error{
		"timeout":   {Kind: providers.KindTimeout},
		"504":       {Kind: providers.KindTimeout, Status: 504},
		"500":       {Kind: providers.KindServerError, Status: 500},
		"503":       {Kind: providers.KindOverloaded, Status: 503},
		"connect":   {Kind: providers.KindConnect},
		"malformed": {Kind: providers.KindMalformed, Status: 500},
		"empty":     {Kind: providers.KindEmpty, Status: 500},
		"truncated": {Kind: providers.KindTruncated, Status: 500},
		"a 200":     {Kind: providers.KindServerError, Status: 200},
		"408":       {Kind: providers.KindTimeout, Status: 408},
		"429":       {Kind: providers.KindRateLimited, Status: 429},
		"401":       {Kind: providers.KindAuth, Status: 401},
		"an inner":  {Kind: providers.KindOverloaded, Status: 529}, // of an error inside a 200
		"skipped":   nil,
	}
	tests := []struct {
		name  string
		entry Entry
		fires string
	}{
		{"both absent", Entry{}, "timeout 408 504 500 503 429 401 an_inner connect malformed empty truncated a_200 skipped"},
		{"timeout true", Entry{OnTimeout: &yes}, "timeout 408 504 skipped"},
		{"timeout false", Entry{OnTimeout: &no}, "408 504 500 503 429 401 an_inner skipped"},
		{"status empty", Entry{OnStatus: []int{}}, "408 504 500 503 429 401 an_inner skipped"},
		{"timeout false, status empty", Entry{OnTimeout: &no, OnStatus: []int{}}, "408 504 500 503 429 401 an_inner skipped"},
		{"timeout true, status empty", Entry{OnTimeout: &yes, OnStatus: []int{}}, "timeout 408 504 500 503 429 401 an_inner skipped"},
		{"status listed", Entry{OnStatus: []int{500, 502}}, "500 skipped"},
		{"timeout false, status listed", Entry{OnTimeout: &no, OnStatus: []int{500, 504}}, "504 500 skipped"},
		{"rate limits and overload listed", Entry{OnStatus: []int{429, 529}}, "429 an_inner skipped"},
		{"timeout true, status listed", Entry{OnTimeout: &yes, OnStatus: []int{500}}, "timeout 408 504 500 skipped"},
	}
	for _, test := range tests {
		for name, failure := range failures {
			t.Run(test.name+" on "+name, func(t *testing.T) {
				require.Equal(t, hasWord(test.fires, strings.ReplaceAll(name, " ", "_")), test.entry.fires(failure))
			})
		}
	}
	require.True(t, (*Entry)(nil).fires(failures["500"]), "a primary has no trigger")
}

func hasWord(s, word string) bool {
	for _, w := range strings.Fields(s) {
		if w == word {
			return true
		}
	}
	return false
}

func TestForeignFieldsOpenNoBreakerForLong(t *testing.T) {
	for _, kind := range []providers.Kind{providers.KindQuota, providers.KindAuth, providers.KindModelMissing} {
		require.Equal(t, breaker.Hard, outcome(&providers.Error{Kind: kind}, false).Class)
		require.Equal(t, breaker.Excluded, outcome(&providers.Error{Kind: kind}, true).Class)
	}
	require.Equal(t, breaker.Failure, outcome(&providers.Error{Kind: providers.KindServerError}, true).Class)
}

func TestContentPolicyMayGoOn(t *testing.T) {
	s := Settings{ContentPolicyNext: true}
	require.True(t, s.switches(&providers.Error{Kind: providers.KindContentPolicy}))
}

func TestRetryWaits(t *testing.T) {
	s := Retries{Base: 200 * time.Millisecond, Cap: 2 * time.Second}
	for tries, ceiling := range map[int]time.Duration{0: 200, 1: 400, 2: 800, 3: 1600, 4: 2000, 5: 2000, 1000: 2000} {
		ceiling *= time.Millisecond
		shortest, longest := ceiling, time.Duration(0)
		for range 300 {
			wait, again := s.again(&providers.Error{Kind: providers.KindServerError}, tries)
			require.True(t, again)
			shortest, longest = min(shortest, wait), max(longest, wait)
		}
		require.LessOrEqual(t, longest, ceiling)
		require.Greater(t, longest, ceiling*9/10, "full jitter goes up to the ceiling")
		require.Less(t, shortest, ceiling/10, "and down to nothing")
	}
	tests := []struct {
		name  string
		err   providers.Error
		wait  time.Duration
		again bool
	}{
		{"Retry-After within the cap", providers.Error{Kind: providers.KindRateLimited, RetryAfter: time.Second}, time.Second, true},
		{"Retry-After beyond the cap", providers.Error{Kind: providers.KindRateLimited, RetryAfter: 3 * time.Second}, 3 * time.Second, false},
		{"no Retry-After", providers.Error{Kind: providers.KindRateLimited}, 0, false},
		{"overloaded, far too long", providers.Error{Kind: providers.KindOverloaded, RetryAfter: time.Minute}, time.Minute, false},
		{"overloaded, soon", providers.Error{Kind: providers.KindOverloaded, RetryAfter: 2 * time.Second}, 2 * time.Second, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wait, again := s.again(&test.err, 0)
			require.Equal(t, test.again, again)
			require.Equal(t, test.wait, wait)
		})
	}
}

func TestTriggersJudgeTheFailureJustBefore(t *testing.T) {
	yes := true
	bad := []step{failStatus(providers.KindServerError, 500)}
	timeout := []step{fail(providers.KindTimeout)}
	chain := []Chain{{Name: "x", Primary: "a", Fallbacks: []Entry{{Model: "b"}, {Model: "c", OnTimeout: &yes}, {Model: "d"}}}}
	l := newLab(t, scripted(timeout), scripted(bad), scripted(answer), scripted(answer))
	l.settings.Chains = chain
	require.Equal(t, []string{"a:timeout", "b:server_error", "c:-trigger", "d:ok"}, l.ask().outcomes())

	l = newLab(t, scripted(bad), scripted(bad), scripted(answer), scripted(answer))
	l.settings.Chains = chain
	l.candidate("b").Disabled = true
	require.Equal(t, []string{"a:server_error", "b:-disabled", "c:ok"}, l.ask().outcomes(), "a skipped one fires any entry")

	l = newLab(t, scripted(bad), scripted(answer), scripted(answer), scripted(answer))
	l.settings.Chains = []Chain{{Name: "x", Primary: "a", Fallbacks: []Entry{{Model: "b", OnTimeout: &yes}, {Model: "c", OnTimeout: &yes}, {Model: "d"}}}}
	require.Equal(t, []string{"a:server_error", "b:-trigger", "c:-trigger", "d:ok"}, l.ask().outcomes(), "one that was passed over doesn't")
}
