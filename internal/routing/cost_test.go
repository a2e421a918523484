package routing

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
)

func TestPriceOfUsage(t *testing.T) {
	qwen, mini := NewPrice(0.57, 0.57, 0.57), NewPrice(0.15, 0.075, 0.6)
	tests := []struct {
		name      string
		price     *Price
		usage     string
		said      int
		cut       bool // before a finish reason
		nanos     int64
		estimated bool
	}{
		{name: "prompt and completion", price: qwen, usage: `{"prompt_tokens":1000,"completion_tokens":500}`, nanos: 855_000},
		{name: "cached input apart", price: mini, usage: `{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":600}}`, nanos: 400*150 + 600*75 + 100*600},
		{name: "reasoning is inside the completion", price: mini, usage: `{"prompt_tokens":0,"completion_tokens":100,"completion_tokens_details":{"reasoning_tokens":90}}`, nanos: 60_000},
		{name: "more cached than there is", price: mini, usage: `{"prompt_tokens":10,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":600}}`, nanos: 750},
		{name: "cached below zero", price: mini, usage: `{"prompt_tokens":10,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":-5}}`, nanos: 1500},
		{name: "nothing used", price: mini, usage: `{"prompt_tokens":0,"completion_tokens":0}`},
		{name: "free of charge", price: NewPrice(0, 0, 0), usage: `{"prompt_tokens":1000,"completion_tokens":1000}`},
		{name: "half a nano-dollar is rounded up", price: NewPrice(0.0005, 0, 0), usage: `{"prompt_tokens":1,"completion_tokens":0}`, nanos: 1},
		{name: "less is rounded down", price: NewPrice(0.0004, 0, 0), usage: `{"prompt_tokens":1,"completion_tokens":0}`},
		{name: "rounded once, not by count", price: NewPrice(0.0004, 0, 0.0004), usage: `{"prompt_tokens":1,"completion_tokens":1}`, nanos: 1},
		{name: "as much as there can be", price: NewPrice(1e6, 1e6, 1e6), usage: `{"prompt_tokens":1000000000,"completion_tokens":1000000000}`, nanos: 2e18},
		{name: "no usage", price: mini, said: 40, nanos: 10*150 + 40*600, estimated: true},
		{name: "no completion", price: mini, usage: `{"prompt_tokens":20}`, said: 40, nanos: 20*150 + 40*600, estimated: true},
		{name: "no prompt", price: mini, usage: `{"completion_tokens":20}`, said: 40, nanos: 10*150 + 20*600, estimated: true},
		{name: "counts of another world", price: mini, usage: `{"prompt_tokens":1e300,"completion_tokens":-7}`, said: 40, nanos: 10*150 + 40*600, estimated: true},
		{name: "more than a request can have", price: mini, usage: `{"prompt_tokens":1000000001,"completion_tokens":20000000000}`, said: 40, nanos: 10*150 + 40*600, estimated: true},
		{name: "counts as text", price: mini, usage: `{"prompt_tokens":"20","completion_tokens":null}`, said: 40, nanos: 10*150 + 40*600, estimated: true},
		{name: "the provider's own count is better than ours", price: mini, usage: `{"prompt_tokens":20,"completion_tokens":10}`, said: 4000, nanos: 20*150 + 10*600},
		{name: "counted as it went until it broke", price: mini, usage: `{"prompt_tokens":20,"completion_tokens":30}`, said: 40, cut: true, nanos: 20*150 + 30*600},
		{name: "counted at the beginning only", price: mini, usage: `{"prompt_tokens":20,"completion_tokens":1}`, said: 40, cut: true, nanos: 20*150 + 40*600, estimated: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := attempt{started: true, finished: !test.cut, bill: bill{price: test.price, prompt: 10, usage: []byte(test.usage)}}
			require.Equal(t, &Cost{test.nanos, test.estimated}, a.cost(test.said))
		})
	}
}

// The arithmetic is that of whole numbers of any size.
func TestPriceIsExact(t *testing.T) {
	check := func(use tokens, p Price) {
		sum := big.NewInt(500_000)
		for _, part := range [][2]int64{{int64(use.prompt - use.cached), p.Input}, {int64(use.cached), p.CachedInput}, {int64(use.completion), p.Output}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		require.Equal(t, sum.Quo(sum, big.NewInt(1e6)).Int64(), p.of(use), "%+v at %+v", use, p)
	}
	check(tokens{prompt: 100_000}, Price{Input: 184_467_440_737_095}) // just below 2^64, until it is rounded
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		use := tokens{prompt: r.IntN(maxCount + 1), completion: r.IntN(maxCount + 1)}
		use.cached = r.IntN(use.prompt + 1)
		check(use, Price{r.Int64N(1e15 + 1), r.Int64N(1e15 + 1), r.Int64N(1e15 + 1)})
	}
}

func TestNanos(t *testing.T) {
	for usd, want := range map[float64]int64{0: 0, 0.57: 570_000_000, 0.1: 100_000_000, 1e-9: 1, 29.99: 29_990_000_000, 1e9: 1e18} {
		require.Equal(t, want, Nanos(usd))
		require.InDelta(t, usd, Cost{Nanos: want}.USD(), 0)
	}
}

func TestCostOfARequest(t *testing.T) {
	require.Nil(t, (&Trace{Attempts: []Attempt{{Skipped: SkipDenied}, {Outcome: "connect"}}}).Cost(), "nothing is known")
	require.Equal(t, &Cost{5, true}, (&Trace{Attempts: []Attempt{{Cost: &Cost{2, true}}, {}, {Cost: &Cost{3, false}}}}).Cost())
	require.Equal(t, &Cost{math.MaxInt64, false}, (&Trace{Attempts: []Attempt{{Cost: &Cost{Nanos: math.MaxInt64 - 1}}, {Cost: &Cost{Nanos: 2}}}}).Cost())
}

func reports(usage string) step { return step{usage: usage} }

// What an attempt cost, by how it went. A token costs a micro-dollar; the request has 10, each chunk of content 1.
func TestCostOfAttempts(t *testing.T) {
	const used = `{"prompt_tokens":20,"completion_tokens":5}`
	known, guessed := &Cost{25_000, false}, func(nanos int64) *Cost { return &Cost{nanos, true} }
	text, broken := say("word"), fail(providers.KindTruncated)
	tests := []struct {
		name         string
		script       []step
		stream, json *Cost // of the first attempt
	}{
		{"whole, usage at the end", []step{role, text, stop, reports(used), end}, known, known},
		{"whole, usage at the beginning", []step{reports(used), role, text, stop, end}, known, known},
		{"whole, the last usage counts", []step{reports(`{"prompt_tokens":1,"completion_tokens":1}`), text, stop, reports(used), end}, known, known},
		{"whole without usage", []step{role, text, text, stop, end}, guessed(12_000), guessed(12_000)},
		{"refused", []step{failStatus(providers.KindRateLimited, 429)}, nil, nil},
		{"no connection", []step{fail(providers.KindConnect)}, nil, nil},
		{"nothing but a role, then cut", []step{role, broken}, nil, nil},
		{"timeout before the first token", []step{role, hang}, nil, nil},
		{"empty, with usage", []step{role, {finish: "stop"}, reports(used), fail(providers.KindEmpty)}, known, known},
		{"empty, without", []step{role, {finish: "stop"}, fail(providers.KindEmpty)}, guessed(10_000), guessed(10_000)},
		{"broke late", []step{role, text, text, text, broken}, guessed(13_000), guessed(13_000)},
		{"broke late, having counted", []step{role, text, text, reports(used), broken}, known, known},
		{"fell silent late", []step{role, text, text, hang}, guessed(12_000), guessed(12_000)},
		{"malformed late", []step{role, text, fail(providers.KindMalformed)}, guessed(11_000), guessed(11_000)},
		{"an error after the finish", []step{role, text, stop, reports(used), broken}, known, known},
	}
	for _, test := range tests {
		for name, hold := range map[string]Hold{"stream": HoldFirstToken, "JSON": HoldComplete} {
			t.Run(test.name+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := priced(t, scripted(test.script), scripted(answer))
					got := charged(l.router().Answer(t.Context(), request(func(r *Request) { r.Hold = hold })), 100)
					want := test.stream
					if hold == HoldComplete {
						want = test.json
					}
					require.Equal(t, want, got.Trace.Attempts[0].Cost)
					l.noneOpen()
				})
			})
		}
	}
}

// priced is a lab whose tokens cost a micro-dollar each.
func priced(t *testing.T, models ...*model) *lab {
	l := newLab(t, models...)
	l.settings.Said = contents
	for i := range l.settings.Candidates {
		l.settings.Candidates[i].Price = NewPrice(1, 0.5, 1)
	}
	return l
}

func contents(chunks []providers.Chunk) (n int) {
	for _, c := range chunks {
		if c.Signal == providers.SignalContent {
			n++
		}
	}
	return n
}

// charged reads so many chunks of an answer, as a caller does who may leave, and charges for them as the API does.
func charged(a *Answer, most int) *Answer {
	defer a.Close()
	said := 0
	for range most {
		c, err := a.Next()
		if err != nil {
			break
		}
		said += contents([]providers.Chunk{c})
	}
	a.Charge(said)
	return a
}

func TestRetriesAreChargedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := []step{role, say("half"), reports(`{"prompt_tokens":7,"completion_tokens":3}`), failStatus(providers.KindServerError, 500)}
		l := priced(t, scripted(broken, []step{failStatus(providers.KindServerError, 500)}, answer))
		l.settings.Retries.Last = 2
		got := charged(l.router().Answer(t.Context(), request(whole)), 100)
		require.Equal(t, []string{"a:server_error", "a:server_error", "a:ok"}, result{Answer: got}.outcomes())
		require.Equal(t, &Cost{10_000, false}, got.Trace.Attempts[0].Cost)
		require.Nil(t, got.Trace.Attempts[1].Cost, "refused: nobody knows of any cost")
		require.Equal(t, &Cost{12_000, true}, got.Trace.Attempts[2].Cost)
		require.Equal(t, &Cost{22_000, true}, got.Trace.Cost())
	})
}

func TestCallerWhoLeaves(t *testing.T) {
	long := []step{role, say("one "), say("two "), say("three "), {wait: time.Second, text: "four", signal: providers.SignalContent}, stop, end}
	for _, test := range []struct {
		name string
		hold Hold
		read int
		want int64
	}{
		{"before he reads", HoldFirstToken, 0, 11_000},
		{"in the middle", HoldFirstToken, 4, 13_000},
		{"with the whole answer there", HoldComplete, 0, 14_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := priced(t, scripted(long))
				got := charged(l.router().Answer(t.Context(), request(func(r *Request) { r.Hold = test.hold })), test.read)
				require.Equal(t, &Cost{test.want, true}, got.Trace.Attempts[0].Cost)
			})
		})
	}
	t.Run("while JSON is collected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := priced(t, scripted(long))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			time.AfterFunc(time.Second/2, cancel)
			got := charged(l.router().Answer(ctx, request(whole)), 100)
			require.Equal(t, []string{"a:canceled"}, result{Answer: got}.outcomes())
			require.Equal(t, &Cost{13_000, true}, got.Trace.Attempts[0].Cost)
		})
	})
}

func TestWithoutAPrice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := priced(t, scripted([]step{role, say("x"), fail(providers.KindTruncated)}), scripted(answer))
		l.candidate("a").Price, l.candidate("b").Price = nil, nil
		l.settings.Said = func([]providers.Chunk) int { t.Error("counted for nothing"); return 0 }
		got := charged(l.router().Answer(t.Context(), request(whole)), 100)
		require.Nil(t, got.Trace.Cost())
	})
	a := replay(request(), Trace{Attempts: []Attempt{{Outcome: "timeout"}}}, "stored")
	a.Charge(5)
	require.Nil(t, a.Trace.Cost(), "no model gave it")
}

// reusing is a model whose streams give each chunk in the memory of the one before, as real ones do.
type reusing struct{ *model }

func (m reusing) Stream(ctx context.Context, call providers.Call) (providers.Stream, error) {
	s, err := m.model.Stream(ctx, call)
	return &reused{Stream: s}, err
}

type reused struct {
	providers.Stream
	last []byte
}

func (r *reused) Next() (providers.Chunk, error) {
	clear(r.last)
	c, err := r.Stream.Next()
	r.last = c.Usage
	return c, err
}

func TestUsageIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, hold := range []Hold{HoldFirstToken, HoldComplete} {
			l := priced(t, scripted(nil))
			l.settings.Candidates[0].Client = reusing{scripted([]step{role, say("x"), stop, reports(`{"prompt_tokens":20,"completion_tokens":5}`), end})}
			got := charged(l.router().Answer(t.Context(), request(func(r *Request) { r.Hold = hold })), 100)
			require.Equal(t, &Cost{25_000, false}, got.Trace.Cost())
		}
	})
}
