package routing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a draw that decided who comes first is one: not a named candidate, a first choice, a rule, or an only candidate.
func TestDrawIsToldWhereItDecided(t *testing.T) {
	base := func() Settings {
		return Settings{Candidates: []Candidate{
			{ID: "a", Priority: 1, Weight: 7},
			{ID: "b", Priority: 1, Weight: 3},
			{ID: "c", Priority: 2, Weight: 1},
			{ID: "drained", Priority: 1},
			{ID: "gray", Priority: 1, Weight: 10, Tenants: []string{"internal"}},
		}}
	}
	tests := []struct {
		name   string
		change func(*Settings)
		req    *Request
		want   drawn
	}{
		{"equals", func(*Settings) {}, request(), drawn{"a", 0.7}},
		{"equals of a tenant", func(*Settings) {}, request(func(r *Request) { r.Tenant = "internal" }), drawn{"a", 0.35}},
		{"equals with chains", func(s *Settings) { s.Chains = []Chain{{Name: "a", Primary: "a"}} }, request(), drawn{"a", 0.7}},
		{"nobody is equal", func(s *Settings) { s.Candidates[0].Priority = 0 }, request(), drawn{}},
		{"named", func(*Settings) {}, request(named("a")), drawn{}},
		{"a first choice", func(s *Settings) { s.DefaultModel = "a" }, request(), drawn{}},
		{"a rule", func(s *Settings) { s.Rules = []Rule{{Match: always, Use: []string{"c"}}} }, request(), drawn{}},
		{"a rule for nobody", func(s *Settings) { s.Rules = []Rule{{Match: always, Use: []string{"gray"}}} }, request(), drawn{"a", 0.7}},
		{"no candidates", func(s *Settings) { s.Candidates = nil }, request(), drawn{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := base()
			test.change(&s)
			p, _ := s.plan(test.req, func() float64 { return 0 })
			require.Equal(t, test.want, p.drawn)
		})
	}
}

// The observed split stands beside the configured one, in the status and for each request in its trace.
func TestObservedSplit(t *testing.T) {
	l := newLab(t, scripted(answer), scripted(answer), scripted(answer), scripted(answer))
	l.candidate("a").Priority, l.candidate("b").Priority = 1, 1
	l.candidate("a").Weight, l.candidate("b").Weight = 7, 3
	l.candidate("d").Unlisted = true
	r := l.router()
	split := func() map[string][2]float64 {
		out := map[string][2]float64{}
		for _, c := range r.Status(t.Context(), "t").Candidates {
			out[c.Candidate.ID] = [2]float64{c.Share, c.Drawn}
		}
		return out
	}
	require.Equal(t, map[string][2]float64{"a": {0.7, 0}, "b": {0.3, 0}, "c": {1, 0}, "d": {0, 0}}, split())
	first := map[string]float64{}
	for range 2000 {
		got := read(r.Answer(t.Context(), request()))
		require.Equal(t, got.Trace.Candidate, got.Trace.Drawn)
		require.InDelta(t, map[string]float64{"a": 0.7, "b": 0.3}[got.Trace.Drawn], got.Trace.Share, 1e-9)
		first[got.Trace.Drawn]++
	}
	require.InDelta(t, 0.7, split()["a"][1], 0.06)
	require.InDelta(t, first["a"]/2000, split()["a"][1], 1e-9)
	require.InDelta(t, 1, split()["a"][1]+split()["b"][1], 1e-9)
	read(r.Answer(t.Context(), request(named("c"))))
	require.Zero(t, split()["c"][1], "a name is no draw")
}
