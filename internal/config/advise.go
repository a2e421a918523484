package config

import (
	"slices"
	"time"
)

// advise warns of what is allowed but probably not meant.
func (d *decoder) advise(c *Config) {
	if !c.Auth.Anonymous && len(c.Auth.Keys) == 0 && !d.moreKeys {
		d.warnAt("auth", "nobody may call: there are no keys, and anonymous callers are not allowed")
	}
	d.adviseFirst(c, "chat.default_model", c.Chat.DefaultModel)
	d.adviseFirst(c, "chat.deep_thinking_model", c.Chat.DeepThinkingModel)
	d.adviseBudget(c)
}

// adviseFirst warns of a first choice that takes no calls.
func (d *decoder) adviseFirst(c *Config, path, id string) {
	x := c.candidate(id)
	denied := slices.ContainsFunc(c.Deny, func(e Deny) bool { return e.Candidate == id })
	if x != nil && (!x.Enabled || denied) {
		d.warnAt(path, "%s: %s takes no calls: it is disabled or denied", path, id)
	}
}

// adviseBudget warns of chains whose first-token clocks add up to more than models may take.
func (d *decoder) adviseBudget(c *Config) {
	models := c.Budget.Total - min(c.Budget.Reserve, c.Budget.Total/5)
	for i, chain := range c.Chains {
		ids := []string{chain.Primary}
		for _, e := range chain.Fallbacks {
			ids = append(ids, e.Model)
		}
		if sum := c.patience(ids); sum > models {
			d.warnAt(at("chains", i), "chain %s: its first-token clocks add up to %s, the budget leaves models %s", chain.Name, sum, models)
		}
	}
	var ids []string
	for _, x := range c.Candidates {
		if x.Listed {
			ids = append(ids, x.ID)
		}
	}
	if sum := c.patience(ids); sum > models {
		d.warnAt("candidates", "the default order: its first-token clocks add up to %s, the budget leaves models %s", sum, models)
	}
}

// patience is how long candidates may keep a request waiting for a first token, one after the other.
func (c *Config) patience(ids []string) time.Duration {
	var sum time.Duration
	for _, id := range ids {
		if x := c.candidate(id); x != nil && x.Enabled {
			sum += x.Timeouts.FirstToken
		}
	}
	return sum
}
