package cache

import (
	"context"
	"errors"
	"time"
)

// ErrAway is what a store says while it isn't asked, because it failed a moment ago.
var ErrAway = errors.New("cache store is away")

// Entry is a stored answer.
type Entry struct {
	Scope     Hash
	Exact     Hash
	Canonical Hash // zero: found by Exact only
	Question  string
	Answer    string
	Embedder  string    // id of what made Vector; "" for none
	Vector    []float32 // of length 1; nil: not found by similarity
	// TTL is how long the entry lives, counted by the store's clock from Put on.
	TTL time.Duration
	Age time.Duration // filled in by the store
}

// Store keeps entries. All methods are safe for concurrent use, respect ctx's deadline and never see beyond a scope.
// Entries past their time are never given out.
type Store interface {
	// Find gives the entry of a scope with the exact key, else the newest with the canonical one (zero: none).
	Find(ctx context.Context, scope, exact, canonical Hash) (Entry, bool, error)
	// Near gives up to limit entries of a scope whose vectors are nearest by cosine, nearest first.
	Near(ctx context.Context, near Near) ([]Entry, error)
	// Put keeps an entry. It takes the place of one with its exact key and of those with its canonical key: what
	// asks the same has one answer, the newest. An entry already known as stored isn't written again by the same
	// process while it lives.
	Put(ctx context.Context, e Entry) error
	// Expire deletes up to limit entries that are past their time and says how many.
	Expire(ctx context.Context, limit int) (int, error)
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
