// Package config reads the one YAML file that says what Holdfast does.
//
// Its one idea: a configuration is right as a whole or refused as a whole. [Load] gives a [Config] whose defaults
// are filled in and whose references all lead somewhere, or [Errors] that name file, line and reason for everything
// that is wrong. A Config is never changed afterwards; a reload makes a new one. No error holds a secret.
package config

import (
	"time"

	"holdfast/internal/providers"
)

// Config is a validated configuration with its defaults filled in.
type Config struct {
	Version  string // hash of what was loaded, eight hex digits; in metadata, /v1/status and the log
	Source   string // what people know it as: a path, a URL without credentials, "embedded configuration"
	Embedded bool   // the built-in one: loopback only, scripted candidates go once a real provider has a key

	Auth          Auth
	Providers     []Provider // those that a candidate uses or the file names, by name
	Breaker       Breaker
	Retries       Retries
	Budget        Budget
	Chat          Chat
	Candidates    []Candidate // in the file's order
	Chains        []Chain     // in the file's order; of several with one primary the first is the primary's own
	Rules         []Rule
	Deny          []Deny
	Caps          []Cap
	ContentPolicy string // "return" or "next"
	Limits        Limits
	Cache         Cache
	Fallback      Fallback
}

// Auth says who may call.
type Auth struct {
	Anonymous bool // callers without a key are let in, as tenant "anonymous"
	Keys      []Key
}

// Key is the hash of one caller's key.
type Key struct {
	Tenant string
	SHA256 string // 64 lower-case hex digits, or a reference "ssm:…" until [Secrets.Fill]
}

// Provider is one account at one provider, the built-in row of its name already merged in.
type Provider struct {
	providers.Settings // Transport is nil
	// NoClient: api_key refers to an environment variable or parameter that isn't set. The provider's candidates
	// are skipped.
	NoClient bool
}

// Breaker guards the candidates.
type Breaker struct {
	Enabled           bool          // default true
	Observe           bool          // count, never refuse
	Mode              string        // "consecutive" (default), "window", "hybrid"
	FailureThreshold  int           // consecutive failures that open; default 2
	OpenDuration      time.Duration // default 30 s
	MaxOpenDuration   time.Duration // default 2 min
	Sample            Sample
	HalfOpenSuccesses int // successful trials that close; default 1
	SlowCall          SlowCall
	AllOpen           string // "cache" (default), "earliest": try the one that opens first
}

// Sample is the fleet's sample, for the modes window and hybrid.
type Sample struct {
	Size        int     // calls; default 20
	MinCalls    int     // before it is judged; default 5
	FailureRate float64 // (0, 1]; default 0.5
}

// SlowCall makes slow calls count as failures of the sample.
type SlowCall struct {
	After time.Duration // 0: off, the default
	Rate  float64       // (0, 1]; default 1
}

// Retries bound the attempts on one candidate; a retry is one more.
type Retries struct {
	Max  int           // on each; default 0
	Last int           // on one after which nothing could be tried now; default 1
	Base time.Duration // default 200 ms
	Cap  time.Duration // default 2 s
}

// Budget is the time for a whole request.
type Budget struct {
	Total   time.Duration // default 180 s
	Reserve time.Duration // kept for cache and message; default 2 s
}

// Chat holds the first choices and the clocks that candidates inherit.
type Chat struct {
	DefaultModel      string        // candidate id, "" for none
	DeepThinkingModel string        // candidate id, "" for none
	FirstTokenTimeout time.Duration // default 60 s
	ThinkingTimeout   time.Duration // to the first content once reasoning flows; default 120 s
}

// Candidate is one link of a chain: a model of a provider, with its limits.
type Candidate struct {
	ID               string
	Provider         string // name of a Provider
	Model            string // the provider's name of the model
	BaseURL          string // overrides the provider's; "" does not
	Enabled          bool   // default true
	Priority         int    // 1 first; default 100
	Weight           int    // share among equal priorities, 0 drains; default 1
	SupportsThinking bool
	Listed           bool      // in default orders and /v1/models; default true
	ContextWindow    int       // tokens; 0: unknown
	Features         *Features // what it can; nil: everything
	Tenants          []string  // nil: for all
	Price            *Price    // nil: unknown
	Timeouts         Timeouts
	Options          providers.Options
}

// Features are what a candidate can do.
type Features struct{ Tools, Vision, JSON bool }

// Price is in USD per million tokens.
type Price struct {
	Input       float64
	CachedInput float64 // default: Input
	Output      float64
}

// Timeouts are a candidate's clocks; 0 means none.
type Timeouts struct {
	Connect    time.Duration // default 3 s
	Header     time.Duration // default 30 s
	FirstToken time.Duration // default chat.first_token_timeout; never 0
	Idle       time.Duration // default 30 s; never 0
	Total      time.Duration // default 0
}

// Chain is a primary and what follows it.
type Chain struct {
	Name      string // default: the primary's id
	Primary   string // candidate id
	Fallbacks []Entry
}

// Entry is one fallback of a chain with its trigger.
type Entry struct {
	Model      string // candidate id
	OnTimeout  *bool  // nil: absent
	OnStatus   []int  // nil: absent; empty: any failure that has a status
	MaxRetries *int   // nil: retries.max and retries.last hold
}

// Rule is a condition on the request that picks candidates.
type Rule struct {
	Name     string
	When     string            // as it stands in the file
	Matches  Condition         // When compiled, with what it refers to filled in
	Use      []string          // candidate ids; nil where UseChain is set
	UseChain string            // name of a chain
	Only     bool              // the default order doesn't follow
	Force    bool              // asked even where the request names a model
	Message  map[string]string // this rule's fixed message by language; a language without one has fallback.messages
}

// Deny takes a candidate out of service.
type Deny struct {
	Candidate string
	Reason    string
	Until     time.Time // zero: until the entry is taken out
}

// Cap is what a tenant may spend.
type Cap struct {
	Tenant    string
	USDPerDay float64
}

// Limits bound what a caller may send.
type Limits struct {
	Body int64 // bytes; default 10 MiB
}

// Cache is the second tier.
type Cache struct {
	Mode       string        // "off", "fallback" (default), "front"
	Accept     string        // "strict" (default), "similar"
	TTL        time.Duration // default 168 h
	MaxEntries int           // of the memory store; default 10000
	Shared     bool          // leave the request's user out of the scope
	Corpus     string        // version of what the answers rest on
	Shadow     float64       // share of healthy requests that are looked up to compare, 0 to 1; default 0
}

// Fallback is the last tier.
type Fallback struct {
	Status     int               // 200 (default) or 503
	Structured string            // "error" (default) or "message"
	RetryAfter time.Duration     // default 30 s
	Messages   map[string]string // by language, "zh" and "en" always there
}
