package breaker

import (
	"context"
	"sync"
)

// Memory is a store inside the process: the specification of a store, and the one of a fleet of one.
type Memory struct {
	mu      sync.Mutex
	records map[string]Record
}

// NewMemory gives an empty store. Several gates may share it, as processes share a table.
func NewMemory() *Memory { return &Memory{records: map[string]Record{}} }

// Load implements Store.
func (m *Memory) Load(_ context.Context, candidates ...string) (map[string]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make(map[string]Record, len(candidates))
	for _, c := range candidates {
		found[c] = m.records[c]
	}
	return found, nil
}

// Look implements Store.
func (m *Memory) Look(_ context.Context, candidate string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[candidate], nil
}

// Update implements Store.
func (m *Memory) Update(_ context.Context, candidate string, c Change) (Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := c.Apply(m.records[candidate])
	if ok {
		m.records[candidate] = r
	}
	return r, ok || c.made(r), nil
}
