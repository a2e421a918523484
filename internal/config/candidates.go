package config

import (
	"regexp"

	"go.yaml.in/yaml/v3"

	"holdfast/internal/providers"
)

// headerName is a token of RFC 9110.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")

// provider reads one account at one provider. What it leaves out comes from the built-in row of its name.
func (d *decoder) provider(into *[]Provider) func(string, *yaml.Node, string) {
	return func(name string, n *yaml.Node, path string) {
		var p Provider
		p.Name = name
		if !idPattern.MatchString(name) {
			d.fail(n, "%s: a provider's name is 1 to 64 of A-Z a-z 0-9 . _ -", path)
		}
		d.mapping(fields{
			"dialect":     d.oneOf(&p.Dialect, providers.Dialects()...),
			"base_url":    d.deferred(&p.BaseURL, wrongLink),
			"api_key":     d.apiKey(&p),
			"headers":     d.headers(&p),
			"api_version": d.deferred(&p.APIVersion, anything),
			"region":      d.deferred(&p.Region, anything),
			"thinking":    d.oneOf(&p.Thinking, "reasoning_effort", "enable_thinking", "chat_template", "thinking", "none"),
		})(n, path)
		*into = append(*into, p)
	}
}

// apiKey reads the key of a provider. One that refers to an unset variable leaves the provider without a client.
func (d *decoder) apiKey(p *Provider) reader {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			if _, missing, _ := d.expand(n.Value); missing != "" {
				p.NoClient = true
				d.warnAt(path, "%s: %s is not set, so the candidates of provider %s are skipped", path, missing, p.Name)
				return
			}
		}
		d.deferred(&p.APIKey, wrongKey)(n, path)
	}
}

func (d *decoder) headers(p *Provider) reader {
	return d.entries(func(name string, n *yaml.Node, path string) {
		if !headerName.MatchString(name) {
			d.fail(n, "%s: no name of a header", path)
			return
		}
		var value string
		d.deferred(&value, wrongHeader)(n, path)
		if p.Headers == nil {
			p.Headers = map[string]string{}
		}
		p.Headers[name] = value
	})
}

func (d *decoder) candidate(c *Config) func(int, *yaml.Node, string) {
	return func(_ int, n *yaml.Node, path string) {
		x := Candidate{Enabled: true, Priority: 100, Weight: 1, Listed: true}
		x.Timeouts = Timeouts{Connect: connectTimeout, Header: headerTimeout, Idle: idleTimeout}
		d.mapping(fields{
			"id":                d.id(&x.ID),
			"provider":          d.id(&x.Provider),
			"model":             d.needed(&x.Model),
			"base_url":          d.link(&x.BaseURL),
			"enabled":           d.boolean(&x.Enabled),
			"priority":          d.integer(&x.Priority, 0, maxCount),
			"weight":            d.integer(&x.Weight, 0, maxCount),
			"supports_thinking": d.boolean(&x.SupportsThinking),
			"listed":            d.boolean(&x.Listed),
			"context_window":    d.integer(&x.ContextWindow, 1, maxTokens),
			"features":          d.features(&x),
			"tenants":           d.ids(&x.Tenants),
			"price":             d.price(&x),
			"timeouts":          d.timeouts(&x.Timeouts),
			"options":           d.options(&x),
		})(n, path)
		d.require(n, path, "id", "provider", "model")
		c.Candidates = append(c.Candidates, x)
	}
}

// link reads a candidate's base URL.
func (d *decoder) link(into *string) reader {
	return func(n *yaml.Node, path string) {
		s, ok := d.words(n, path)
		if !ok {
			return
		}
		if problem := wrongLink(s); problem != "" {
			d.fail(n, "%s %s", path, problem)
			return
		}
		*into = s
	}
}

func (d *decoder) features(x *Candidate) reader {
	return func(n *yaml.Node, path string) {
		x.Features = &Features{}
		d.list(func(_ int, n *yaml.Node, at string) {
			var s string
			d.oneOf(&s, "tools", "vision", "json")(n, at)
			x.Features.Tools = x.Features.Tools || s == "tools"
			x.Features.Vision = x.Features.Vision || s == "vision"
			x.Features.JSON = x.Features.JSON || s == "json"
		})(n, path)
	}
}

func (d *decoder) price(x *Candidate) reader {
	return func(n *yaml.Node, path string) {
		x.Price = &Price{}
		d.mapping(fields{
			"input":        d.number(&x.Price.Input, 0, 1e6, false),
			"cached_input": d.number(&x.Price.CachedInput, 0, 1e6, false),
			"output":       d.number(&x.Price.Output, 0, 1e6, false),
		})(n, path)
		d.require(n, path, "input", "output")
		if !d.given(join(path, "cached_input")) {
			x.Price.CachedInput = x.Price.Input
		}
	}
}

func (d *decoder) timeouts(t *Timeouts) reader {
	return d.mapping(fields{
		"connect":     d.limit(&t.Connect),
		"header":      d.limit(&t.Header),
		"first_token": d.duration(&t.FirstToken),
		"idle":        d.duration(&t.Idle),
		"total":       d.limit(&t.Total),
	})
}

func (d *decoder) options(x *Candidate) reader {
	stream := true
	read := d.mapping(fields{
		"stream":             d.boolean(&stream),
		"incremental_output": d.incremental(x),
		"allow":              d.allow(&x.Options.Allow),
		"image_urls":         d.boolean(&x.Options.ImageURLs),
	})
	return func(n *yaml.Node, path string) {
		read(n, path)
		x.Options.NoStream = !stream
	}
}

// incremental reads options.incremental_output: false means that each event repeats the whole text.
func (d *decoder) incremental(x *Candidate) reader {
	return func(n *yaml.Node, path string) {
		grows := true
		d.boolean(&grows)(n, path)
		x.Options.Cumulative = !grows
	}
}

// allow reads names of request fields.
func (d *decoder) allow(into *[]string) reader {
	return d.list(func(_ int, n *yaml.Node, path string) {
		var s string
		d.needed(&s)(n, path)
		*into = append(*into, s)
	})
}

func (d *decoder) chain(into *[]Chain) func(int, *yaml.Node, string) {
	return func(_ int, n *yaml.Node, path string) {
		c := Chain{Fallbacks: []Entry{}}
		d.mapping(fields{
			"name":      d.id(&c.Name),
			"primary":   d.id(&c.Primary),
			"fallbacks": d.list(d.entry(&c.Fallbacks)),
		})(n, path)
		d.require(n, path, "primary")
		if c.Name == "" {
			c.Name = c.Primary
		}
		*into = append(*into, c)
	}
}

func (d *decoder) entry(into *[]Entry) func(int, *yaml.Node, string) {
	return func(_ int, n *yaml.Node, path string) {
		var e Entry
		d.mapping(fields{
			"model":       d.id(&e.Model),
			"on_timeout":  d.optionalBool(&e.OnTimeout),
			"on_status":   d.statuses(&e.OnStatus),
			"max_retries": d.optionalInt(&e.MaxRetries, 0, maxRetry),
		})(n, path)
		d.require(n, path, "model")
		*into = append(*into, e)
	}
}

// statuses reads a list of error statuses. An empty list isn't an absent one.
func (d *decoder) statuses(into *[]int) reader {
	return func(n *yaml.Node, path string) {
		*into = []int{}
		d.list(func(_ int, n *yaml.Node, at string) {
			var status int
			d.integer(&status, 400, 599)(n, at)
			*into = append(*into, status)
		})(n, path)
	}
}
