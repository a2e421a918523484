package spend

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Memory is a store inside the process. It remembers two days of a tenant.
type Memory struct {
	mu      sync.Mutex
	tenants map[string]map[Day]int64
}

// NewMemory gives an empty store. Several meters may share it, as processes share a table.
func NewMemory() *Memory { return &Memory{tenants: map[string]map[Day]int64{}} }

// Load implements Store.
func (m *Memory) Load(_ context.Context, tenant string, day Day) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tenants[tenant][day], nil
}

// Add implements Store.
func (m *Memory) Add(_ context.Context, tenant string, day Day, nanos int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	days := m.tenants[tenant]
	if days == nil {
		days = map[Day]int64{}
		m.tenants[tenant] = days
	}
	sum := plus(days[day], nanos)
	days[day] = sum
	if len(days) > 2 {
		delete(days, slices.Min(slices.Collect(maps.Keys(days))))
	}
	return sum, nil
}
