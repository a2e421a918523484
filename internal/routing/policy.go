package routing

import (
	"math/rand/v2"
	"slices"
	"time"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// outcome says what the breaker hears of a failure. A failure that a caller could provoke with fields outside
// OpenAI's standard must not open a breaker for long: it counts nowhere then. A panic is no fault of the provider.
func outcome(e *providers.Error, foreign bool) breaker.Outcome {
	o := breaker.Outcome{RetryAfter: e.RetryAfter, Why: e.Kind.String()}
	switch e.Kind.Effect().Breaker {
	case providers.VerdictNothing:
		o.Class = breaker.Excluded
	case providers.VerdictFail:
		o.Class = breaker.Failure
	case providers.VerdictSample:
		o.Class = breaker.Sample
	case providers.VerdictCool:
		o.Class = breaker.Cool
	case providers.VerdictRelease:
		o.Class = breaker.Cancelled
	case providers.VerdictHard:
		o.Class = breaker.Hard
		if foreign {
			o.Class = breaker.Excluded
		}
	}
	if stackOf(e) != "" {
		o.Class = breaker.Cancelled
	}
	return o
}

// fires judges a chain's entry against the failure just before it (contract §4). nil: that candidate was skipped,
// which fires any entry.
func (e *Entry) fires(failure *providers.Error) bool {
	if e == nil || failure == nil || e.OnTimeout == nil && e.OnStatus == nil {
		return true
	}
	onTimeout := e.OnTimeout != nil && *e.OnTimeout
	if onTimeout && failure.Kind == providers.KindTimeout {
		return true
	}
	switch {
	case e.OnStatus == nil:
		return !onTimeout && hasStatus(failure)
	case len(e.OnStatus) == 0:
		return hasStatus(failure)
	default:
		return hasStatus(failure) && slices.Contains(e.OnStatus, failure.Status)
	}
}

// hasStatus: the provider answered with an error status, or an error inside a 200 carried one.
func hasStatus(e *providers.Error) bool {
	switch e.Kind {
	case providers.KindMalformed, providers.KindEmpty, providers.KindTruncated:
		return false
	}
	return e.Status >= 400
}

// again says whether a failure allows one more attempt on the same candidate after so many, and after which wait.
// Nothing was committed yet: a failure after the commit never comes here.
func (s Retries) again(e *providers.Error, tries int) (time.Duration, bool) {
	wait := s.delay(tries)
	switch e.Kind.Effect().Retry {
	case providers.RetryNever:
		return 0, false
	case providers.RetryIfSoon:
		return e.RetryAfter, e.RetryAfter > 0 && e.RetryAfter <= s.Cap
	}
	return max(wait, e.RetryAfter), e.RetryAfter <= s.Cap
}

// delay is base × 2ⁿ, at most cap, with full jitter.
func (s Retries) delay(n int) time.Duration {
	ceiling := s.Base
	for ; n > 0 && ceiling < s.Cap; n-- {
		ceiling *= 2
	}
	ceiling = min(ceiling, s.Cap)
	return time.Duration(rand.Float64() * float64(ceiling))
}

// switches says whether a failure before the commit lets the next candidate be asked.
func (s *Settings) switches(e *providers.Error) bool {
	switch e.Kind.Effect().Next {
	case providers.NextNo:
		return false
	case providers.NextIfConfigured:
		return s.ContentPolicyNext
	}
	return true
}

// inability: the failure says that this model can't do it, not that its provider is at fault.
func inability(e *providers.Error) bool { return e.Kind.Effect().Status != 0 }
