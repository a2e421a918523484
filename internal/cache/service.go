package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// Cache looks answers up and keeps them, by the rules of this package, in a [Store]. Safe for concurrent use.
type Cache struct {
	settings Settings
	store    Store
	embedder Embedder
	log      *slog.Logger
}

var _ Service = (*Cache)(nil)

const (
	modeOff       = "off"
	modeFront     = "front"
	acceptSimilar = "similar"

	ruleExact     = "exact"
	ruleCanonical = "canonical"
	ruleSimilar   = "similar"

	defaultTTL = 168 * time.Hour
	candidates = 5    // similar entries that are looked at more closely
	batch      = 1000 // entries that one statement expires
)

// New makes a cache. The store is the cache's from then on: Close closes it.
func New(s Settings, store Store, e Embedder, log *slog.Logger) *Cache {
	if s.TTL <= 0 {
		s.TTL = defaultTTL
	}
	return &Cache{settings: s, store: store, embedder: e, log: log}
}

// Lookup implements [Service]: exact, then canonical, then similar.
func (c *Cache) Lookup(ctx context.Context, q Question) (Hit, bool, error) {
	if c.settings.Mode == modeOff || q.NoCache || !askable(q) {
		return Hit{}, false, nil
	}
	k := keyOf(c.settings, q)
	e, found, err := c.store.Find(ctx, k.Key)
	switch {
	case errors.Is(err, ErrForgotten):
		return Hit{}, false, nil
	case err != nil:
		return Hit{}, false, err
	case found:
		return same(e, k.Key), true, nil
	}
	return c.similar(ctx, k, q.Text)
}

// Front implements [Service].
func (c *Cache) Front(ctx context.Context, q Question) (Hit, bool, error) {
	if c.settings.Mode != modeFront || q.NoCache || !askable(q) {
		return Hit{}, false, nil
	}
	k := keyOf(c.settings, q).Key
	k.Scope = frontScope(k.Scope, q.Shape)
	e, found, err := c.store.Glance(ctx, k)
	if err != nil || !found {
		if errors.Is(err, ErrForgotten) {
			err = nil
		}
		return Hit{}, false, err
	}
	return same(e, k), true, nil
}

// same is the hit of an entry that was found by its keys.
func same(e Entry, k Key) Hit {
	if e.Exact == k.Exact {
		return hitOf(e, ruleExact, 1)
	}
	return hitOf(e, ruleCanonical, 1)
}

// similar looks for a question that is so alike that no gate holds it back. In doubt it finds none.
func (c *Cache) similar(ctx context.Context, k key, text string) (Hit, bool, error) {
	least, ok := c.least(k.form.lang)
	if !k.similar || !ok {
		return Hit{}, false, nil
	}
	v, err := c.embed(ctx, text)
	if err != nil || v.Values == nil {
		return Hit{}, false, err
	}
	hits, err := c.alike(ctx, k, v, least)
	if err != nil || len(hits) == 0 {
		return Hit{}, false, err
	}
	hit := hitOf(hits[0].Entry, ruleSimilar, hits[0].similarity)
	hit.Question, hit.Labelled = hits[0].Question, c.settings.Accept == acceptSimilar
	return hit, true, nil
}

// alike gives the stored questions that are so alike that no gate holds them back, nearest first.
func (c *Cache) alike(ctx context.Context, k key, v Vector, least float64) (out []nearby, err error) {
	entries, err := c.store.Near(ctx, Near{Scope: k.Scope, Embedder: c.embedder.ID(), Vector: v.Values, Limit: candidates})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		// Stored vectors are rounded: what decides is made anew from the stored text.
		stored, err := c.embed(ctx, e.Question)
		if err != nil {
			return nil, err
		}
		similarity := cosine(v.Values, stored.Values)
		if similarity < least || v.Unknown != stored.Unknown {
			continue
		}
		if sure, ok := c.passes(k.form, canonical(e.Question)); ok {
			out = append(out, nearby{e, similarity, sure})
		}
	}
	return out, nil
}

// nearby is a stored entry and how near its question is.
type nearby struct {
	Entry
	similarity float64
	sure       bool // whatever differs, no word of it says another thing
}

// passes says whether no gate holds a similar question back, and whether that is sure: where the answer will be
// labelled, words that are only alike count as the same and less may hold it back.
func (c *Cache) passes(asked, stored form) (sure, ok bool) {
	if slices.Equal(asked.all(), stored.all()) {
		return false, false // the keys differ: what is asked for stands elsewhere
	}
	if blockedBy(gates(), asked, stored) == "" {
		return true, true
	}
	return false, c.settings.Accept == acceptSimilar && blockedBy(labelledGates(), likened(asked), likened(stored)) == ""
}

// least is the similarity from which a question of a language may be the same; false: none is enough.
func (c *Cache) least(lang string) (float64, bool) {
	t, ok := thresholds(c.embedder.ID(), lang)
	if c.settings.Accept == acceptSimilar {
		return t.similar, ok
	}
	return t.strict, ok
}

// Store implements [Service]. In mode front the answer is kept twice: for whoever asks the very same of the same model,
// and for those whom no model answers.
func (c *Cache) Store(ctx context.Context, q Question, answer string) error {
	if c.settings.Mode == modeOff || !askable(q) || !storable(q, answer) {
		return nil
	}
	k := keyOf(c.settings, q)
	e := Entry{Key: k.Key, User: userKey(q.Tenant, q.User), Answer: answer, TTL: jitter(c.settings.TTL)}
	if !c.store.Known(e.Key) {
		if err := c.store.Put(ctx, c.locate(ctx, e, k, q.Text)); err != nil {
			return err
		}
	}
	if c.settings.Mode != modeFront {
		return nil
	}
	e.Scope = frontScope(e.Scope, q.Shape)
	return c.store.Put(ctx, e)
}

// locate adds to an entry the place among others where similar questions look for it, if they may.
func (c *Cache) locate(ctx context.Context, e Entry, k key, text string) Entry {
	if _, ok := c.least(k.form.lang); !ok || !k.similar {
		return e
	}
	v, err := c.embed(ctx, text)
	if err != nil {
		c.log.WarnContext(ctx, "cache entry without a vector", "error", err)
	}
	if v.Values != nil {
		e.Question, e.Embedder, e.Vector = text, c.embedder.ID(), v.Values
		e.Replaces = c.replaced(ctx, k, v)
	}
	return e
}

// replaced are the exact keys of what asks the same as k by strict similarity.
func (c *Cache) replaced(ctx context.Context, k key, v Vector) (exact []Hash) {
	t, _ := thresholds(c.embedder.ID(), k.form.lang)
	same, err := c.alike(ctx, k, v, t.strict)
	if err != nil {
		return nil // they stay, which only takes room
	}
	for _, s := range same {
		if s.sure {
			exact = append(exact, s.Exact)
		}
	}
	return exact
}

// Expire implements [Service].
func (c *Cache) Expire(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := c.store.Expire(ctx, batch)
		total += n
		if err != nil || n < batch {
			return total, err
		}
	}
}

// Close implements [Service].
func (c *Cache) Close() { c.store.Close() }

func (c *Cache) embed(ctx context.Context, text string) (Vector, error) {
	v, err := c.embedder.Embed(ctx, simplify(text))
	if err != nil {
		return Vector{}, errors.New("embed: " + c.embedder.ID() + " failed")
	}
	return v, nil
}

// jitter takes up to a tenth off a time, so that what was stored together doesn't expire together.
func jitter(ttl time.Duration) time.Duration {
	return ttl - time.Duration(rand.Int64N(int64(ttl)/10+1))
}

func hitOf(e Entry, rule string, similarity float64) Hit {
	return Hit{Rule: rule, Similarity: similarity, Age: e.Age, Text: e.Answer, Key: hex.EncodeToString(e.Exact[:])}
}
