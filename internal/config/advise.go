package config

import (
	"slices"
	"strings"
	"time"

	"holdfast/internal/providers"
)

// advise warns of what is allowed but probably not meant.
func (d *decoder) advise(c *Config) {
	if !c.Auth.Anonymous && len(c.Auth.Keys) == 0 && !d.moreKeys {
		d.warnAt("auth", "nobody may call: there are no keys, here or in HOLDFAST_KEYS, and anonymous callers are not allowed")
	}
	d.adviseProviders(c)
	d.adviseFirst(c, "chat.default_model", c.Chat.DefaultModel)
	d.adviseFirst(c, "chat.deep_thinking_model", c.Chat.DeepThinkingModel)
	for i, r := range c.Rules {
		for k, id := range r.Use {
			d.adviseFirst(c, at(at("rules", i)+".use", k), id)
		}
	}
	d.adviseBudget(c)
	d.adviseCaps(c)
	d.adviseCache(c)
}

// adviseProviders warns of providers in use that can't answer as they are: a known one without its key, Azure without
// the resource's address.
func (d *decoder) adviseProviders(c *Config) {
	told := map[string]bool{}
	for i, x := range c.Candidates {
		p := c.provider(x.Provider)
		if p == nil || p.NoClient || told[p.Name] {
			continue
		}
		where := at("candidates", i) + ".provider"
		switch {
		case p.Dialect == "azure" && p.BaseURL == "" && x.BaseURL == "":
			d.warnAt(where, "provider %s has no base_url, such as https://NAME.openai.azure.com", p.Name)
			told[p.Name] = true
		case wantsKey(*p):
			d.warnAt(where, "provider %s has no api_key: add it under providers", p.Name)
			told[p.Name] = true
		}
	}
}

// wantsKey says whether a provider is a public one, at its own address, that was given nothing to identify us.
func wantsKey(p Provider) bool {
	row, ok := providers.Row(p.Name)
	public := ok && p.BaseURL == row.BaseURL && strings.HasPrefix(p.BaseURL, "https://")
	return public && p.APIKey == "" && len(p.Headers) == 0
}

// adviseFirst warns of a first choice that takes no calls.
func (d *decoder) adviseFirst(c *Config, path, id string) {
	x := c.candidate(id)
	denied := slices.ContainsFunc(c.Deny, func(e Deny) bool { return e.Candidate == id })
	if x != nil && (!x.Enabled || denied) {
		d.warnAt(path, "%s: %s takes no calls: it is disabled or denied", path, id)
	}
}

const tooPatient = "its first-token clocks add up to %s, the budget leaves models %s; lower timeouts.first_token or raise budget.total"

// adviseBudget warns of chains whose first-token clocks add up to more than models may take.
func (d *decoder) adviseBudget(c *Config) {
	models := c.Budget.Total - min(c.Budget.Reserve, c.Budget.Total/5)
	for i, chain := range c.Chains {
		ids := []string{chain.Primary}
		for _, e := range chain.Fallbacks {
			ids = append(ids, e.Model)
		}
		if sum := c.patience(ids); sum > models {
			d.warnAt(at("chains", i), "chain %s: "+tooPatient, chain.Name, sum, models)
		}
	}
	var ids []string
	for _, x := range c.Candidates {
		if x.Listed && x.Weight > 0 {
			ids = append(ids, x.ID)
		}
	}
	if sum := c.patience(ids); sum > models {
		d.warnAt("candidates", "the default order: "+tooPatient, sum, models)
	}
}

// patience is how long candidates may keep a request waiting for a first token, one after the other. Those that never
// take a call don't.
func (c *Config) patience(ids []string) time.Duration {
	var sum time.Duration
	for _, id := range ids {
		denied := slices.ContainsFunc(c.Deny, func(e Deny) bool { return e.Candidate == id && e.Until.IsZero() })
		if x := c.candidate(id); x != nil && x.Enabled && !denied {
			sum += x.Timeouts.FirstToken
		}
	}
	return sum
}

// adviseCaps warns of caps that a candidate without a price gets round: what it costs isn't known.
func (d *decoder) adviseCaps(c *Config) {
	for i, e := range c.Caps {
		if e.USDPerDay == 0 {
			continue // nothing gets round it
		}
		var free []string
		for _, x := range c.Candidates {
			if x.Price == nil && x.Enabled && (x.Tenants == nil || slices.Contains(x.Tenants, e.Tenant)) {
				free = append(free, x.ID)
			}
		}
		if len(free) > 0 {
			d.warnAt(at("caps", i), "the cap of %s doesn't count what has no price: %s (price: {input: 0, output: 0} says that it is free)", e.Tenant, strings.Join(free, ", "))
		}
	}
}

// adviseCache warns of answers that get older in front of healthy models than they may be meant to, and of a shadow
// without a cache.
func (d *decoder) adviseCache(c *Config) {
	if c.Cache.Mode == "front" && !d.given("cache.ttl") {
		d.warnAt("cache.mode", "cache.mode front: healthy models are not asked again for cache.ttl, which is %s unless it is set", c.Cache.TTL)
	}
	if c.Cache.Mode == "off" && c.Cache.Shadow > 0 {
		d.warnAt("cache.shadow", "cache.shadow does nothing while cache.mode is off")
	}
}
