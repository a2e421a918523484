package config

import (
	"slices"

	"holdfast/internal/providers"
)

// judge finds what is wrong between values that are right by themselves.
func (d *decoder) judge(c *Config) {
	if d.exhausted() {
		return
	}
	d.judgeProviders(c)
	d.judgeCandidates(c)
	d.judgeChat(c)
	d.judgeChains(c)
	d.judgeRules(c)
	d.judgeDeny(c)
	d.judgeKeys(c)
	d.judgeClocks(c)
	if len(d.problems) == 0 {
		d.advise(c)
	}
}

func (d *decoder) judgeProviders(c *Config) {
	for _, p := range c.Providers {
		path := join("providers", p.Name)
		if p.Dialect == "" && !d.given(path+".dialect") {
			d.failAt(path, "is no built-in provider, so it needs a dialect")
		}
		if p.Dialect != "azure" && d.given(path+".api_version") {
			d.failAt(path+".api_version", "is for the dialect azure only")
		}
		if p.Dialect != "bedrock" && d.given(path+".region") {
			d.failAt(path+".region", "is for the dialect bedrock only")
		}
	}
}

func (d *decoder) judgeCandidates(c *Config) {
	first := map[string]int{}
	enabled := 0
	for i, x := range c.Candidates {
		path := at("candidates", i)
		if d.given(path+".id") && x.ID == "auto" {
			d.failAt(path+".id", "auto means that the rules choose")
		}
		if j, twice := first[x.ID]; twice && x.ID != "" {
			d.failAt(path+".id", "%q is given twice (first on line %d)", d.raw(path+".id"), d.nodes[at("candidates", j)+".id"].Line)
		} else {
			first[x.ID] = i
		}
		if x.Enabled {
			enabled++
		}
		d.judgeCandidate(c, x, path)
	}
	switch {
	case len(c.Candidates) == 0:
		d.fail(d.nodes["candidates"], "there is no candidate")
	case enabled == 0:
		d.failAt("candidates", "every candidate is disabled")
	}
}

func (d *decoder) judgeCandidate(c *Config, x Candidate, path string) {
	p := c.provider(x.Provider)
	switch {
	case x.Provider == "":
	case p == nil:
		d.failAt(path+".provider", "there is no provider %q, neither built in nor under providers", d.raw(path+".provider"))
	case p.Dialect == "script" && x.Model != "":
		d.judgeScript(x.Model, path+".model")
	}
	if p != nil && p.Dialect != "dashscope" && x.Options.Cumulative {
		d.failAt(path+".options.incremental_output", "is for the dialect dashscope only")
	}
	if d.given(path+".timeouts.total") && x.Timeouts.Total > 0 {
		if d.given(path+".timeouts.first_token") && x.Timeouts.FirstToken > x.Timeouts.Total {
			d.failAt(path+".timeouts.first_token", "is longer than total")
		}
	}
}

// judgeScript judges the model of a scripted candidate, which says what it does.
func (d *decoder) judgeScript(model, path string) {
	err := providers.CheckScript(model)
	switch {
	case err == nil:
	case d.raw(path) != model:
		d.failAt(path, "is no script")
	default:
		d.failAt(path, "%s", clip(err.Error(), 200))
	}
}

func (d *decoder) judgeChat(c *Config) {
	d.refer(c, "chat.default_model", c.Chat.DefaultModel)
	d.refer(c, "chat.deep_thinking_model", c.Chat.DeepThinkingModel)
	if x := c.candidate(c.Chat.DeepThinkingModel); x != nil && !x.SupportsThinking {
		d.failAt("chat.deep_thinking_model", "%q has not supports_thinking: true", d.raw("chat.deep_thinking_model"))
	}
}

// refer demands that an id leads to a candidate. An id that couldn't be read has been told already.
func (d *decoder) refer(c *Config, path, id string) {
	if id != "" && c.candidate(id) == nil {
		d.failAt(path, "there is no candidate %q", d.raw(path))
	}
}

func (d *decoder) judgeChains(c *Config) {
	first := map[string]int{}
	for i, chain := range c.Chains {
		path := at("chains", i)
		if j, twice := first[chain.Name]; twice && chain.Name != "" {
			d.failAt(path, "a chain of this name is there already (on line %d)", d.nodes[at("chains", j)].Line)
		} else {
			first[chain.Name] = i
		}
		if chain.Name == "auto" {
			d.failAt(path+".name", "auto means that the rules choose")
		}
		if chain.Name != chain.Primary && c.candidate(chain.Name) != nil {
			d.failAt(path+".name", "%q is a candidate's id, but not of this chain's primary", d.raw(path+".name"))
		}
		d.refer(c, path+".primary", chain.Primary)
		d.judgeEntries(c, chain, path+".fallbacks")
	}
}

func (d *decoder) judgeEntries(c *Config, chain Chain, path string) {
	seen := map[string]bool{chain.Primary: true}
	for i, e := range chain.Fallbacks {
		where := at(path, i) + ".model"
		d.refer(c, where, e.Model)
		if e.Model != "" && seen[e.Model] {
			d.failAt(where, "%q is in this chain already", d.raw(where))
		}
		seen[e.Model] = true
	}
}

func (d *decoder) judgeRules(c *Config) {
	first := map[string]int{}
	for i, r := range c.Rules {
		path := at("rules", i)
		c.Rules[i].When, c.Rules[i].Matches = d.condition(path+".when", r.When)
		if j, twice := first[r.Name]; twice && r.Name != "" {
			d.failAt(path+".name", "%q is given twice (first on line %d)", d.raw(path+".name"), d.nodes[at("rules", j)].Line)
		} else {
			first[r.Name] = i
		}
		for k, id := range r.Use {
			d.refer(c, at(path+".use", k), id)
		}
		if r.UseChain != "" && !slices.ContainsFunc(c.Chains, func(x Chain) bool { return x.Name == r.UseChain }) {
			d.failAt(path+".use.chain", "there is no chain %q", d.raw(path+".use.chain"))
		}
		if r.UseChain != "" && d.given(path+".only") {
			d.failAt(path+".only", "nothing follows a chain anyway")
		}
	}
}

// condition compiles a rule's condition, and gives it as the file has it too. One that couldn't be read has been told
// already.
func (d *decoder) condition(path, when string) (written string, matches Condition) {
	if when == "" {
		return "", nil
	}
	written = d.nodes[path].Value
	matches, err := compile(when)
	switch {
	case err == nil:
	case written != when: // what a reference stands for isn't told
		d.failAt(path, "is no condition")
	default:
		d.failAt(path, "%s", err)
	}
	return written, matches
}

func (d *decoder) judgeDeny(c *Config) {
	seen := map[string]bool{}
	for i, e := range c.Deny {
		path := at("deny", i) + ".candidate"
		d.refer(c, path, e.Candidate)
		if e.Candidate != "" && seen[e.Candidate] {
			d.failAt(path, "%q is denied twice", d.raw(path))
		}
		seen[e.Candidate] = true
	}
	tenants := map[string]bool{}
	for i, e := range c.Caps {
		path := at("caps", i) + ".tenant"
		if e.Tenant != "" && tenants[e.Tenant] {
			d.failAt(path, "%q has two caps", d.raw(path))
		}
		tenants[e.Tenant] = true
	}
}

func (d *decoder) judgeKeys(c *Config) {
	seen := map[string]bool{}
	for i, k := range c.Auth.Keys {
		if k.SHA256 != "" && seen[k.SHA256] {
			d.failAt(at("auth.keys", i), "the same key is there already")
		}
		seen[k.SHA256] = true
	}
}

// judgeClocks finds values that were both given and contradict each other.
func (d *decoder) judgeClocks(c *Config) {
	both := func(a, b string) bool { return d.given(a) && d.given(b) }
	if c.Breaker.MaxOpenDuration < c.Breaker.OpenDuration {
		d.failAt("breaker.max_open_duration", "is shorter than open_duration")
	}
	if c.Breaker.Sample.MinCalls > c.Breaker.Sample.Size {
		d.failAt("breaker.sample.min_calls", "is more than size")
	}
	if c.Breaker.SlowCall.After > 0 && c.Breaker.Mode == "consecutive" {
		d.failAt("breaker.slow_call.after", "is for the modes window and hybrid: a run counts failures only")
	}
	if both("retries.cap", "retries.base") && c.Retries.Cap < c.Retries.Base {
		d.failAt("retries.cap", "is shorter than base")
	}
	if both("budget.total", "budget.reserve") && c.Budget.Reserve >= c.Budget.Total {
		d.failAt("budget.reserve", "leaves nothing of total")
	}
}
