package routing

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// scene is a request in a world where anything may go wrong, drawn before it is played: in a bubble of virtual time
// nothing may be drawn.
type scene struct {
	settings func(*Settings)
	scripts  [][][]step // by candidate, one script a call
	refused  []bool     // by its breaker
	trials   []bool
	slow     time.Duration // what the breakers' store takes
	hint     time.Duration
	deadline time.Duration // of the platform
	hold     Hold
}

// oneOf draws one of a few times, and up to 300 ms more: drawn evenly they would nearly all be long.
func oneOf(t *rapid.T, name string, times ...time.Duration) time.Duration {
	return rapid.SampledFrom(times).Draw(t, name) + time.Duration(rapid.IntRange(0, 300).Draw(t, name+" ms"))*time.Millisecond
}

// drawScript is what a candidate does in one call.
func drawScript(t *rapid.T) []step {
	var script []step
	for range rapid.IntRange(0, 4).Draw(t, "chunks") {
		s := rapid.SampledFrom([]step{role, {text: "hm", signal: providers.SignalReasoning}, say("word")}).Draw(t, "chunk")
		s.wait = oneOf(t, "wait", 0, time.Second, 5*time.Second)
		script = append(script, s)
	}
	failures := []providers.Kind{
		providers.KindConnect, providers.KindTimeout, providers.KindOverloaded, providers.KindServerError, providers.KindRateLimited,
		providers.KindQuota, providers.KindLoading, providers.KindToolFailed, providers.KindMalformed, providers.KindEmpty,
		providers.KindTruncated, providers.KindContextTooLong, providers.KindUnsupported,
	}
	switch rapid.IntRange(0, 3).Draw(t, "ending") {
	case 0:
		return append(script, hang)
	case 1:
		return append(script, say("last"), stop, end)
	}
	e := &providers.Error{
		Kind: rapid.SampledFrom(failures).Draw(t, "kind"), Status: rapid.SampledFrom([]int{0, 429, 500, 503}).Draw(t, "status"),
		RetryAfter: oneOf(t, "Retry-After", 0, time.Second, 5*time.Second),
	}
	return append(script, step{wait: oneOf(t, "until the failure", 0, 0, time.Second, 10*time.Second), err: e})
}

func drawScene(t *rapid.T) scene {
	n := rapid.IntRange(1, 5).Draw(t, "candidates")
	s := scene{
		slow: oneOf(t, "store", 0, 0, time.Second), hold: Hold(rapid.IntRange(0, 1).Draw(t, "hold")),
	}
	if rapid.IntRange(0, 3).Draw(t, "hint given") == 0 {
		s.hint = oneOf(t, "hint", 20*time.Second, 2*time.Second, time.Millisecond)
	}
	if rapid.IntRange(0, 3).Draw(t, "deadline given") == 0 {
		s.deadline = oneOf(t, "deadline", 20*time.Second, 2*time.Second, time.Millisecond)
	}
	var clocks []Timeouts
	for range n {
		var scripts [][]step
		for range rapid.IntRange(1, 3).Draw(t, "scripts") {
			scripts = append(scripts, drawScript(t))
		}
		s.scripts = append(s.scripts, scripts)
		s.refused = append(s.refused, rapid.IntRange(0, 5).Draw(t, "refused") == 0)
		s.trials = append(s.trials, rapid.IntRange(0, 5).Draw(t, "trial") == 0)
		clocks = append(clocks, Timeouts{
			FirstToken: oneOf(t, "first token", 10*time.Second, 3*time.Second, time.Minute), Idle: oneOf(t, "idle", 10*time.Second, 2*time.Second),
			Total: rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 30 * time.Second}).Draw(t, "total"),
		})
	}
	budget := Budget{Total: oneOf(t, "budget", 3*time.Minute, 30*time.Second, 5*time.Second, time.Millisecond), Reserve: oneOf(t, "reserve", 2*time.Second, 0)}
	retries := rapid.IntRange(0, 3).Draw(t, "retries")
	entry := Entry{OnStatus: rapid.SampledFrom([][]int{nil, {}, {500}}).Draw(t, "on status")}
	chained := rapid.Bool().Draw(t, "chained")
	s.settings = func(to *Settings) {
		to.Budget, to.ThinkingTimeout = budget, 30*time.Second
		to.Retries = Retries{Max: retries, Last: retries, Base: 200 * time.Millisecond, Cap: 2 * time.Second}
		chain := Chain{Name: "a", Primary: "a"}
		for i := range to.Candidates {
			to.Candidates[i].Timeouts = clocks[i]
			if i > 0 {
				entry.Model = to.Candidates[i].ID
				chain.Fallbacks = append(chain.Fallbacks, entry)
			}
		}
		if chained {
			to.Chains = []Chain{chain}
		}
	}
	return s
}

// played is what came of a scene.
type played struct {
	lab      *lab
	answer   result
	answered time.Time // when Answer returned
	looked   time.Time // when the cache was asked; zero: not at all
	until    time.Time // until when it may take
	budget   budget
	starts   map[string][]time.Time
	later    int // calls that began after the answer was there
}

// watching is a cache that notes when it is asked.
type watching struct{ p *played }

func (w watching) Lookup(ctx context.Context, _ *Request) *CacheHit {
	w.p.looked = time.Now()
	w.p.until, _ = ctx.Deadline()
	return nil
}

func (s scene) play(t *testing.T) *played {
	p := &played{}
	synctest.Test(t, func(t *testing.T) {
		var models []*model
		for _, scripts := range s.scripts {
			models = append(models, scripted(scripts...))
		}
		l := newLab(t, models...)
		s.settings(&l.settings)
		l.gate.slow, l.cache = s.slow, watching{p}
		for i := range models {
			id := string(rune('a' + i))
			l.gate.trial[id] = s.trials[i]
			if s.refused[i] {
				l.gate.refuse[id] = &breaker.Refusal{State: breaker.Open, Until: time.Now().Add(time.Hour)}
			}
		}
		ctx := t.Context()
		if s.deadline > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.deadline)
			defer cancel()
		}
		req := request(func(r *Request) { r.Hold, r.Hint = s.hold, s.hint })
		p.lab, p.budget = l, newBudget(ctx, req, l.settings.Budget)
		answer := l.router().Answer(ctx, req)
		p.answered = time.Now()
		before := l.calls()
		p.answer = read(answer)
		p.later = l.calls() - before
		p.starts = map[string][]time.Time{}
		for id, m := range l.models {
			p.starts[id] = m.at
		}
	})
	return p
}

func (l *lab) calls() (n int) {
	for _, m := range l.models {
		n += m.calls
	}
	return n
}

// Under any mix of failures, retries, Retry-After, hangs, slow stores and deadlines the promises of the budget hold, for
// streams and for JSON.
func TestPromisesUnderAnyFailures(t *testing.T) {
	for range 5 { // of a hundred scenes
		rapid.Check(t, func(rt *rapid.T) { checkPromises(rt, drawScene(rt).play(t)) })
	}
}

func checkPromises(t *rapid.T, p *played) {
	for id, starts := range p.starts {
		for _, at := range starts {
			require.GreaterOrEqual(t, p.budget.models.Sub(at), minAttempt, "%s started too late", id)
		}
		require.LessOrEqual(t, len(starts), p.lab.settings.Retries.Max+1, "%s was tried too often", id)
		require.LessOrEqual(t, len(p.lab.gate.reports[id]), 1, "%s was reported more than once", id)
		require.Equal(t, len(starts) > 0, p.tried(id), "the trace is true of %s", id)
		require.True(t, len(starts) == 0 || len(p.lab.gate.reports[id]) == 1, "no report of %s", id)
		require.Zero(t, p.lab.models[id].open, "%s has an open stream", id)
	}
	require.False(t, p.answered.After(p.budget.models), "the reserve was touched: %s beyond the models' share", p.answered.Sub(p.budget.models))
	require.Zero(t, p.later, "a call after the answer")
	order := p.order()
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(order))), len(order), "somebody twice: %v", p.answer.outcomes())
	p.checkTier(t)
}

// tried says whether the trace has a call of a candidate.
func (p *played) tried(id string) bool {
	return slices.ContainsFunc(p.answer.Trace.Attempts, func(a Attempt) bool { return a.Candidate == id && a.Outcome != "" })
}

// order are the candidates as they were asked or skipped: each once, as a retry stays where it is.
func (p *played) order() []string {
	var ids []string
	for _, a := range p.answer.Trace.Attempts {
		ids = append(ids, a.Candidate)
	}
	return slices.Compact(ids)
}

func (p *played) checkTier(t *rapid.T) {
	trace := p.answer.Trace
	switch trace.Tier {
	case TierModel:
		last := trace.Attempts[len(trace.Attempts)-1]
		require.Equal(t, trace.Candidate, last.Candidate)
		require.Equal(t, p.answer.err == nil, last.Outcome == OutcomeOK, "a broken stream says so, and only that")
	case TierFallback:
		require.False(t, p.looked.After(p.budget.models))
		require.Equal(t, p.budget.last(), p.until)
		require.NotEmpty(t, p.answer.text)
	default:
		require.Equal(t, 400, p.answer.Failure.Status, "only inability is an error")
	}
}

// Weights converge, whatever they are: within five standard deviations of 3,000 draws.
func TestWeightsConverge(t *testing.T) {
	const n = 3000
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 6).Draw(t, "weights")
		var s Settings
		total := 0
		for i, w := range weights {
			s.Candidates = append(s.Candidates, Candidate{ID: string(rune('a' + i)), Weight: w})
			total += w
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		first := map[string]int{}
		for range n {
			if p, _ := s.plan(request(), random.Float64); len(p.links) > 0 {
				first[p.links[0].ID]++
			}
		}
		for i, w := range weights {
			share := float64(w) / max(1, float64(total))
			width := 5 * math.Sqrt(n*share*(1-share))
			require.InDelta(t, n*share, float64(first[string(rune('a'+i))]), width+1e-9, "weight %d of %d", w, total)
		}
	})
}

// An order is a function of settings, request and draw, and names nobody twice, however rules, names, thinking, tenants
// and chains meet.
func TestOrderIsAPureFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, req := drawSettings(t), drawRequest(t)
		seed := rapid.Uint64().Draw(t, "seed")
		before := fmt.Sprintf("%+v", s.Candidates)
		first, known := s.plan(req, rand.New(rand.NewPCG(seed, 0)).Float64)
		second, again := s.plan(req, rand.New(rand.NewPCG(seed, 0)).Float64)
		require.Equal(t, known, again)
		require.Equal(t, ids(first), ids(second), "the same draw gives the same order")
		require.Equal(t, first.drawn, second.drawn)
		require.Equal(t, before, fmt.Sprintf("%+v", s.Candidates), "the settings stay as they are")
		if !known {
			return
		}
		order := ids(first)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(order))), len(order), "%v has somebody twice", order)
		for _, id := range order {
			require.True(t, s.candidate(id).serves(req.Tenant), "%s is another's", id)
		}
	})
}

func drawSettings(t *rapid.T) *Settings {
	s := &Settings{}
	for i := range rapid.IntRange(1, 8).Draw(t, "candidates") {
		c := Candidate{
			ID: string(rune('a' + i)), Priority: rapid.IntRange(1, 3).Draw(t, "priority"), Weight: rapid.IntRange(0, 5).Draw(t, "weight"),
			Unlisted: rapid.Bool().Draw(t, "unlisted"), Thinking: rapid.Bool().Draw(t, "thinks"),
		}
		if rapid.IntRange(0, 3).Draw(t, "another's") == 0 {
			c.Tenants = []string{"other"}
		}
		s.Candidates = append(s.Candidates, c)
	}
	anyone := rapid.Custom(func(t *rapid.T) string { return rapid.SampledFrom(s.Candidates).Draw(t, "candidate").ID })
	some := rapid.SliceOfN(anyone, 1, 4)
	maybe := rapid.OneOf(rapid.Just(""), anyone)
	s.DefaultModel, s.ThinkingModel = maybe.Draw(t, "default"), maybe.Draw(t, "thinking")
	for i := range rapid.IntRange(0, 3).Draw(t, "chains") {
		c := Chain{Name: fmt.Sprintf("chain-%d", i), Primary: anyone.Draw(t, "primary")}
		for _, id := range some.Draw(t, "fallbacks") {
			c.Fallbacks = append(c.Fallbacks, Entry{Model: id})
		}
		s.Chains = append(s.Chains, c)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
		r := Rule{Name: fmt.Sprintf("rule-%d", i), Match: never, Only: rapid.Bool().Draw(t, "only"), Force: rapid.Bool().Draw(t, "force")}
		if rapid.Bool().Draw(t, "matches") {
			r.Match = always
		}
		if len(s.Chains) > 0 && rapid.Bool().Draw(t, "to a chain") {
			r.Chain = s.Chains[0].Name
		} else {
			r.Use = some.Draw(t, "use")
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

func drawRequest(t *rapid.T) *Request {
	return request(func(r *Request) {
		r.Model = rapid.SampledFrom([]string{"", "auto", "a", "b", "chain-0", "nowhere"}).Draw(t, "model")
		r.Tenant = rapid.SampledFrom([]string{"t", "other"}).Draw(t, "tenant")
		if rapid.Bool().Draw(t, "thinking") {
			thinking(r)
		}
	})
}
