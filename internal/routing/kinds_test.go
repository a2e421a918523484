package routing

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// The table of the contract, §1, as requests meet it: each row is provoked in a stream and in JSON. Where the contract's
// cell hangs on something, the kind has a row for either case.
func TestKinds(t *testing.T) {
	const (
		yes, no, larger   = "yes", "no", "larger" // next
		message           = "cache, message"      // if nothing answers; else the caller's error
		soon, late, never = time.Second, 30 * time.Second, 0
	)
	at := func(kind providers.Kind, status int, retryAfter time.Duration) *providers.Error {
		return &providers.Error{Kind: kind, Status: status, RetryAfter: retryAfter, Message: "said"}
	}
	rows := []struct {
		failure *providers.Error
		retry   bool
		breaker breaker.Class
		next    string
		nothing string // what the caller gets if nothing answers
	}{
		{at(providers.KindConnect, 0, never), true, breaker.Failure, yes, message},
		{at(providers.KindTimeout, 0, never), false, breaker.Failure, yes, message},
		{at(providers.KindTimeout, 504, never), false, breaker.Failure, yes, message},
		{at(providers.KindOverloaded, 503, never), true, breaker.Failure, yes, message},
		{at(providers.KindOverloaded, 529, soon), true, breaker.Failure, yes, message},
		{at(providers.KindOverloaded, 529, late), false, breaker.Failure, yes, message},
		{at(providers.KindServerError, 500, never), true, breaker.Failure, yes, message},
		{at(providers.KindRateLimited, 429, soon), true, breaker.Cool, yes, message},
		{at(providers.KindRateLimited, 429, late), false, breaker.Cool, yes, message},
		{at(providers.KindRateLimited, 429, never), false, breaker.Cool, yes, message},
		{at(providers.KindQuota, 402, never), false, breaker.Hard, yes, message},
		{at(providers.KindAuth, 401, never), false, breaker.Hard, yes, message},
		{at(providers.KindModelMissing, 404, never), false, breaker.Hard, yes, message},
		{at(providers.KindLoading, 503, never), false, breaker.Cool, yes, message},
		{at(providers.KindToolFailed, 400, never), true, breaker.Excluded, yes, message},
		{at(providers.KindMalformed, 0, never), true, breaker.Failure, yes, message},
		{at(providers.KindEmpty, 0, never), true, breaker.Sample, yes, message},
		{at(providers.KindTruncated, 0, never), true, breaker.Failure, yes, message},
		{at(providers.KindContextTooLong, 400, never), false, breaker.Excluded, larger, "400 context_length_exceeded"},
		{at(providers.KindContentPolicy, 400, never), false, breaker.Excluded, no, "400 content_filter"},
		{at(providers.KindBadRequest, 400, never), false, breaker.Excluded, no, "400 "},
		{at(providers.KindUnsupported, 400, never), false, breaker.Excluded, yes, "400 unsupported"},
		{at(providers.KindCanceled, 0, never), false, breaker.Cancelled, no, "499 canceled"}, // nobody is there to read it
		{at(providers.KindDeadline, 0, never), false, breaker.Cancelled, no, message},
	}
	told := map[string]bool{}
	for _, row := range rows {
		told[row.failure.Kind.String()] = true
		for name, hold := range map[string]Hold{"stream": HoldFirstToken, "JSON": HoldComplete} {
			name = fmt.Sprintf("%s %d %s %s", row.failure.Kind, row.failure.Status, row.failure.RetryAfter, name)
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t, provoked(row.failure), scripted(answer))
					l.settings.Retries.Max = 1
					l.candidate("a").Window, l.candidate("b").Window = 1000, 1000
					got := askFor(l, row.failure, hold)
					require.Equal(t, "a:"+row.failure.Kind.String(), got.outcomes()[0])
					require.Equal(t, row.retry, l.models["a"].calls == 2, "retry")
					require.Equal(t, []breaker.Class{row.breaker}, l.gate.reports["a"], "breaker, once a call")
					require.Equal(t, row.failure.RetryAfter, l.gate.last["a"].RetryAfter)
					require.Equal(t, row.next == yes, l.models["b"].calls == 1, "next")
					l.candidate("b").Window = 2000
					l.models["a"].calls = 0
					askFor(l, row.failure, hold)
					require.Equal(t, row.next != no, l.models["b"].calls > 0, "next, if it is larger")
				})
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t, provoked(row.failure))
					got := askFor(l, row.failure, hold)
					if row.nothing == message {
						require.Equal(t, TierFallback, got.Trace.Tier)
						l.cache = &cacheOf{hit: &CacheHit{Text: "as before"}}
						require.Equal(t, TierCache, askFor(l, row.failure, hold).Trace.Tier)
						return
					}
					require.Empty(t, got.Trace.Tier)
					require.Equal(t, row.nothing, fmt.Sprintf("%d %s", got.Failure.Status, got.Failure.Code))
					require.Equal(t, row.failure.Kind != providers.KindCanceled, got.Failure.Message == "said")
				})
			})
		}
	}
	for kind := providers.KindConnect; kind.String() != ""; kind++ {
		require.True(t, told[kind.String()], "%s has no row", kind)
	}
}

// provoked is a model that fails so. Whether the caller left or the budget ended no provider can say: it hangs.
func provoked(e *providers.Error) *model {
	if e.Kind == providers.KindCanceled || e.Kind == providers.KindDeadline {
		return scripted([]step{role, hang})
	}
	return scripted([]step{role, {err: e}})
}

// askFor asks so that the failure can happen: a caller who leaves, or a budget that ends before any clock.
func askFor(l *lab, e *providers.Error, hold Hold) result {
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	if e.Kind == providers.KindCanceled {
		defer time.AfterFunc(time.Second, cancel).Stop()
	}
	return read(l.router().Answer(ctx, request(func(r *Request) {
		r.Hold = hold
		if e.Kind == providers.KindDeadline {
			r.Hint = 2 * time.Second
		}
	})))
}
