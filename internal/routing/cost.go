package routing

import (
	"math"
	"math/bits"

	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
)

// Price is what a candidate's tokens cost, each in nano-dollars per million of them: whole numbers, so that nothing
// drifts.
type Price struct{ Input, CachedInput, Output int64 }

// NewPrice makes a price of US dollars per million tokens, each between 0 and 1,000,000.
func NewPrice(input, cachedInput, output float64) *Price {
	return &Price{Nanos(input), Nanos(cachedInput), Nanos(output)}
}

// Cost is what an attempt, or a request, has cost.
type Cost struct {
	Nanos     int64 // nano-dollars
	Estimated bool  // the provider didn't say all of its usage
}

// Nanos makes nano-dollars of US dollars, for amounts up to a billion.
func Nanos(usd float64) int64 { return int64(math.Round(usd * 1e9)) }

// USD is the amount in US dollars, for people and logs.
func (c Cost) USD() float64 { return float64(c.Nanos) / 1e9 }

// Cost is the sum of what is known of the attempts' costs, nil if nothing is.
func (t *Trace) Cost() *Cost {
	var sum *Cost
	for _, a := range t.Attempts {
		if a.Cost == nil {
			continue
		}
		if sum == nil {
			sum = &Cost{}
		}
		sum.Nanos += min(a.Cost.Nanos, math.MaxInt64-sum.Nanos)
		sum.Estimated = sum.Estimated || a.Cost.Estimated
	}
	return sum
}

// maxCount bounds counts of tokens: a usage beyond it counts as none.
const maxCount = providers.MaxTokens

// tokens are counted tokens: cached ones are a part of the prompt, reasoning is a part of the completion.
type tokens struct{ prompt, cached, completion int }

// of is the price of tokens, rounded to a whole nano-dollar. The counts are between 0 and maxCount.
func (p *Price) of(t tokens) int64 {
	var hi, lo, carry uint64
	add := func(count int, price int64) {
		h, l := bits.Mul64(uint64(count), uint64(price))
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	add(t.prompt-t.cached, p.Input)
	add(t.cached, p.CachedInput)
	add(t.completion, p.Output)
	const million = 1_000_000
	lo, carry = bits.Add64(lo, million/2, 0)
	n, _ := bits.Div64(hi+carry, lo, million)
	return int64(n)
}

// bill is what an attempt is charged by.
type bill struct {
	price  *Price // nil: unknown
	prompt int    // estimate of the request's tokens
	count  func([]providers.Chunk) int
	usage  []byte // the provider's last, nil for none
}

func newBill(c *Candidate, req *Request, s *Settings) bill {
	return bill{price: c.Price, prompt: req.Tokens, count: s.Said}
}

// said estimates the tokens of chunks.
func (b *bill) said(chunks []providers.Chunk) int {
	if b.count == nil || b.price == nil || len(chunks) == 0 {
		return 0
	}
	return b.count(chunks)
}

// tokens are the provider's own counts, and where it left one out the estimate. said estimates the completion.
func (b *bill) tokens(said int, whole bool) (t tokens, estimated bool) {
	found := gjson.GetManyBytes(b.usage, "prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens")
	count := func(v gjson.Result, otherwise int) int {
		if v.Type == gjson.Number && v.Num >= 0 && v.Num <= maxCount {
			return int(v.Num)
		}
		estimated = true
		return min(max(otherwise, 0), maxCount)
	}
	t.prompt, t.completion = count(found[0], b.prompt), count(found[1], said)
	if cached := found[2]; cached.Type == gjson.Number && cached.Num > 0 {
		t.cached = int(min(cached.Num, float64(t.prompt)))
	}
	// Some count as they go, others say at the beginning what the prompt had. An estimate may be high, but not twice.
	if !whole && said > 2*t.completion {
		t.completion, estimated = min(said, maxCount), true
	}
	return t, estimated
}

// cost is what the attempt has cost so far, nil where nobody knows: nothing came, or there is no price. said
// estimates the tokens that came.
func (a *attempt) cost(said int) *Cost {
	if a.bill.price == nil || !a.started && !a.finished && a.bill.usage == nil {
		return nil
	}
	t, estimated := a.bill.tokens(said, a.finished)
	return &Cost{Nanos: a.bill.price.of(t), Estimated: estimated}
}

// Charge notes in the trace what the answering attempt cost: by the provider's usage as far as it has come, else by
// said, an estimate of the tokens that were read so far. It may be called again when more is known; an answer that no
// model gave costs nothing.
func (a *Answer) Charge(said int) {
	if l, ok := a.source.(*live); ok {
		l.entry.Cost = l.cost(said + l.bill.said(l.held))
	}
}
