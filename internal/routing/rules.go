package routing

import (
	"slices"
	"time"

	"holdfast/internal/providers"
)

// Facts are what rules see of a request.
type Facts struct {
	Tokens   int // estimate of the prompt
	Messages int
	Tools    int
	Images   int
	Hour     int // 0 to 23, UTC, when the request came
	Thinking bool
	Stream   bool
	Task     string
	Tenant   string
	Model    string // as asked for; "" or auto where the configuration chooses
	Tags     map[string]string
}

func (r *Request) facts() *Facts {
	return &Facts{
		Tokens: r.Tokens, Messages: len(r.Messages), Tools: r.Tools, Images: r.Images, Hour: r.Received.UTC().Hour(),
		Thinking: r.wantsThinking(), Stream: r.Hold == HoldFirstToken,
		Task: r.Task, Tenant: r.Tenant, Model: r.Model, Tags: r.Tags,
	}
}

// rule is the first one that matches, nil for none. Where the request names a model only those with force are asked.
func (s *Settings) rule(req *Request, named bool) *Rule {
	var facts *Facts
	for i := range s.Rules {
		rule := &s.Rules[i]
		if named && !rule.Force {
			continue
		}
		if facts == nil {
			facts = req.facts()
		}
		if rule.Match(facts) {
			return rule
		}
	}
	return nil
}

// ruled is the order by a rule: its chain, or its candidates and then, unless they are the only ones, the default
// order. Candidates of other tenants are left out, and each is asked once: where it comes first.
func (s *Settings) ruled(rule *Rule, req *Request, draw func() float64) plan {
	if rule.Chain != "" {
		return s.ruledChain(rule, req.Tenant)
	}
	p := plan{rule: rule}
	for _, id := range rule.Use {
		if c := s.candidate(id); c != nil && c.serves(req.Tenant) && !p.has(id) {
			p.links = append(p.links, link{Candidate: c})
		}
	}
	if rule.Only {
		return p
	}
	rest := s.unnamed(req, draw)
	p.chain = rest.chain
	if len(p.links) == 0 {
		p.drawn = rest.drawn
	}
	for _, l := range rest.links {
		if !p.has(l.ID) {
			p.links = append(p.links, l)
		}
	}
	return p
}

// ruledChain is a rule's chain without what isn't for the tenant.
func (s *Settings) ruledChain(rule *Rule, tenant string) plan {
	p := plan{rule: rule, chain: rule.Chain}
	for i := range s.Chains {
		if c := &s.Chains[i]; c.Name == rule.Chain && s.candidate(c.Primary) != nil {
			p.links = s.expand(c, tenant).links
		}
	}
	p.links = slices.DeleteFunc(p.links, func(l link) bool { return !l.serves(tenant) })
	return p
}

func (p *plan) has(id string) bool {
	return slices.ContainsFunc(p.links, func(l link) bool { return l.ID == id })
}

// name is the rule's name in the trace.
func (r *Rule) name() string {
	if r == nil {
		return ""
	}
	return r.Name
}

// message is the rule's fixed message in a language, "" where it has none.
func (r *Rule) message(language string) string {
	if r == nil {
		return ""
	}
	return r.Messages[language]
}

// Choose says who would be asked for a request of which only the facts are known, and by which rule ("" for none).
// Among equals by weight the first of the configuration stands first. false: the model is not one of the tenant's.
func (s *Settings) Choose(f *Facts) (rule string, candidates []string, known bool) {
	req := &Request{
		Request: &providers.Request{Messages: make([]providers.Message, f.Messages)},
		Tenant:  f.Tenant, Model: f.Model, Tokens: f.Tokens, Tools: f.Tools, Images: f.Images, Task: f.Task, Tags: f.Tags,
		Received: time.Date(2000, 1, 1, f.Hour, 0, 0, 0, time.UTC),
	}
	if f.Thinking {
		req.Thinking.Mode = providers.ThinkingOn
	}
	if !f.Stream {
		req.Hold = HoldComplete
	}
	p, known := s.plan(req, func() float64 { return 0 })
	for _, l := range p.links {
		candidates = append(candidates, l.ID)
	}
	return p.rule.name(), candidates, known
}
