package routing

import (
	"cmp"
	"slices"
)

// link is one candidate in the order of a request. entry is nil but for the fallbacks of a configured chain.
type link struct {
	*Candidate
	entry *Entry
}

// plan is the order in which a request's candidates are asked.
type plan struct {
	chain string // name for the trace
	rule  *Rule  // that chose; nil for none
	links []link
	drawn drawn
}

// drawn is what a draw by weight decided: who stands first. Zero where nothing was drawn, or something else decided.
type drawn struct {
	id    string
	share float64 // of the weights of its equals, as configured
}

// defaultChain names the priority list.
const defaultChain = "default"

// plan orders the candidates of a request (contract §5). draw gives numbers in [0,1) for the weights; apart from it
// the order is a pure function of settings and request. false: the model is not one of the caller's.
func (s *Settings) plan(req *Request, draw func() float64) (plan, bool) {
	if req.Model != "" && req.Model != "auto" {
		p, known := s.named(req, draw)
		if rule := s.rule(req, true); known && rule != nil {
			return s.ruled(rule, req, draw), true
		}
		return p, known
	}
	if rule := s.rule(req, false); rule != nil {
		return s.ruled(rule, req, draw), true
	}
	return s.unnamed(req, draw), true
}

// unnamed is the default order: a first choice, else the head of the priority list, and what follows it.
func (s *Settings) unnamed(req *Request, draw func() float64) plan {
	if first := s.firstChoice(req); first != nil {
		return s.follow(first, req, draw)
	}
	order := s.byPriority(req.Tenant, draw)
	p := plan{chain: defaultChain, links: order}
	if len(order) > 0 {
		if c := s.chainOf(order[0].ID); c != nil {
			p = s.expand(c, req.Tenant)
		}
	}
	p.drawn = firstDrawn(order)
	return p
}

// firstDrawn is the draw that put the first of a default order before its equals; zero if it has none.
func firstDrawn(order []link) drawn {
	equals, total := 0, 0
	for _, l := range order {
		if l.Priority != order[0].Priority {
			break
		}
		equals, total = equals+1, total+l.Weight
	}
	if equals < 2 {
		return drawn{}
	}
	return drawn{order[0].ID, float64(order[0].Weight) / float64(total)}
}

// named is the plan of a request that names a candidate or a chain.
func (s *Settings) named(req *Request, draw func() float64) (plan, bool) {
	if c := s.candidate(req.Model); c != nil {
		return s.follow(c, req, draw), c.serves(req.Tenant)
	}
	for i := range s.Chains {
		if c := &s.Chains[i]; c.Name == req.Model {
			primary := s.candidate(c.Primary)
			return s.expand(c, req.Tenant), primary != nil && primary.serves(req.Tenant)
		}
	}
	return plan{}, false
}

// firstChoice is the candidate that the configuration puts first for this request, nil for none.
func (s *Settings) firstChoice(req *Request) *Candidate {
	ids := []string{s.DefaultModel}
	if req.wantsThinking() {
		ids = []string{s.ThinkingModel, s.DefaultModel}
	}
	for _, id := range ids {
		if c := s.candidate(id); c != nil && c.serves(req.Tenant) {
			return c
		}
	}
	return nil
}

// follow puts a candidate first, followed by its chain if it has one, else by the priority list.
func (s *Settings) follow(first *Candidate, req *Request, draw func() float64) plan {
	if c := s.chainOf(first.ID); c != nil {
		return s.expand(c, req.Tenant)
	}
	links := []link{{Candidate: first}}
	for _, l := range s.byPriority(req.Tenant, draw) {
		if l.ID != first.ID {
			links = append(links, l)
		}
	}
	return plan{chain: defaultChain, links: links}
}

// expand is a configured chain: its primary and its fallbacks, each candidate once.
func (s *Settings) expand(c *Chain, tenant string) plan {
	links := []link{{Candidate: s.candidate(c.Primary)}}
	for i := range c.Fallbacks {
		entry := &c.Fallbacks[i]
		next := s.candidate(entry.Model)
		again := slices.ContainsFunc(links, func(l link) bool { return l.ID == entry.Model })
		if next != nil && !again && next.serves(tenant) {
			links = append(links, link{next, entry})
		}
	}
	return plan{chain: c.Name, links: links}
}

// byPriority is the default order: priority first, equal priorities in an order drawn by weight. A weight of 0
// takes a candidate out of it: it drains.
func (s *Settings) byPriority(tenant string, draw func() float64) []link {
	var links []link
	for i := range s.Candidates {
		if c := &s.Candidates[i]; !c.Unlisted && c.Weight > 0 && c.serves(tenant) {
			links = append(links, link{Candidate: c})
		}
	}
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(a.Priority, b.Priority) })
	for start := 0; start < len(links); {
		end := start + 1
		for end < len(links) && links[end].Priority == links[start].Priority {
			end++
		}
		shuffle(links[start:end], draw)
		start = end
	}
	return links
}

// shuffle draws an order without replacement: each place goes to one of the rest with a chance of its share.
func shuffle(links []link, draw func() float64) {
	for ; len(links) > 1; links = links[1:] {
		total := 0
		for _, l := range links {
			total += l.Weight
		}
		at, i := draw()*float64(total), 0
		for ; i < len(links)-1 && at >= float64(links[i].Weight); i++ {
			at -= float64(links[i].Weight)
		}
		chosen := links[i] // moved to the front, the others keep their order
		copy(links[1:i+1], links[:i])
		links[0] = chosen
	}
}

func (s *Settings) candidate(id string) *Candidate {
	for i := range s.Candidates {
		if s.Candidates[i].ID == id {
			return &s.Candidates[i]
		}
	}
	return nil
}

func (s *Settings) chainOf(primary string) *Chain {
	for i := range s.Chains {
		if s.Chains[i].Primary == primary {
			return &s.Chains[i]
		}
	}
	return nil
}

// chainsOf are the chains as a tenant may know them: without other tenants' candidates.
func (s *Settings) chainsOf(tenant string) []Chain {
	may := func(id string) bool {
		c := s.candidate(id)
		return c != nil && c.serves(tenant)
	}
	var out []Chain
	for _, c := range s.Chains {
		if may(c.Primary) {
			c.Fallbacks = slices.DeleteFunc(slices.Clone(c.Fallbacks), func(e Entry) bool { return !may(e.Model) })
			out = append(out, c)
		}
	}
	return out
}

func (c *Candidate) serves(tenant string) bool {
	return c.Tenants == nil || slices.Contains(c.Tenants, tenant)
}
