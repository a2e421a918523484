package api

import (
	"math"
	"sync"

	"github.com/tidwall/gjson"

	"holdfast/internal/routing"
)

// Correction moves estimates of text towards what providers count. Narrow and wide scripts have a factor each, as
// tokenisers differ by them more than by provider; the estimate comes before a provider is chosen anyway. It starts
// at 1, and moves only on plausible evidence, enough of it, and within bounds. It belongs to the process, whatever
// configurations it has. Safe for concurrent use; nil corrects nothing.
type Correction struct {
	mu           sync.Mutex
	narrow, wide factor
}

const (
	minSample = 100 // tokens of text: below that, what a provider adds to every prompt weighs too much
	minFactor = 0.5
	maxFactor = 2.0
	oneScript = 0.9 // the part of a text that makes it a sample of its script

	firstSamples = 50  // before so many a factor is 1, so that few answers decide nothing
	lastSamples  = 200 // a factor is the mean of about so many
)

// factor is what a provider's count is to the estimate, in the mean.
type factor struct {
	samples int
	mean    float64
}

func (f *factor) add(ratio float64) {
	f.samples = min(f.samples+1, lastSamples)
	f.mean += (ratio - f.mean) / float64(f.samples)
}

func (f *factor) value() float64 {
	if f.samples < firstSamples {
		return 1
	}
	return f.mean
}

// tokens is an estimate, corrected.
func (c *Correction) tokens(e estimate) int {
	if c == nil {
		return e.tokens()
	}
	c.mu.Lock()
	narrow, wide := c.narrow.value(), c.wide.value()
	c.mu.Unlock()
	return e.fixed + int(math.Round(float64(e.narrowTokens())*narrow+float64(e.wide)*wide))
}

// learn takes what a provider counted for a prompt of nothing but text.
func (c *Correction) learn(e estimate, counted int) {
	narrow, wide := float64(e.narrowTokens()), float64(e.wide)
	text := narrow + wide
	ratio := float64(counted-e.fixed) / text
	if c == nil || text < minSample || ratio < minFactor || ratio > maxFactor {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case narrow >= oneScript*text:
		c.narrow.add(ratio)
	case wide >= oneScript*text:
		c.wide.add(ratio)
	}
}

// learn feeds the correction with an answer of a model, if its prompt was nothing but text and the usage is the
// provider's own.
func (x *exchange) learn(tier routing.Tier) {
	if tier != routing.TierModel || !x.done.Complete || x.done.UsageEstimated || !onlyText(x.draft.req) {
		return
	}
	if n := gjson.GetBytes(x.done.Usage, "prompt_tokens"); n.Type == gjson.Number {
		x.h.deps.Correction.learn(x.draft.tokens, int(n.Int()))
	}
}

// onlyText says that a prompt has nothing that an estimate knows little of: tools and their results, media, schemas,
// thoughts, fields of a provider's own.
func onlyText(r *routing.Request) bool {
	if r.Foreign || r.Structured || r.Tools > 0 {
		return false
	}
	for _, m := range r.Messages {
		if m.Role == "tool" || m.Role == "function" || m.Reasoning != "" || len(m.ToolCalls) > 0 {
			return false
		}
		for _, p := range m.Parts {
			if p.Type != "text" {
				return false
			}
		}
	}
	return true
}
