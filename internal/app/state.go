package app

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"holdfast/internal/api"
	"holdfast/internal/cache"
	"holdfast/internal/config"
	"holdfast/internal/providers"
	"holdfast/internal/routing"
	"holdfast/internal/routing/breaker"
	"holdfast/internal/spend"
	"holdfast/internal/telemetry"
)

// state is everything that one configuration makes. It is never changed; a request keeps the one it began with.
type state struct {
	config  *config.Config
	whole   bool // its parameters could be fetched
	handler http.Handler
	gate    *breaker.Breakers
	cache   cache.Service // over the App's store; nil: mode off
	caps    *spend.Caps
	ids     []string
	clients map[string]providers.Provider // by provider name; none without its key

	requests atomic.Int64 // in flight
	retired  atomic.Bool  // another state took its place
}

// build makes the state of a configuration, in the place of another (nil: of none), whose breakers go on.
func (a *App) build(c *config.Config, old *state) (*state, error) {
	keys, err := a.keys(c)
	if err != nil {
		return nil, err
	}
	clients, err := connect(c, a.options.Places.AWS)
	if err != nil {
		return nil, err
	}
	s := &state{config: c, clients: clients, caps: a.meter.Caps(limits(c.Caps))}
	if s.cache, err = a.openCache(c.Cache); err != nil {
		return nil, err
	}
	if old == nil {
		s.gate = breaker.New(breakerSettings(c.Breaker), a.store, a.log)
	} else {
		s.gate = old.gate.With(breakerSettings(c.Breaker))
		keepDrill(old.clients, clients)
	}
	settings := routingSettings(c, clients)
	settings.Said = api.Said
	for _, candidate := range settings.Candidates {
		s.ids = append(s.ids, candidate.ID)
	}
	var last routing.LastResort
	if s.cache != nil {
		l := lastResort{s.cache, a.log}
		last = l
		if c.Cache.Mode == "front" {
			settings.Front = front{l}
		}
	}
	router := routing.New(settings, s.gate, last)
	finished := func(ctx context.Context, req *routing.Request, trace routing.Trace, done api.Done) {
		a.finished(ctx, s, req, trace, done)
	}
	s.handler = api.New(
		api.Settings{Keys: keys, Anonymous: c.Auth.Anonymous, MaxBody: c.Limits.Body, Version: a.options.Version},
		api.Deps{Router: router, Caps: s.caps, After: a.after.run, Finished: finished, Correction: &a.tokens, Log: a.log},
	)
	if a.options.Local {
		s.handler = withDrill(s.handler, clients)
	}
	return s, nil
}

// warm reads the breakers' items once.
func (s *state) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	s.gate.Warm(ctx, s.ids...)
}

// serve serves one request. The last one of a retired state closes the connections that it leaves.
func (s *state) serve(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer func() {
		if s.requests.Add(-1) == 0 && s.retired.Load() {
			s.close()
		}
	}()
	s.handler.ServeHTTP(w, r)
}

// retire closes what no request uses.
func (s *state) retire() {
	s.retired.Store(true)
	s.close()
}

// close drops idle connections.
func (s *state) close() {
	for _, client := range s.clients {
		if c, ok := client.(providers.IdleCloser); ok {
			c.CloseIdleConnections()
		}
	}
}

// keys are those of the configuration and of HOLDFAST_KEYS.
func (a *App) keys(c *config.Config) ([]api.Key, error) {
	more, err := config.ParseKeys(a.options.Places.Keys)
	if err != nil {
		return nil, err
	}
	if a.options.Lambda {
		if err := c.CheckLambda(more); err != nil {
			return nil, err
		}
	}
	var keys []api.Key
	for _, k := range append(more, c.Auth.Keys...) {
		keys = append(keys, api.Key(k))
	}
	return keys, nil
}

// connect makes the clients of those providers that have what they need.
func connect(c *config.Config, account providers.AWSConfig) (map[string]providers.Provider, error) {
	clients := map[string]providers.Provider{}
	for _, p := range c.Providers {
		if p.NoClient {
			continue
		}
		settings := p.Settings
		settings.AWS = account
		client, err := providers.New(settings)
		if err != nil {
			return nil, fmt.Errorf("%s: provider %s: %w", c.Source, p.Name, err)
		}
		clients[p.Name] = client
	}
	if c.Embedded {
		dropScripted(clients)
	}
	return clients, nil
}

// dropScripted leaves the demonstration out once a real provider has a key.
func dropScripted(clients map[string]providers.Provider) {
	var scripted []string
	for name, client := range clients {
		if _, ok := client.(*providers.Script); ok {
			scripted = append(scripted, name)
		}
	}
	if len(scripted) == len(clients) {
		return
	}
	for _, name := range scripted {
		delete(clients, name)
	}
}

// limits are the tenants' caps in nano-dollars a day.
func limits(caps []config.Cap) map[string]int64 {
	all := make(map[string]int64, len(caps))
	for _, c := range caps {
		all[c.Tenant] = routing.Nanos(c.USDPerDay)
	}
	return all
}

func breakerSettings(b config.Breaker) breaker.Settings {
	modes := map[string]breaker.Mode{
		"consecutive": breaker.ModeConsecutive, "window": breaker.ModeWindow, "hybrid": breaker.ModeHybrid,
	}
	return breaker.Settings{
		Mode: modes[b.Mode], FailureThreshold: b.FailureThreshold,
		OpenDuration: b.OpenDuration, MaxOpenDuration: b.MaxOpenDuration,
		HalfOpenSuccesses: b.HalfOpenSuccesses, Disabled: !b.Enabled, Observe: b.Observe,
		Sample: breaker.Sampling{
			Size: b.Sample.Size, MinCalls: b.Sample.MinCalls, FailureRate: b.Sample.FailureRate,
			SlowAfter: b.SlowCall.After, SlowRate: b.SlowCall.Rate,
		},
	}
}

func routingSettings(c *config.Config, clients map[string]providers.Provider) routing.Settings {
	s := routing.Settings{
		Version: c.Version, DefaultModel: c.Chat.DefaultModel, ThinkingModel: c.Chat.DeepThinkingModel,
		Retries: routing.Retries(c.Retries), Budget: routing.Budget(c.Budget),
		ThinkingTimeout: c.Chat.ThinkingTimeout, ContentPolicyNext: c.ContentPolicy == "next",
		EarliestOpen: c.Breaker.AllOpen == "earliest",
		Fallback: routing.Fallback{
			Status: c.Fallback.Status, StructuredMessage: c.Fallback.Structured == "message",
			RetryAfter: c.Fallback.RetryAfter, Messages: c.Fallback.Messages,
		},
	}
	for _, candidate := range c.Candidates {
		s.Candidates = append(s.Candidates, routingCandidate(candidate, c.Deny, clients))
	}
	for _, chain := range c.Chains {
		r := routing.Chain{Name: chain.Name, Primary: chain.Primary}
		for _, entry := range chain.Fallbacks {
			r.Fallbacks = append(r.Fallbacks, routing.Entry(entry))
		}
		s.Chains = append(s.Chains, r)
	}
	for _, rule := range c.Rules {
		s.Rules = append(s.Rules, routing.Rule{
			Name: rule.Name, Match: func(f *routing.Facts) bool { return rule.Matches((*config.Facts)(f)) },
			Use: rule.Use, Chain: rule.UseChain, Only: rule.Only, Force: rule.Force, Messages: rule.Message,
		})
	}
	return s
}

func routingCandidate(c config.Candidate, denials []config.Deny, clients map[string]providers.Provider) routing.Candidate {
	r := routing.Candidate{
		ID: c.ID, Provider: c.Provider, Model: c.Model, BaseURL: c.BaseURL, Client: clients[c.Provider],
		Priority: c.Priority, Weight: c.Weight, Disabled: !c.Enabled, Unlisted: !c.Listed, Tenants: c.Tenants,
		Thinking: c.SupportsThinking, Window: c.ContextWindow, Timeouts: routing.Timeouts(c.Timeouts), Options: c.Options,
	}
	r.Options.NoThinking = !c.SupportsThinking
	if p := c.Price; p != nil {
		r.Price = routing.NewPrice(p.Input, p.CachedInput, p.Output)
	}
	if c.Features != nil {
		r.Features = &routing.Needs{Tools: c.Features.Tools, Vision: c.Features.Vision, JSON: c.Features.JSON}
	}
	for _, d := range denials {
		if d.Candidate == c.ID && (d.Until.IsZero() || d.Until.After(time.Now())) {
			r.Denied, r.DeniedUntil = true, d.Until
		}
	}
	return r
}

// finished is told what became of a request that s served: the event is written, what it cost is counted, and
// what may be kept goes into the cache.
func (a *App) finished(ctx context.Context, s *state, req *routing.Request, trace routing.Trace, done api.Done) {
	event := telemetry.Request{
		Tenant: req.Tenant, Stream: req.Hold == routing.HoldFirstToken, Trace: trace, Finish: done.Finish,
		Complete: done.Complete, Usage: done.Usage, Estimated: done.UsageEstimated, Failure: done.Failure,
		Duration: done.Duration, Tokens: req.Tokens, Metrics: a.options.Lambda,
	}
	if done.Err != nil {
		event.Broke = done.Err.Kind.String()
	}
	keep := s.cache != nil && trace.Tier == routing.TierModel && keepable(done)
	if keep {
		event.Shadow = a.shadow(ctx, s, req, done.Text)
	}
	telemetry.Log(ctx, a.log, event)
	if cost := trace.Cost(); cost != nil {
		s.caps.Spend(ctx, req.Tenant, cost.Nanos)
	}
	if !keep {
		return
	}
	q := question(req)
	q.Shape = shape(req, trace.Candidate, trace.Provider, trace.Model)
	if err := s.cache.Store(ctx, q, done.Text); err != nil {
		a.log.Log(ctx, levelOf(err), "answer not cached", "route_id", req.RouteID, "error", err)
	}
}

// keepable: complete, of one piece, and nothing but text.
func keepable(d api.Done) bool {
	return d.Complete && d.Finish == "stop" && !d.ToolCalls && !d.Refusal && !d.TooLong && d.Text != ""
}
