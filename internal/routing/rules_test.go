package routing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/providers"
)

func always(*Facts) bool { return true }

func never(*Facts) bool { return false }

func TestRules(t *testing.T) {
	base := Settings{
		Candidates: []Candidate{
			{ID: "a", Priority: 1, Weight: 1},
			{ID: "b", Priority: 2, Weight: 1},
			{ID: "c", Priority: 3, Weight: 1},
			{ID: "gray", Unlisted: true, Weight: 1, Tenants: []string{"internal"}},
			{ID: "hidden", Unlisted: true, Weight: 1},
		},
	}
	with := func(change func(*Settings)) func(...Rule) Settings {
		return func(rules ...Rule) Settings {
			s := base
			change(&s)
			s.Rules = rules
			return s
		}
	}
	plain := with(func(*Settings) {})
	defaults := with(func(s *Settings) { s.DefaultModel, s.ThinkingModel = "b", "c" })
	chained := with(func(s *Settings) {
		s.Chains = []Chain{
			{Name: "a", Primary: "a", Fallbacks: []Entry{{Model: "c"}}},
			{Name: "secret", Primary: "gray", Fallbacks: []Entry{{Model: "b"}, {Model: "gray"}}},
		}
	})
	internal := func(r *Request) { r.Tenant = "internal" }
	to := func(name string, ids ...string) Rule { return Rule{Name: name, Match: always, Use: ids} }
	changed := func(r Rule, change func(*Rule)) Rule { change(&r); return r }
	only := func(r *Rule) { r.Only = true }
	force := func(r *Rule) { r.Force = true }
	for _, tt := range []struct {
		name        string
		settings    Settings
		req         *Request
		rule, chain string
		want        []string
	}{
		{"none matches", plain(changed(to("r", "c"), func(r *Rule) { r.Match = never })), request(), "", "default", []string{"a", "b", "c"}},
		{"the default order follows, each once", plain(to("r", "c", "b")), request(), "r", "default", []string{"c", "b", "a"}},
		{"the first that matches", plain(changed(to("no", "b"), func(r *Rule) { r.Match = never }), to("one", "c"), to("two", "b")), request(), "one", "default", []string{"c", "a", "b"}},
		{"only", plain(changed(to("r", "c", "b"), only)), request(), "r", "", []string{"c", "b"}},
		{"auto", plain(to("r", "c")), request(named("auto")), "r", "default", []string{"c", "a", "b"}},
		{"a named candidate goes before a rule", plain(to("r", "c")), request(named("b")), "", "default", []string{"b", "a", "c"}},
		{"a named chain goes before a rule", chained(to("r", "b")), request(named("a")), "", "a", []string{"a", "c"}},
		{"force goes before a name", plain(to("r", "c"), changed(to("forced", "b"), force)), request(named("a")), "forced", "default", []string{"b", "a", "c"}},
		{"force keeps its place where nothing is named", plain(to("r", "c"), changed(to("forced", "b"), force)), request(), "r", "default", []string{"c", "a", "b"}},
		{"before the default model, which follows", defaults(to("r", "a")), request(), "r", "default", []string{"a", "b", "c"}},
		{"before the thinking model, which follows", defaults(to("r", "a")), request(thinking), "r", "default", []string{"a", "c", "b"}},
		{"an unlisted candidate", plain(to("r", "hidden")), request(), "r", "default", []string{"hidden", "a", "b", "c"}},
		{"a tenant's candidate for its tenant", plain(to("r", "gray")), request(internal), "r", "default", []string{"gray", "a", "b", "c"}},
		{"a tenant's candidate for another", plain(to("r", "gray", "c")), request(), "r", "default", []string{"c", "a", "b"}},
		{"only a tenant's candidate for another", plain(changed(to("r", "gray"), only)), request(), "r", "", nil},
		{"a default chain follows", chained(to("r", "b")), request(), "r", "a", []string{"b", "a", "c"}},
		{"a primary in a list brings no chain", chained(changed(to("r", "a", "b"), only)), request(), "r", "", []string{"a", "b"}},
		{"a chain, and nothing after it", chained(Rule{Name: "r", Match: always, Chain: "a"}), request(), "r", "a", []string{"a", "c"}},
		{"a tenant's chain for its tenant", chained(Rule{Name: "r", Match: always, Chain: "secret"}), request(internal), "r", "secret", []string{"gray", "b"}},
		{"a tenant's chain for another", chained(Rule{Name: "r", Match: always, Chain: "secret"}), request(), "r", "secret", []string{"b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.settings.plan(tt.req, func() float64 { return 0 })
			require.True(t, ok)
			require.Equal(t, tt.want, ids(got))
			require.Equal(t, tt.chain, got.chain)
			require.Equal(t, tt.rule, got.rule.name())
		})
	}
}

func TestForceDoesNotHideAnUnknownModel(t *testing.T) {
	s := Settings{Candidates: []Candidate{{ID: "a", Weight: 1}}, Rules: []Rule{{Name: "r", Match: always, Use: []string{"a"}, Force: true}}}
	_, ok := s.plan(request(named("nowhere")), rand.Float64)
	require.False(t, ok)
}

func TestFacts(t *testing.T) {
	var seen Facts
	s := Settings{Rules: []Rule{{Match: func(f *Facts) bool { seen = *f; return false }}}}
	_, _ = s.plan(request(thinking, func(r *Request) {
		r.Messages = make([]providers.Message, 3)
		r.Tokens, r.Tools, r.Images, r.Task, r.Tags = 9, 2, 1, "classify", map[string]string{"task": "classify"}
		r.Received = time.Date(2026, 5, 1, 1, 30, 0, 0, time.FixedZone("", 8*3600))
		r.Model = "auto"
	}), rand.Float64)
	require.Equal(t, Facts{
		Tokens: 9, Messages: 3, Tools: 2, Images: 1, Hour: 17, Thinking: true, Stream: true,
		Task: "classify", Tenant: "t", Model: "auto", Tags: map[string]string{"task": "classify"},
	}, seen)
}

func TestARuleFailsOverAndIsNamed(t *testing.T) {
	l := newLab(t, scripted(answer), scripted([]step{failStatus(providers.KindServerError, 500)}), scripted(answer))
	l.candidate("c").Thinking = true
	l.settings.Rules = []Rule{{Name: "r", Match: always, Use: []string{"b", "c"}}}
	got := l.ask()
	require.Equal(t, []string{"b:server_error", "c:ok"}, got.outcomes())
	require.Equal(t, "r", got.Trace.Rule)
	require.Equal(t, "default", got.Trace.Chain)
	require.Equal(t, []string{"b:-thinking", "c:ok"}, l.ask(thinking).outcomes())
	l.noneOpen()
}

func TestARulesMessage(t *testing.T) {
	refused := []step{failStatus(providers.KindServerError, 500)}
	l := newLab(t, scripted(refused), scripted(refused))
	l.settings.Rules = []Rule{{Name: "r", Match: always, Use: []string{"b"}, Only: true, Messages: map[string]string{"en": "later"}}}
	got := l.ask()
	require.Equal(t, TierFallback, got.Trace.Tier)
	require.Equal(t, "r", got.Trace.Rule)
	require.Equal(t, []string{"b:server_error"}, got.outcomes())
	require.Contains(t, got.text, "later")
	require.Contains(t, l.ask(func(r *Request) { r.Language = "zh" }).text, "忙")
	require.Contains(t, l.ask(named("a")).text, "busy", "the rule wasn't asked")
}

func TestARuleThatLeavesNobody(t *testing.T) {
	l := newLab(t, scripted(answer))
	l.candidate("a").Tenants = []string{"other"}
	l.settings.Rules = []Rule{{Name: "r", Match: always, Use: []string{"a"}, Only: true}}
	got := l.ask()
	require.Equal(t, TierFallback, got.Trace.Tier)
	require.Nil(t, got.Failure)
	require.Empty(t, got.outcomes())
}

func TestRuleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Settings
		for i := range rapid.IntRange(1, 10).Draw(t, "candidates") {
			c := Candidate{
				ID: string(rune('a' + i)), Priority: rapid.IntRange(1, 3).Draw(t, "priority"),
				Weight: rapid.IntRange(0, 5).Draw(t, "weight"), Unlisted: rapid.Bool().Draw(t, "unlisted"),
			}
			if rapid.Bool().Draw(t, "another's") {
				c.Tenants = []string{"other"}
			}
			s.Candidates = append(s.Candidates, c)
		}
		pick := rapid.SampledFrom(s.Candidates)
		var some []string
		for range rapid.IntRange(1, 5).Draw(t, "use") {
			some = append(some, pick.Draw(t, "used").ID)
		}
		primary := pick.Draw(t, "primary").ID
		s.Chains = []Chain{{Name: "x", Primary: primary, Fallbacks: []Entry{{Model: pick.Draw(t, "fallback").ID}}}}
		rule := Rule{Name: "r", Match: always, Use: some, Only: rapid.Bool().Draw(t, "only")}
		s.Rules = []Rule{{Name: "no", Match: never, Use: some}, rule, {Name: "late", Match: always, Use: some}}
		seed := rapid.Uint64().Draw(t, "seed")
		draw := func() func() float64 { return rand.New(rand.NewPCG(seed, 0)).Float64 }
		got, _ := s.plan(request(), draw())
		again, _ := s.plan(request(), draw())
		require.Equal(t, ids(got), ids(again), "a pure function")
		require.Equal(t, "r", got.rule.name())
		checkRuled(t, &s, rule, ids(got), draw())
	})
}

// checkRuled demands the rule's candidates first, then the default order without them, nobody twice, nobody else's.
func checkRuled(t *rapid.T, s *Settings, rule Rule, got []string, draw func() float64) {
	var want []string
	add := func(id string) {
		if s.candidate(id).serves("t") && !slices.Contains(want, id) {
			want = append(want, id)
		}
	}
	for _, id := range rule.Use {
		add(id)
	}
	if !rule.Only {
		bare := *s
		bare.Rules = nil
		rest, _ := bare.plan(request(), draw)
		for _, id := range ids(rest) {
			add(id)
		}
	}
	require.Equal(t, want, got)
}

// fifty are settings of 50 candidates and 50 rules, of which the last matches 1,001 tokens.
func fifty() (s Settings) {
	for i := range 50 {
		s.Candidates = append(s.Candidates, Candidate{ID: fmt.Sprintf("candidate-%d", i), Priority: i % 5, Weight: 1})
	}
	for i := range 50 {
		s.Rules = append(s.Rules, Rule{
			Name: fmt.Sprintf("rule-%d", i), Use: []string{"candidate-7", "candidate-30"},
			Match: func(f *Facts) bool { return f.Tokens > 1000*(50-i) || f.Task == "x" }, // the last one matches
		})
	}
	return s
}

func TestPlanAllocatesLittle(t *testing.T) {
	s, req := fifty(), request(func(r *Request) { r.Tokens = 1001 })
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { s.plan(req, rand.Float64) }), 15.0)
	s.Rules = nil
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { s.plan(req, rand.Float64) }), 7.0)
}

func BenchmarkPlanByRules(b *testing.B) {
	s, req := fifty(), request(func(r *Request) { r.Tokens = 1001 })
	b.ReportAllocs()
	for b.Loop() {
		if p, _ := s.plan(req, rand.Float64); p.rule == nil {
			b.Fatal("no rule")
		}
	}
}
