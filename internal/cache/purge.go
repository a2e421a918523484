package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Target says what of a tenant is purged or forgotten: all, unless it says more.
type Target struct {
	Tenant   string
	User     string // what callers send as user; "": anybody's
	Question string // one that stands alone, without earlier turns; "": any
	Key      string // exact_key or canonical_key of an entry in hex, for a question with earlier turns; "": any
}

// ErrTarget is of a target that isn't one.
var ErrTarget = errors.New("which answers is not clear")

// selection is a target in the store's words.
func (t Target) selection() (Selection, error) {
	s := Selection{Tenant: tenantKey(t.Tenant), User: userKey(t.Tenant, t.User)}
	switch {
	case t.Tenant == "":
		return s, fmt.Errorf("%w: a tenant has to be named", ErrTarget)
	case t.Question != "" && t.Key != "":
		return s, fmt.Errorf("%w: either a question or a key, not both", ErrTarget)
	case t.Question != "":
		k := keyOf(Settings{}, Question{Text: t.Question})
		s.Questions = []Hash{k.Exact}
		if k.Canonical != (Hash{}) {
			s.Questions = append(s.Questions, k.Canonical)
		}
	case t.Key != "":
		key, err := hex.DecodeString(t.Key)
		if err != nil || len(key) != len(Hash{}) {
			return s, fmt.Errorf("%w: a key has 64 digits of hex", ErrTarget)
		}
		s.Questions = []Hash{Hash(key)}
	}
	return s, nil
}

// Purge implements [Service].
func (c *Cache) Purge(ctx context.Context, t Target) (int, error) {
	s, err := t.selection()
	if err != nil {
		return 0, err
	}
	return c.purge(ctx, s)
}

// purge goes on until nothing is left: a batch may come out smaller than it may be when others delete too.
func (c *Cache) purge(ctx context.Context, s Selection) (total int, err error) {
	for {
		n, err := c.store.Purge(ctx, s, batch)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}

// Forget implements [Service]. It is the tenant's question that is forgotten, whoever asked it.
func (c *Cache) Forget(ctx context.Context, t Target, d time.Duration) (int, error) {
	t.User = ""
	s, err := t.selection()
	if err != nil {
		return 0, err
	}
	if s.Questions == nil {
		return 0, fmt.Errorf("%w: a question or a key has to be named", ErrTarget)
	}
	if err := c.store.Forget(ctx, s.Tenant, s.Questions, d); err != nil {
		return 0, err
	}
	return c.purge(ctx, s)
}
