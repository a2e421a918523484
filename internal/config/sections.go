package config

import (
	"net/http"
	"time"

	"go.yaml.in/yaml/v3"
)

// Bounds of whole numbers that only a slip would exceed.
const (
	maxCount  = 1_000_000
	maxTokens = 1_000_000_000
	maxRetry  = 10
)

// defaults is a configuration as it is before the file says anything.
func defaults() *Config {
	return &Config{
		Breaker: Breaker{
			Enabled: true, Mode: "consecutive", FailureThreshold: 2, OpenDuration: 30 * time.Second,
			MaxOpenDuration: 2 * time.Minute, Sample: Sample{Size: 20, MinCalls: 5, FailureRate: 0.5},
			HalfOpenSuccesses: 1, SlowCall: SlowCall{Rate: 1}, AllOpen: "cache",
		},
		Retries:       Retries{Last: 1, Base: 200 * time.Millisecond, Cap: 2 * time.Second},
		Budget:        Budget{Total: 180 * time.Second, Reserve: 2 * time.Second},
		Chat:          Chat{FirstTokenTimeout: 60 * time.Second, ThinkingTimeout: 120 * time.Second},
		ContentPolicy: "return",
		Limits:        Limits{Body: 10 << 20},
		Cache:         Cache{Mode: "fallback", Accept: "strict", TTL: 168 * time.Hour, MaxEntries: 10000},
		Fallback: Fallback{
			Status: http.StatusOK, Structured: "error", RetryAfter: 30 * time.Second,
			Messages: map[string]string{
				"zh": "当前 AI 服务繁忙，请稍后再试。",
				"en": "The assistant is busy right now. Please try again shortly.",
			},
		},
	}
}

// sections are the keys at the top of the file.
func (d *decoder) sections(c *Config) fields {
	return fields{
		"auth":           d.auth(&c.Auth),
		"providers":      d.entries(d.provider(&c.Providers)),
		"breaker":        d.breaker(&c.Breaker),
		"retries":        d.retries(&c.Retries),
		"budget":         d.budget(&c.Budget),
		"chat":           d.chat(&c.Chat),
		"candidates":     d.list(d.candidate(c)),
		"chains":         d.list(d.chain(&c.Chains)),
		"rules":          d.list(d.rule(&c.Rules)),
		"deny":           d.list(d.deny(&c.Deny)),
		"caps":           d.list(d.cap(&c.Caps)),
		"content_policy": d.oneOf(&c.ContentPolicy, "return", "next"),
		"limits":         d.mapping(fields{"body": d.size(&c.Limits.Body)}),
		"cache":          d.cache(&c.Cache),
		"fallback":       d.fallback(&c.Fallback),
	}
}

func (d *decoder) auth(a *Auth) reader {
	key := func(_ int, n *yaml.Node, path string) {
		var k Key
		d.mapping(fields{"tenant": d.id(&k.Tenant), "sha256": d.deferred(&k.SHA256, wrongHash)})(n, path)
		d.require(n, path, "tenant", "sha256")
		a.Keys = append(a.Keys, normal(k))
	}
	return d.mapping(fields{"anonymous": d.boolean(&a.Anonymous), "keys": d.list(key)})
}

func (d *decoder) breaker(b *Breaker) reader {
	return d.mapping(fields{
		"enabled":           d.boolean(&b.Enabled),
		"observe":           d.boolean(&b.Observe),
		"mode":              d.oneOf(&b.Mode, "consecutive", "window", "hybrid"),
		"failure_threshold": d.integer(&b.FailureThreshold, 1, maxCount),
		"open_duration":     d.duration(&b.OpenDuration),
		"max_open_duration": d.duration(&b.MaxOpenDuration),
		"sample": d.mapping(fields{
			"size":         d.integer(&b.Sample.Size, 1, maxCount),
			"min_calls":    d.integer(&b.Sample.MinCalls, 1, maxCount),
			"failure_rate": d.number(&b.Sample.FailureRate, 0, 1, true),
		}),
		"half_open_successes": d.integer(&b.HalfOpenSuccesses, 1, maxCount),
		"slow_call": d.mapping(fields{
			"after": d.optionalDuration(&b.SlowCall.After),
			"rate":  d.number(&b.SlowCall.Rate, 0, 1, true),
		}),
		"all_open": d.oneOf(&b.AllOpen, "cache", "earliest"),
	})
}

func (d *decoder) retries(r *Retries) reader {
	return d.mapping(fields{
		"max":  d.integer(&r.Max, 0, maxRetry),
		"last": d.integer(&r.Last, 0, maxRetry),
		"base": d.duration(&r.Base),
		"cap":  d.duration(&r.Cap),
	})
}

func (d *decoder) budget(b *Budget) reader {
	return d.mapping(fields{"total": d.duration(&b.Total), "reserve": d.optionalDuration(&b.Reserve)})
}

func (d *decoder) chat(c *Chat) reader {
	return d.mapping(fields{
		"default_model":       d.id(&c.DefaultModel),
		"deep_thinking_model": d.id(&c.DeepThinkingModel),
		"first_token_timeout": d.duration(&c.FirstTokenTimeout),
		"thinking_timeout":    d.duration(&c.ThinkingTimeout),
	})
}

func (d *decoder) cache(c *Cache) reader {
	return d.mapping(fields{
		"mode":        d.oneOf(&c.Mode, "off", "fallback", "front"),
		"accept":      d.oneOf(&c.Accept, "strict", "similar"),
		"ttl":         d.duration(&c.TTL),
		"max_entries": d.integer(&c.MaxEntries, 1, 100*maxCount),
		"shared":      d.boolean(&c.Shared),
		"corpus":      d.text(&c.Corpus),
		"shadow":      d.number(&c.Shadow, 0, 1, false),
	})
}

func (d *decoder) fallback(f *Fallback) reader {
	status := func(n *yaml.Node, path string) {
		d.integer(&f.Status, 100, 599)(n, path)
		if f.Status != http.StatusOK && f.Status != http.StatusServiceUnavailable {
			d.fail(n, "%s is 200 or 503", path)
		}
	}
	return d.mapping(fields{
		"status":      status,
		"structured":  d.oneOf(&f.Structured, "error", "message"),
		"retry_after": d.duration(&f.RetryAfter),
		"messages":    d.messages(f.Messages),
	})
}

// messages reads the fixed message by language into what is there already.
func (d *decoder) messages(into map[string]string) reader {
	read := func(lang string) reader {
		return func(n *yaml.Node, path string) {
			s := into[lang]
			d.needed(&s)(n, path)
			into[lang] = s
		}
	}
	return d.mapping(fields{"zh": read("zh"), "en": read("en")})
}

func (d *decoder) rule(into *[]Rule) func(int, *yaml.Node, string) {
	return func(_ int, n *yaml.Node, path string) {
		r := Rule{Message: map[string]string{}}
		d.mapping(fields{
			"name":    d.id(&r.Name),
			"when":    d.needed(&r.When),
			"use":     d.use(&r),
			"only":    d.boolean(&r.Only),
			"force":   d.boolean(&r.Force),
			"message": d.messages(r.Message),
		})(n, path)
		d.require(n, path, "name", "when", "use")
		*into = append(*into, r)
	}
}

// use reads a rule's choice: a list of candidates, or one chain.
func (d *decoder) use(r *Rule) reader {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode {
			d.ids(&r.Use)(n, path)
			return
		}
		if n.Kind != yaml.MappingNode {
			d.fail(n, "%s wants a list of candidates or {chain: name}, not %s", path, what(n))
			return
		}
		d.mapping(fields{"chain": d.id(&r.UseChain)})(n, path)
		d.require(n, path, "chain")
	}
}

func (d *decoder) deny(into *[]Deny) func(int, *yaml.Node, string) {
	return func(_ int, n *yaml.Node, path string) {
		var e Deny
		d.mapping(fields{"candidate": d.id(&e.Candidate), "reason": d.text(&e.Reason), "until": d.moment(&e.Until)})(n, path)
		d.require(n, path, "candidate")
		*into = append(*into, e)
	}
}

func (d *decoder) cap(into *[]Cap) func(int, *yaml.Node, string) {
	return func(_ int, n *yaml.Node, path string) {
		var e Cap
		d.mapping(fields{"tenant": d.id(&e.Tenant), "usd_per_day": d.number(&e.USDPerDay, 0, 1e9, false)})(n, path)
		d.require(n, path, "tenant", "usd_per_day")
		*into = append(*into, e)
	}
}

// require demands keys of the mapping at path; it says nothing more where that is no mapping at all.
func (d *decoder) require(n *yaml.Node, path string, keys ...string) {
	if n.Kind != yaml.MappingNode && !isNull(n) {
		return
	}
	for _, key := range keys {
		if !d.given(join(path, key)) {
			d.fail(n, "%s has no %s", path, key)
		}
	}
}
