// Package cache answers a question again that a model has answered before.
//
// Its one idea: a wrong answer in an outage is worse than the fixed message. So what must match exactly comes
// first, as a hashed scope that no similarity can cross; then the same text, then the same canonical text, and only
// then a similar one. Only complete answers are kept, and only of questions that will mean the same tomorrow.
package cache

import (
	"context"
	"time"
)

// Question is what the cache looks at of a request.
type Question struct {
	Tenant      string
	User        string // "" if the caller sent none
	System      string // all system and developer messages, joined
	Turns       []Turn // earlier messages, without the last of the user
	Text        string // the last user message
	Tools       []byte // the tools as JSON, nil for none
	Format      []byte // response_format and whatever else shapes the answer, as JSON; nil for none
	Attachments []string
	// Shape is what else an answer depends on, such as who gives it and how warm: the front cache alone tells it apart.
	Shape   []string
	NoCache bool // don't look up
	NoStore bool // don't store
}

// Turn is an earlier message.
type Turn struct{ Role, Text string }

// Hit is a stored answer.
type Hit struct {
	Rule       string // exact, canonical, similar
	Similarity float64
	Age        time.Duration
	Text       string
	Question   string // the earlier question, for the rule similar
	Key        string // the entry's exact key in hex: what a purge knows it by
	// Labelled: whoever gets the answer has to be told that it is one to Question, which is similar to his.
	Labelled bool
}

// Settings are the cache's share of the configuration.
type Settings struct {
	Mode       string        // off, fallback (default), front
	Accept     string        // strict (default), similar
	TTL        time.Duration // default 168 h
	MaxEntries int           // of the memory store; default 10000
	Shared     bool          // leave User out of the scope
	Corpus     string        // version of what the answers rest on; part of the scope
	Generation string        // of purges; part of the scope: a new one forgets all that was stored before
}

// Service is what the application uses of a cache. *Cache implements it.
type Service interface {
	// Lookup looks for an answer; false is a miss, also where the store is away (the error then says why).
	Lookup(ctx context.Context, q Question) (Hit, bool, error)
	// Front looks for an answer that may be given before any model is asked: of the same Shape, exact and canonical only.
	// It finds nothing but in mode front.
	Front(ctx context.Context, q Question) (Hit, bool, error)
	// Store keeps a complete answer, if the rules allow that.
	Store(ctx context.Context, q Question, answer string) error
	// Expire deletes what is past its time, in batches, and says how many.
	Expire(ctx context.Context) (int, error)
	// Purge deletes entries for good and says how many. What is being answered meanwhile may be stored after it.
	Purge(ctx context.Context, t Target) (int, error)
	// Forget deletes the entries of a question, and keeps it from being answered and stored for a time.
	Forget(ctx context.Context, t Target, d time.Duration) (int, error)
	// Close closes connections.
	Close()
}
