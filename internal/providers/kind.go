package providers

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the class of a failure: a closed list, the only thing that routing, breaker, cache and metrics know of it.
type Kind uint8

// The kinds, in the order of the contract's table.
const (
	KindNone           Kind = iota
	KindConnect             // refused, reset, DNS, TLS; nothing came
	KindTimeout             // a clock of ours, or the provider's 408 and 504
	KindOverloaded          // 503, 529, slow_down, overloaded_error
	KindServerError         // other 5xx; an error line without a known code
	KindRateLimited         // 429 of a time window
	KindQuota               // balance, spend, daily cap
	KindAuth                // our key refused
	KindModelMissing        // no such model or deployment
	KindLoading             // cold model
	KindToolFailed          // the model's own tool call was invalid
	KindMalformed           // a 200 that isn't the protocol
	KindEmpty               // ended properly and said nothing
	KindTruncated           // began, then ended without the terminal marker
	KindContextTooLong      // the request doesn't fit the model's window
	KindContentPolicy       // the input was refused
	KindBadRequest          // the caller's mistake
	KindUnsupported         // this model can't do what was asked
	KindCanceled            // the caller left
	KindDeadline            // the budget ended it
	kindCount
)

// Retry says when one more attempt on the same candidate makes sense, where one is left.
type Retry uint8

const (
	RetryNever        Retry = iota
	RetryAlways             // with backoff
	RetryIfSoon             // if the provider's Retry-After is at most retries.cap
	RetryBeforeCommit       // only while nothing was sent
)

// Verdict is what the breaker makes of a failure.
type Verdict uint8

const (
	VerdictNothing Verdict = iota // counts nowhere
	VerdictFail                   // a failure, in the run and in the sample
	VerdictSample                 // a failure in the sample, not in the run
	VerdictCool                   // no failure; skipped until Retry-After, else 10 s
	VerdictHard                   // opens at once for long, with an alarm
	VerdictRelease                // counts nowhere and gives a trial back
)

// Next says whether the next candidate may be asked.
type Next uint8

const (
	NextYes          Next = iota
	NextNo                // the answer is final
	NextLarger            // only one with a larger context window
	NextIfConfigured      // content_policy: next
	NextBeforeCommit      // only while nothing was sent
)

// Effect is one row of the contract's table.
type Effect struct {
	Name    string
	Retry   Retry
	Breaker Verdict
	Next    Next
	// Status and Code are the caller's error if nothing answers; Status 0: the cache, then the message.
	Status int
	Code   string
}

// effects is the table of the contract, §1: what each kind does. It is the only place that says so.
var effects = [kindCount]Effect{
	KindConnect:        {Name: "connect", Retry: RetryAlways, Breaker: VerdictFail},
	KindTimeout:        {Name: "timeout", Breaker: VerdictFail},
	KindOverloaded:     {Name: "overloaded", Retry: RetryAlways, Breaker: VerdictFail},
	KindServerError:    {Name: "server_error", Retry: RetryAlways, Breaker: VerdictFail},
	KindRateLimited:    {Name: "rate_limited", Retry: RetryIfSoon, Breaker: VerdictCool},
	KindQuota:          {Name: "quota", Breaker: VerdictHard},
	KindAuth:           {Name: "auth", Breaker: VerdictHard},
	KindModelMissing:   {Name: "model_missing", Breaker: VerdictHard},
	KindLoading:        {Name: "loading", Breaker: VerdictCool},
	KindToolFailed:     {Name: "tool_failed", Retry: RetryAlways},
	KindMalformed:      {Name: "malformed", Retry: RetryAlways, Breaker: VerdictFail},
	KindEmpty:          {Name: "empty", Retry: RetryAlways, Breaker: VerdictSample},
	KindTruncated:      {Name: "truncated", Retry: RetryBeforeCommit, Breaker: VerdictFail, Next: NextBeforeCommit},
	KindContextTooLong: {Name: "context_too_long", Next: NextLarger, Status: 400, Code: "context_length_exceeded"},
	KindContentPolicy:  {Name: "content_policy", Next: NextIfConfigured, Status: 400, Code: "content_filter"},
	KindBadRequest:     {Name: "bad_request", Next: NextNo, Status: 400},
	KindUnsupported:    {Name: "unsupported", Status: 400},
	KindCanceled:       {Name: "canceled", Breaker: VerdictRelease, Next: NextNo},
	KindDeadline:       {Name: "deadline", Breaker: VerdictRelease, Next: NextNo},
}

// String is the kind's name in metadata, logs and metrics.
func (k Kind) String() string { return k.Effect().Name }

// Effect is the kind's row of the table.
func (k Kind) Effect() Effect {
	if k >= kindCount {
		return Effect{}
	}
	return effects[k]
}

// Error is how a call failed.
type Error struct {
	Kind       Kind
	Status     int           // the provider's HTTP status, or the one inside a 200; 0 where it gave none
	RetryAfter time.Duration // from 429, 503 and 529 only; 0: not said
	Code       string        // the provider's own code, short; for the log
	Param      string        // the field at fault, where the provider names it
	// Message is the provider's text, keys and account ids removed, 1 KB at most. It is for the caller, and only
	// where the mistake is the caller's; never for a log.
	Message string
	Err     error // the cause on our side, if any; never the provider's text
}

// Error has no word of the provider's text, so that it may be logged.
func (e *Error) Error() string {
	s := e.Kind.String()
	if e.Status != 0 {
		s = fmt.Sprintf("%s (status %d)", s, e.Status)
	}
	if e.Code != "" {
		s += " " + e.Code
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause on our side.
func (e *Error) Unwrap() error { return e.Err }

// AsError gives err as an *Error; any other error is one of KindServerError that wraps it.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: KindServerError, Err: err}
}
