package routing

import "slices"

// maxHeads bounds what is read early: more items in one read cost more than reading the one in question when it is
// known.
const maxHeads = 8

// heads are the candidates that may come first in a request that names none, the likeliest before the others: those
// of the default order, who thinks, and whoever a rule puts first. Which rule matches isn't known before the request
// is decoded, so they are all read at once: one read does for a healthy request whatever it asks.
func (s *Settings) heads() []string {
	var ids []string
	add := func(more ...string) {
		for _, id := range more {
			if c := s.candidate(id); c != nil && c.off() == "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	add(s.DefaultModel)
	if first := s.candidate(s.DefaultModel); first == nil || first.off() != "" || first.Tenants != nil {
		add(s.foremost()...)
	}
	add(s.ThinkingModel)
	for i := range s.Rules {
		add(s.foremostOf(&s.Rules[i]))
	}
	return ids[:min(len(ids), maxHeads)]
}

// foremost are the first equals of the default order that take calls.
func (s *Settings) foremost() (ids []string) {
	best := 0
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Unlisted || c.Weight == 0 || c.off() != "" || len(ids) > 0 && c.Priority > best {
			continue
		}
		if len(ids) > 0 && c.Priority < best {
			ids = ids[:0]
		}
		ids, best = append(ids, c.ID), c.Priority
	}
	return ids
}

// foremostOf is whom a rule puts first: of those that take calls, "" for none.
func (s *Settings) foremostOf(r *Rule) string {
	use := r.Use
	for i := range s.Chains {
		if c := &s.Chains[i]; r.Chain != "" && c.Name == r.Chain {
			use = []string{c.Primary}
		}
	}
	for _, id := range use {
		if c := s.candidate(id); c != nil && c.off() == "" {
			return id
		}
	}
	return ""
}
