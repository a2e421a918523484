package routing

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

func TestHeads(t *testing.T) {
	base := func() *Settings {
		client := scripted(answer)
		return &Settings{Candidates: []Candidate{
			{ID: "later", Priority: 2, Weight: 1, Client: client},
			{ID: "a", Priority: 1, Weight: 7, Client: client},
			{ID: "b", Priority: 1, Weight: 3, Client: client},
			{ID: "drained", Priority: 1, Client: client},
			{ID: "off", Priority: 1, Weight: 1, Client: client, Disabled: true},
			{ID: "keyless", Priority: 1, Weight: 1},
			{ID: "gray", Priority: 1, Weight: 1, Client: client, Unlisted: true, Tenants: []string{"internal"}},
		}}
	}
	rule := func(ids ...string) Rule { return Rule{Match: never, Use: ids} }
	tests := []struct {
		name   string
		change func(*Settings)
		want   []string
	}{
		{"the first equals that take calls", func(*Settings) {}, []string{"a", "b"}},
		{"the default model alone", func(s *Settings) { s.DefaultModel = "later" }, []string{"later"}},
		{"a default model that takes no calls", func(s *Settings) { s.DefaultModel = "off" }, []string{"a", "b"}},
		{"a default model of some tenants", func(s *Settings) { s.DefaultModel = "gray" }, []string{"gray", "a", "b"}},
		{"who thinks", func(s *Settings) { s.DefaultModel, s.ThinkingModel = "a", "later" }, []string{"a", "later"}},
		{"whoever a rule puts first, once", func(s *Settings) {
			s.DefaultModel = "a"
			s.Rules = []Rule{rule("gray", "b"), rule("off", "keyless", "later", "b"), rule("a"), rule("gray"), rule("off")}
		}, []string{"a", "gray", "later"}},
		{"the primary of a rule's chain", func(s *Settings) {
			s.DefaultModel = "a"
			s.Chains = []Chain{{Name: "x", Primary: "later"}, {Name: "y", Primary: "b"}}
			s.Rules = []Rule{{Match: never, Chain: "y"}}
		}, []string{"a", "b"}},
		{"not all of very many", func(s *Settings) {
			for i := range 20 {
				c := s.Candidates[0]
				c.ID = string(rune('m' + i))
				s.Candidates = append(s.Candidates, c)
				s.Rules = append(s.Rules, rule(c.ID))
			}
		}, []string{"a", "b", "m", "n", "o", "p", "q", "r"}},
		{"nobody", func(s *Settings) { s.Candidates = nil }, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := base()
			test.change(s)
			require.Equal(t, test.want, s.heads())
		})
	}
}

// reads is a store that counts its reads.
type reads struct {
	breaker.Store
	mu    sync.Mutex
	loads [][]string
}

func (r *reads) Load(ctx context.Context, ids ...string) (map[string]breaker.Record, error) {
	r.mu.Lock()
	r.loads = append(r.loads, ids)
	r.mu.Unlock()
	return r.Store.Load(ctx, ids...)
}

// Breakers are of candidates: one bad model doesn't take another of its provider with it.
func TestABadModelLeavesItsProviderAlone(t *testing.T) {
	l := newLab(t, scripted([]step{failStatus(providers.KindServerError, 500)}), scripted(answer))
	l.candidate("b").Provider, l.candidate("b").Client = l.candidate("a").Provider, l.models["b"]
	gate := breaker.New(breaker.Settings{FailureThreshold: 2}, breaker.NewMemory(), slog.New(slog.DiscardHandler))
	r := New(l.settings, gate, nil)
	for range 2 {
		require.Equal(t, []string{"a:server_error", "b:ok"}, read(r.Answer(t.Context(), request())).outcomes())
	}
	require.Equal(t, []string{"a:-breaker_open", "b:ok"}, read(r.Answer(t.Context(), request())).outcomes())
	require.NoError(t, gate.Close(t.Context()))
}

// A healthy request makes one read of the breakers, whichever rule chooses and whether it thinks.
func TestHealthyRequestReadsOnce(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"the default order": func(*Request) {},
		"a rule's":          func(r *Request) { r.Task = "cheap" },
		"thinking":          thinking,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, scripted(answer), scripted(answer), scripted(answer), scripted(answer))
			l.settings.Rules = []Rule{{Name: "r", Match: func(f *Facts) bool { return f.Task == "cheap" }, Use: []string{"c"}}}
			l.settings.ThinkingModel, l.candidate("b").Thinking = "b", true
			store := &reads{Store: breaker.NewMemory()}
			gate := breaker.New(breaker.Settings{}, store, slog.New(slog.DiscardHandler))
			r := New(l.settings, gate, nil)
			r.Prepare(t.Context())
			got := read(r.Answer(t.Context(), request(change)))
			require.NoError(t, gate.Close(t.Context()))
			require.Equal(t, TierModel, got.Trace.Tier)
			require.Equal(t, 1, got.Trace.Calls())
			require.Equal(t, [][]string{{"a", "b", "c"}}, store.loads)
		})
	}
}
