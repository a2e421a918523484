package routing

import (
	"context"
	"time"

	"holdfast/internal/providers"
)

// Settings are routing's share of the configuration, already validated and with its defaults filled in.
type Settings struct {
	Version       string // hash of the configuration
	Candidates    []Candidate
	Chains        []Chain
	Rules         []Rule // asked in this order, the first that matches chooses
	DefaultModel  string // candidate id, "" for none
	ThinkingModel string // candidate id, "" for none
	Retries       Retries
	Budget        Budget
	// ThinkingTimeout is how long the first content may take once reasoning flows.
	ThinkingTimeout   time.Duration
	ContentPolicyNext bool
	// EarliestOpen: where breakers refuse every candidate that could be called, the one that opens first is tried once.
	EarliestOpen bool
	Fallback     Fallback
	Front        Front // asked before any model; nil: nobody is
	// Said estimates the tokens of what chunks say, for attempts whose provider didn't count them; nil: none.
	Said func([]providers.Chunk) int
}

// Candidate is one link of a chain: a model of a provider, with its limits.
type Candidate struct {
	ID       string
	Provider string // name in the configuration
	Model    string // the provider's name of the model
	BaseURL  string
	Client   providers.Provider // nil: the provider has no client (no_client)
	Priority int                // 1 first
	Weight   int                // relative share among equal priorities; 0 drains
	Disabled bool
	Denied   bool
	// DeniedUntil ends a denial; zero: it has no end.
	DeniedUntil time.Time
	Unlisted    bool     // in no default order and in no list of models
	Tenants     []string // nil: for all
	Thinking    bool     // supports_thinking
	Window      int      // context_window in tokens; 0: unknown
	Features    *Needs   // what it can; nil: everything
	Price       *Price   // nil: unknown
	Timeouts    Timeouts
	Options     providers.Options
}

// Timeouts are a candidate's clocks; 0 means none.
type Timeouts struct {
	Connect, Header, FirstToken, Idle, Total time.Duration
}

// Chain is a primary and what follows it.
type Chain struct {
	Name      string
	Primary   string
	Fallbacks []Entry
}

// Entry is one fallback of a chain with its trigger (contract §4).
type Entry struct {
	Model      string
	OnTimeout  *bool
	OnStatus   []int // nil: absent; empty: any failure that has a status
	MaxRetries *int  // overrides retries.max and retries.last
}

// Rule chooses candidates for the requests that match. Exactly one of Use and Chain is set.
type Rule struct {
	Name     string
	Match    func(*Facts) bool // quick, and without a side effect
	Use      []string          // candidates, in this order; the default order follows
	Chain    string            // name of a chain, which nothing follows
	Only     bool              // the default order doesn't follow Use
	Force    bool              // asked even where the request names a model
	Messages map[string]string // this rule's fixed message by language; where it has none Fallback's holds
}

// Retries bound the attempts on one candidate: a retry is one more.
type Retries struct {
	Max  int // on each
	Last int // on one after which nothing could be tried now
	Base time.Duration
	Cap  time.Duration
}

// Budget is the time for a whole request.
type Budget struct {
	Total   time.Duration
	Reserve time.Duration // kept for cache and message
}

// Fallback is the last tier.
type Fallback struct {
	Status            int  // 200, or 503
	StructuredMessage bool // fallback.structured: message; else an error, as prose would break the caller's parser
	RetryAfter        time.Duration
	Messages          map[string]string // by language: zh, en
}

// LastResort is what routing asks of the cache.
type LastResort interface {
	// Lookup gives the cached answer to the request, or nil. It respects ctx's deadline.
	Lookup(ctx context.Context, req *Request) *CacheHit
}
