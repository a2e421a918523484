package routing

import (
	"time"

	"holdfast/internal/providers"
)

// Tier says who produced an answer.
type Tier string

// The tiers. There is no other.
const (
	TierModel    Tier = "model"
	TierCache    Tier = "cache"
	TierFallback Tier = "fallback"
)

// Skip is why a candidate was left out: a closed list.
type Skip string

// The reasons of the contract, §1.
const (
	SkipDisabled    Skip = "disabled"
	SkipDenied      Skip = "denied"
	SkipNoClient    Skip = "no_client"
	SkipBreakerOpen Skip = "breaker_open"
	SkipCooling     Skip = "cooling"
	SkipTrigger     Skip = "trigger"
	SkipThinking    Skip = "thinking"
	SkipWindow      Skip = "window"
	SkipFeature     Skip = "feature"
	SkipBudget      Skip = "budget"
)

// OutcomeOK is the outcome of an attempt that answered; every other outcome is a kind's name.
const OutcomeOK = "ok"

// Attempt is one line of the trace: a call of a candidate, or a candidate that was left out.
type Attempt struct {
	Candidate string
	Outcome   string        // "ok" or a kind; "" if skipped
	Skipped   Skip          // "" if tried
	Status    int           // the provider's, 0 where it gave none
	Duration  time.Duration // of the attempt so far: of all of it once it has ended
	Ended     bool          // Duration is final
	TTFT      time.Duration // until the first token; 0 if none came
	Code      string        // the provider's error code, for the log only
	Stack     string        // of a panic, for the log only
	Cost      *Cost         // nil: unknown, be it so far
}

// Trace is everything that an answer tells of its making. The metadata, the log and the metrics are made of it.
type Trace struct {
	Tier    Tier
	RouteID string
	Config  string // version of the configuration
	Chain   string // name of the chain, "default" for the priority list; "" for a rule's candidates alone
	Rule    string // name of the rule that chose, "" for none
	// Drawn is who came first by a draw among equals, Share the chance that the weights gave it; zero for no draw.
	Drawn    string
	Share    float64
	Attempts []Attempt
	// Candidate, Provider, Model: who answered; empty but for TierModel.
	Candidate, Provider, Model string
	Cache                      *CacheHit // for TierCache
}

// Calls counts the attempts that were made, skips left out.
func (t *Trace) Calls() int {
	n := 0
	for _, a := range t.Attempts {
		if a.Outcome != "" {
			n++
		}
	}
	return n
}

// CacheHit says how the cache found its answer.
type CacheHit struct {
	Rule       string // exact, canonical, …
	Similarity float64
	Age        time.Duration
	Text       string // the stored answer
	Question   string // the earlier question, where the rule wants it shown
	Key        string // of the stored answer, for the log
	Front      bool   // it came before any model was asked
}

// Failure is an answer that is an error: the caller's mistake, or the last tier where prose would not do.
type Failure struct {
	Status     int    // HTTP status
	Type       string // OpenAI's error type: invalid_request_error, server_error …
	Code       string
	Param      string
	Message    string
	RetryAfter time.Duration // 0: no header; else also x-should-retry: false
}

// Answer is what a request gets. It belongs to one goroutine. Close must be called.
type Answer struct {
	Trace Trace
	// Failure is set where the answer is an error envelope; Next then gives io.EOF at once.
	Failure *Failure
	// Model is the top-level model of an answer that no model gave: what was asked for, or auto.
	Model string

	source source
	done   bool
}

// source is where the chunks come from: a committed attempt or a replay.
type source interface {
	Next() (providers.Chunk, error)
	Close()
}

// NewAnswer makes an answer of chunks that come from elsewhere than a router.
func NewAnswer(trace Trace, src interface {
	Next() (providers.Chunk, error)
	Close()
},
) *Answer {
	return &Answer{Trace: trace, source: src}
}

// Next gives the next chunk, or io.EOF after a complete answer. Any other error is a *providers.Error of a stream
// that broke after its commit; Trace.Attempts says so too. Chunks are valid until the next call.
func (a *Answer) Next() (providers.Chunk, error) { return a.source.Next() }

// Buffered says that Next will not wait: what it gives is in memory, if only an end or an empty chunk. False is no
// promise of the opposite.
func (a *Answer) Buffered() bool {
	source, ok := a.source.(providers.Buffering)
	return ok && source.Buffered()
}

// Close ends the attempt, if one still runs, and reports it. It may be called more than once.
func (a *Answer) Close() {
	if !a.done {
		a.done = true
		a.source.Close()
	}
}
