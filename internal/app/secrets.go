package app

import (
	"context"
	"sync"
	"time"

	"holdfast/internal/config"
)

// fill replaces ssm: values. What can't be had leaves its provider without a client, and says so; false: the store
// of parameters was away, so it is worth trying again.
func (a *App) fill(ctx context.Context, c *config.Config) (*config.Config, bool) {
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	filled, warnings, err := a.secrets.Fill(ctx, c)
	if err != nil {
		a.log.Warn("parameters can't be fetched", "error", err)
	}
	for _, w := range warnings {
		a.log.Warn("configuration", "file", w.File, "reason", w.Reason)
	}
	return filled, err == nil
}

// healPause is the least time between two tries to fetch what was missing.
const healPause = 5 * time.Second

// healer remembers a configuration whose parameters couldn't be fetched. It is tried again after answers, as a frozen
// function can't do it in between.
type healer struct {
	mu     sync.Mutex
	config *config.Config // nil: nothing is missing
	next   time.Time
}

func (h *healer) missing(c *config.Config) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.config, h.next = c, time.Now().Add(healPause)
}

// due gives the configuration to try again, once a pause; nil mostly.
func (h *healer) due() *config.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.config == nil || time.Now().Before(h.next) {
		return nil
	}
	h.next = time.Now().Add(healPause)
	return h.config
}

// mend fetches what was missing and swaps the state once all is there.
func (a *App) mend(ctx context.Context) {
	c := a.heal.due()
	if c == nil {
		return
	}
	filled, whole := a.fill(ctx, c)
	if !whole {
		return
	}
	s, err := a.build(filled)
	if err != nil {
		a.log.Error("the configuration can't be used with its parameters", "error", err)
		return
	}
	a.now.Store(s) // requests in flight keep the old state
	a.heal.mu.Lock()
	a.heal.config = nil
	a.heal.mu.Unlock()
}
