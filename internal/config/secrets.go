package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Fetcher fetches parameters of a parameter store by their paths (/a/b), all in one batch. A path that doesn't
// exist is left out of the result; that is no error.
type Fetcher interface {
	Fetch(ctx context.Context, paths []string) (map[string]string, error)
}

// Secrets keeps the values of ssm: references for a process, over any number of configurations. Safe for
// concurrent use.
type Secrets struct {
	fetcher Fetcher

	mu     sync.Mutex
	values map[string]string // by path
}

// NewSecrets makes an empty keeper.
func NewSecrets(f Fetcher) *Secrets {
	return &Secrets{fetcher: f, values: map[string]string{}}
}

// References are the paths that the configuration refers to, sorted. None is the common case.
func (c *Config) References() []string {
	paths := map[string]bool{}
	c.unshared().each(func(_ string, value *string, _ func(string) string) string {
		if path, ok := strings.CutPrefix(*value, secretPrefix); ok {
			paths[path] = true
		}
		return ""
	})
	return slices.Sorted(maps.Keys(paths))
}

// Fill gives the configuration with its references replaced; c itself stays as it is. What isn't known yet is
// fetched in one batch. A provider one of whose values can't be had has no client, a caller's key is left out; the
// warnings say which. The error is the fetcher's; the configuration is usable even then.
func (s *Secrets) Fill(ctx context.Context, c *Config) (*Config, []Warning, error) {
	paths := c.References()
	if len(paths) == 0 {
		return c, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unknown := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { _, ok := s.values[p]; return ok })
	err := s.fetch(ctx, unknown)
	filled, warnings := c.filled(s.values)
	return filled, warnings, err
}

// Refresh fetches every reference of c again. What can't be had keeps the value that it has.
func (s *Secrets) Refresh(ctx context.Context, c *Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetch(ctx, c.References())
}

func (s *Secrets) fetch(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	got, err := s.fetcher.Fetch(ctx, paths)
	for path, value := range got {
		s.values[path] = strings.TrimSpace(value)
	}
	if err != nil {
		return fmt.Errorf("fetch %d parameters: %w", len(paths), err)
	}
	return nil
}

// unshared is a copy of c whose keys and providers may be changed.
func (c *Config) unshared() *Config {
	out := *c
	out.Auth.Keys = slices.Clone(c.Auth.Keys)
	out.Providers = slices.Clone(c.Providers)
	for i := range out.Providers {
		out.Providers[i].Headers = maps.Clone(c.Providers[i].Headers)
	}
	return &out
}

// filled is a copy of c with values in the place of references.
func (c *Config) filled(values map[string]string) (*Config, []Warning) {
	out := c.unshared()
	var warnings []Warning
	out.each(func(where string, value *string, check func(string) string) string {
		path, ok := strings.CutPrefix(*value, secretPrefix)
		if !ok {
			return ""
		}
		problem := fill(value, values[path], check)
		if problem != "" {
			warnings = append(warnings, Warning{c.Source, 0, fmt.Sprintf("%s: the parameter %s %s", where, path, problem)})
		}
		return problem
	})
	out.Auth.Keys = slices.DeleteFunc(out.Auth.Keys, func(k Key) bool { return k.SHA256 == "" })
	return out, warnings
}

// fill puts a value in its place, or nothing where it can't be used.
func fill(into *string, value string, check func(string) string) (problem string) {
	*into = ""
	if value == "" {
		return "has no value"
	}
	if problem := check(value); problem != "" {
		return problem
	}
	*into = value
	return ""
}

// each visits every value that may be a reference, and may change it. Where visit tells of a problem, the provider loses its client.
func (c *Config) each(visit func(where string, value *string, check func(string) string) string) {
	for i := range c.Auth.Keys {
		k := &c.Auth.Keys[i]
		visit("auth.keys of tenant "+k.Tenant, &k.SHA256, wrongHash)
		*k = normal(*k)
	}
	for i := range c.Providers {
		p := &c.Providers[i]
		at := "providers." + p.Name
		bad := visit(at+".api_key", &p.APIKey, wrongKey)
		bad += visit(at+".base_url", &p.BaseURL, wrongLink)
		bad += visit(at+".api_version", &p.APIVersion, anything)
		bad += visit(at+".region", &p.Region, anything)
		for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
			value := p.Headers[name]
			bad += visit(at+".headers."+name, &value, wrongHeader)
			p.Headers[name] = value
		}
		p.NoClient = p.NoClient || bad != ""
	}
}
