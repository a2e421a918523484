package config

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/internal/providers"
)

// complete fills in defaults that hang on other values.
func (d *decoder) complete(c *Config) {
	if d.exhausted() {
		return
	}
	d.completeProviders(c)
	for i := range c.Candidates {
		if t := &c.Candidates[i].Timeouts; t.FirstToken == 0 {
			t.FirstToken = c.Chat.FirstTokenTimeout
		}
	}
	if !d.given("breaker.max_open_duration") {
		c.Breaker.MaxOpenDuration = max(c.Breaker.MaxOpenDuration, c.Breaker.OpenDuration)
	}
	if !d.given("breaker.sample.min_calls") {
		c.Breaker.Sample.MinCalls = min(c.Breaker.Sample.MinCalls, c.Breaker.Sample.Size)
	}
	if !d.given("retries.cap") {
		c.Retries.Cap = max(c.Retries.Cap, c.Retries.Base)
	}
}

// completeProviders adds the built-in rows that candidates name, and fills in what the file leaves to a row.
func (d *decoder) completeProviders(c *Config) {
	known := map[string]bool{}
	for i := range c.Providers {
		p := &c.Providers[i]
		p.Settings = providers.Complete(p.Settings)
		known[p.Name] = true
	}
	for _, x := range c.Candidates {
		if row, ok := providers.Row(x.Provider); ok && !known[x.Provider] {
			c.Providers = append(c.Providers, Provider{Settings: row})
			known[x.Provider] = true
		}
	}
	slices.SortFunc(c.Providers, func(a, b Provider) int { return strings.Compare(a.Name, b.Name) })
}

// at is the key path of an item of a list.
func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// candidate finds a candidate by its id; "" is nobody's.
func (c *Config) candidate(id string) *Candidate {
	i := slices.IndexFunc(c.Candidates, func(x Candidate) bool { return x.ID == id })
	if i < 0 || id == "" {
		return nil
	}
	return &c.Candidates[i]
}

// provider finds a provider by its name.
func (c *Config) provider(name string) *Provider {
	i := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Providers[i]
}
