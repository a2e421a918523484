package cache

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is the store of one process: bounded, what was used least lately goes first.
type Memory struct {
	mu        sync.Mutex
	max       int
	used      *list.List // of *memoryEntry, most lately used first
	exact     map[place]*list.Element
	canonical map[place]*list.Element
	scopes    map[Hash]map[*list.Element]struct{}
	forgotten map[place]time.Time // a tenant's questions, and until when
}

// place is a key inside its scope, or its tenant.
type place struct{ in, key Hash }

type memoryEntry struct {
	Entry
	stored, expires time.Time
}

const defaultMaxEntries = 10000

// NewMemory makes a store that holds at most maxEntries; 0 means 10000.
func NewMemory(maxEntries int) *Memory {
	if maxEntries <= 0 {
		maxEntries = defaultMaxEntries
	}
	return &Memory{
		max: maxEntries, used: list.New(), exact: map[place]*list.Element{}, canonical: map[place]*list.Element{},
		scopes: map[Hash]map[*list.Element]struct{}{}, forgotten: map[place]time.Time{},
	}
}

// Find implements [Store].
func (m *Memory) Find(_ context.Context, k Key) (Entry, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.isForgotten(k, now) {
		return Entry{}, false, ErrForgotten
	}
	for _, element := range []*list.Element{m.exact[place{k.Scope, k.Exact}], m.canonical[place{k.Scope, k.Canonical}]} {
		if element == nil {
			continue
		}
		e := element.Value.(*memoryEntry)
		if e.expired(now) {
			m.remove(element)
			continue
		}
		m.used.MoveToFront(element)
		return e.at(now), true, nil
	}
	return Entry{}, false, nil
}

// Glance implements [Store].
func (m *Memory) Glance(ctx context.Context, k Key) (Entry, bool, error) { return m.Find(ctx, k) }

// Near implements [Store] by comparing with every vector of the scope. Others don't wait for that: entries never change.
func (m *Memory) Near(_ context.Context, near Near) ([]Entry, error) {
	now := time.Now()
	best := make([]scored, 0, near.Limit+1) // nearest first
	for _, e := range m.members(near, now) {
		s := scored{e, cosine(e.Vector, near.Vector)}
		at, _ := slices.BinarySearchFunc(best, s, func(a, b scored) int { return cmp.Compare(b.similarity, a.similarity) })
		if at < near.Limit {
			best = slices.Insert(best, at, s)
			best = best[:min(len(best), near.Limit)]
		}
	}
	out := make([]Entry, len(best))
	for i, s := range best {
		out[i] = s.e.at(now)
	}
	return out, nil
}

// members are the entries of a scope that have a vector to compare with.
func (m *Memory) members(near Near, now time.Time) []*memoryEntry {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*memoryEntry, 0, len(m.scopes[near.Scope]))
	for element := range m.scopes[near.Scope] {
		if e := element.Value.(*memoryEntry); e.Embedder == near.Embedder && e.Vector != nil && !e.expired(now) && !m.isForgotten(e.Key, now) {
			out = append(out, e)
		}
	}
	return out
}

type scored struct {
	e          *memoryEntry
	similarity float64
}

// Put implements [Store].
func (m *Memory) Put(_ context.Context, e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.isForgotten(e.Key, now) {
		return nil
	}
	if old := m.exact[place{e.Scope, e.Exact}]; old != nil {
		if !old.Value.(*memoryEntry).expired(now) {
			m.used.MoveToFront(old)
			return nil
		}
		m.remove(old)
	}
	if old := m.canonical[place{e.Scope, e.Canonical}]; old != nil {
		m.remove(old)
	}
	for _, exact := range e.Replaces {
		if old := m.exact[place{e.Scope, exact}]; old != nil {
			m.remove(old)
		}
	}
	e.Replaces = nil
	m.add(&memoryEntry{Entry: e, stored: now, expires: now.Add(e.TTL)})
	m.shrink()
	return nil
}

// Resize changes how many entries the store holds at most; 0 means 10000.
func (m *Memory) Resize(maxEntries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.max = maxEntries; m.max <= 0 {
		m.max = defaultMaxEntries
	}
	m.shrink()
}

func (m *Memory) shrink() {
	for m.used.Len() > m.max {
		m.remove(m.used.Back())
	}
}

// Known implements [Store].
func (m *Memory) Known(k Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	element := m.exact[place{k.Scope, k.Exact}]
	return element != nil && !element.Value.(*memoryEntry).expired(time.Now())
}

// Expire implements [Store].
func (m *Memory) Expire(_ context.Context, limit int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.forgotten, func(_ place, until time.Time) bool { return !now.Before(until) })
	return m.removeAll(limit, func(e *memoryEntry) bool { return e.expired(now) }), nil
}

// Purge implements [Store].
func (m *Memory) Purge(_ context.Context, s Selection, limit int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removeAll(limit, func(e *memoryEntry) bool { return s.has(e.Entry) }), nil
}

// has says whether an entry is among those of a selection.
func (s Selection) has(e Entry) bool {
	return e.Tenant == s.Tenant && (s.User == Hash{} || e.User == s.User) &&
		(s.Questions == nil || slices.Contains(s.Questions, e.Exact) || slices.Contains(s.Questions, e.Canonical))
}

// Forget implements [Store].
func (m *Memory) Forget(_ context.Context, tenant Hash, questions []Hash, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	until := time.Now().Add(ttl)
	for _, question := range questions {
		m.forgotten[place{tenant, question}] = until
	}
	for element := m.used.Front(); element != nil; element = element.Next() {
		e := element.Value.(*memoryEntry)
		if e.Tenant == tenant && e.Canonical != (Hash{}) && slices.Contains(questions, e.Exact) {
			m.forgotten[place{tenant, e.Canonical}] = until
		}
	}
	return nil
}

func (m *Memory) isForgotten(k Key, now time.Time) bool {
	return now.Before(m.forgotten[place{k.Tenant, k.Exact}]) || now.Before(m.forgotten[place{k.Tenant, k.Canonical}])
}

// Close implements [Store]; there is nothing to free.
func (m *Memory) Close() {}

func (m *Memory) add(e *memoryEntry) {
	element := m.used.PushFront(e)
	m.exact[place{e.Scope, e.Exact}] = element
	if e.Canonical != (Hash{}) {
		m.canonical[place{e.Scope, e.Canonical}] = element
	}
	if m.scopes[e.Scope] == nil {
		m.scopes[e.Scope] = map[*list.Element]struct{}{}
	}
	m.scopes[e.Scope][element] = struct{}{}
}

// removeAll removes up to limit entries, what was used least lately first, and says how many.
func (m *Memory) removeAll(limit int, which func(*memoryEntry) bool) (count int) {
	for element := m.used.Back(); element != nil && count < limit; {
		before := element.Prev()
		if which(element.Value.(*memoryEntry)) {
			m.remove(element)
			count++
		}
		element = before
	}
	return count
}

func (m *Memory) remove(element *list.Element) {
	e := m.used.Remove(element).(*memoryEntry)
	delete(m.exact, place{e.Scope, e.Exact})
	delete(m.canonical, place{e.Scope, e.Canonical})
	delete(m.scopes[e.Scope], element)
	if len(m.scopes[e.Scope]) == 0 {
		delete(m.scopes, e.Scope)
	}
}

func (e *memoryEntry) expired(now time.Time) bool { return !now.Before(e.expires) }

// at gives the entry out as it is at a time.
func (e *memoryEntry) at(now time.Time) Entry {
	out := e.Entry
	out.Age = now.Sub(e.stored)
	return out
}
