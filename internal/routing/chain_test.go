package routing

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func ids(p plan) (out []string) {
	for _, l := range p.links {
		out = append(out, l.ID)
	}
	return out
}

func TestPlan(t *testing.T) {
	base := Settings{
		Candidates: []Candidate{
			{ID: "a", Priority: 1, Weight: 1},
			{ID: "b", Priority: 2, Weight: 1},
			{ID: "c", Priority: 3, Weight: 1, Thinking: true},
			{ID: "gray", Priority: 1, Weight: 1, Unlisted: true, Tenants: []string{"internal"}},
			{ID: "drained", Priority: 1, Weight: 0},
		},
	}
	with := func(change func(*Settings)) Settings {
		s := base
		change(&s)
		return s
	}
	chained := with(func(s *Settings) {
		s.Chains = []Chain{
			{Name: "a", Primary: "a", Fallbacks: []Entry{{Model: "c"}, {Model: "a"}, {Model: "c"}, {Model: "gray"}}},
			{Name: "alone", Primary: "b"},
		}
	})
	tests := []struct {
		name     string
		settings Settings
		req      *Request
		chain    string
		want     []string
	}{
		{"priority list", base, request(), "default", []string{"a", "b", "c"}},
		{"auto is like empty", base, request(named("auto")), "default", []string{"a", "b", "c"}},
		{"a named candidate first", base, request(named("b")), "default", []string{"b", "a", "c"}},
		{"a drained candidate by name", base, request(named("drained")), "default", []string{"drained", "a", "b", "c"}},
		{"default model first", with(func(s *Settings) { s.DefaultModel = "c" }), request(), "default", []string{"c", "a", "b"}},
		{"thinking model first", with(func(s *Settings) { s.DefaultModel, s.ThinkingModel = "b", "c" }), request(thinking), "default", []string{"c", "a", "b"}},
		{"a default model of another tenant's is none", with(func(s *Settings) { s.DefaultModel = "gray" }), request(), "default", []string{"a", "b", "c"}},
		{"a default model for its tenant", with(func(s *Settings) { s.DefaultModel = "gray" }), request(func(r *Request) { r.Tenant = "internal" }), "default", []string{"gray", "a", "b", "c"}},
		{"no thinking model: the default one", with(func(s *Settings) { s.DefaultModel = "b" }), request(thinking), "default", []string{"b", "a", "c"}},
		{"head of the list with a chain, each candidate once", chained, request(), "a", []string{"a", "c"}},
		{"fallback for its tenant only", chained, request(func(r *Request) { r.Tenant = "internal" }), "a", []string{"a", "c", "gray"}},
		{"a named chain without fallbacks", chained, request(named("alone")), "alone", []string{"b"}},
		{"a primary followed by nothing", chained, request(named("b")), "alone", []string{"b"}},
		{"a named candidate without a chain", chained, request(named("c")), "default", []string{"c", "a", "b"}},
		{"default model with a chain", with(func(s *Settings) {
			s.DefaultModel = "b"
			s.Chains = []Chain{{Name: "x", Primary: "b", Fallbacks: []Entry{{Model: "c"}}}}
		}), request(), "x", []string{"b", "c"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := test.settings.plan(test.req, func() float64 { return 0 })
			require.True(t, ok)
			require.Equal(t, test.want, ids(got))
			require.Equal(t, test.chain, got.chain)
		})
	}
}

func TestPlanUnknownModel(t *testing.T) {
	s := Settings{
		Candidates: []Candidate{{ID: "gray", Tenants: []string{"internal"}}, {ID: "a"}},
		Chains:     []Chain{{Name: "secret", Primary: "gray"}},
	}
	for _, model := range []string{"nowhere", "gray", "secret"} {
		_, ok := s.plan(request(named(model)), rand.Float64)
		require.False(t, ok, model)
	}
}

func BenchmarkPlan(b *testing.B) {
	var s Settings
	for i := range 50 {
		s.Candidates = append(s.Candidates, Candidate{ID: string(rune('A' + i)), Priority: i % 5, Weight: 1})
	}
	req := request()
	b.ReportAllocs()
	for b.Loop() {
		s.plan(req, rand.Float64)
	}
}
