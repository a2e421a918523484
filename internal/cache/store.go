package cache

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrAway is what a store says while it isn't asked, because it failed a moment ago.
	ErrAway = errors.New("cache store is away")
	// ErrForgotten is what Find says of a question that is not to be answered: see [Store.Forget].
	ErrForgotten = errors.New("the question is forgotten")
)

// Key is what an entry is found by.
type Key struct {
	Tenant    Hash // for tombstones and purges; the scope has it in it as well
	Scope     Hash
	Exact     Hash
	Canonical Hash // zero: found by Exact only
}

// Entry is a stored answer.
type Entry struct {
	Key
	User     Hash // zero: the caller sent none
	Question string
	Answer   string
	Embedder string    // id of what made Vector; "" for none
	Vector   []float32 // of length 1; nil: not found by similarity
	// Replaces are the exact keys of entries of the scope whose place this one takes, beside those of its own keys.
	Replaces []Hash
	// TTL is how long the entry lives, counted by the store's clock from Put on.
	TTL time.Duration
	Age time.Duration // filled in by the store
}

// Selection says which entries a purge deletes: all of the tenant, unless it says more.
type Selection struct {
	Tenant    Hash
	User      Hash   // zero: anybody's
	Questions []Hash // exact or canonical keys; nil: any
}

// Store keeps entries. All methods are safe for concurrent use, respect ctx's deadline and never see beyond a scope.
// Entries past their time are never given out.
type Store interface {
	// Find gives the entry of a scope with the exact key, else the newest with the canonical one (zero: none); or
	// ErrForgotten.
	Find(ctx context.Context, k Key) (Entry, bool, error)
	// Glance is Find for somebody in a hurry, whose deadline is short. What it finds of the store's speed is its own
	// concern: too slow for a glance may be quick enough for Find.
	Glance(ctx context.Context, k Key) (Entry, bool, error)
	// Near gives up to limit entries of a scope whose vectors are nearest by cosine, nearest first; none whose question
	// is forgotten.
	Near(ctx context.Context, near Near) ([]Entry, error)
	// Put keeps an entry, unless it is known or its question is forgotten. It takes the place of one with its exact
	// key, of those with its canonical key and of those it names: what asks the same has one answer, the newest.
	Put(ctx context.Context, e Entry) error
	// Known says whether this process stored the entry within the last hour, and it lives: it isn't written again.
	Known(k Key) bool
	// Expire deletes up to limit entries that are past their time and says how many.
	Expire(ctx context.Context, limit int) (int, error)
	// Purge deletes up to limit entries of a selection, in every scope, and says how many.
	Purge(ctx context.Context, s Selection, limit int) (int, error)
	// Forget lays tombstones on a tenant's questions, exact or canonical keys, and on the canonical keys of entries with
	// such an exact key: until they expire nothing is found by these keys, and nothing is kept under them. It deletes
	// nothing; a Purge after it does.
	Forget(ctx context.Context, tenant Hash, questions []Hash, ttl time.Duration) error
	// Close frees what the store holds. Nothing may be called after it.
	Close()
}

// Near says what to look for in the neighbourhood of a vector.
type Near struct {
	Scope    Hash
	Embedder string
	Vector   []float32
	Limit    int
}
