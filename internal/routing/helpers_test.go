package routing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// step is one thing that a scripted model does.
type step struct {
	wait   time.Duration
	text   string
	signal providers.Signal
	finish string
	usage  string
	err    error // ends the stream; io.EOF for a proper end
	hang   bool  // until the call is cancelled
}

func say(text string) step { return step{text: text, signal: providers.SignalContent} }

var (
	role   = step{text: "role"}
	stop   = step{text: "stop", finish: "stop"}
	end    = step{err: io.EOF}
	hang   = step{hang: true}
	answer = []step{role, say("one "), say("two"), stop, end}
)

func fail(kind providers.Kind) step { return step{err: &providers.Error{Kind: kind}} }

func failStatus(kind providers.Kind, status int) step {
	return step{err: &providers.Error{Kind: kind, Status: status}}
}

// model is a scripted provider: one script a call, the last for all further calls. A script that starts with an
// error refuses the call.
type model struct {
	mu      sync.Mutex
	scripts [][]step
	calls   int
	open    int
	at      []time.Time
}

func scripted(scripts ...[]step) *model { return &model{scripts: scripts} }

func (m *model) Stream(ctx context.Context, _ providers.Call) (providers.Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	script := m.scripts[min(m.calls, len(m.scripts)-1)]
	m.calls++
	m.at = append(m.at, time.Now())
	if script[0].err != nil && !errors.Is(script[0].err, io.EOF) {
		return nil, script[0].err
	}
	m.open++
	return &playing{m: m, ctx: ctx, steps: script}, nil
}

type playing struct {
	m     *model
	ctx   context.Context
	steps []step
	once  sync.Once
}

func (p *playing) Next() (providers.Chunk, error) {
	s := p.steps[0]
	if s.hang {
		<-p.ctx.Done()
		return providers.Chunk{}, fmt.Errorf("read: %w", context.Cause(p.ctx))
	}
	if !sleep(p.ctx, s.wait) {
		return providers.Chunk{}, fmt.Errorf("read: %w", context.Cause(p.ctx))
	}
	if s.err != nil {
		return providers.Chunk{}, s.err
	}
	p.steps = p.steps[1:]
	c := providers.Chunk{Data: []byte(s.text), Signal: s.signal, Finish: s.finish}
	if s.usage != "" {
		c.Usage = []byte(s.usage)
	}
	return c, nil
}

func (p *playing) Close() error {
	p.once.Do(func() {
		p.m.mu.Lock()
		p.m.open--
		p.m.mu.Unlock()
	})
	return nil
}

// gate is a breaker whose states the test sets; it notes what it hears.
type gate struct {
	mu      sync.Mutex
	refuse  map[string]*breaker.Refusal
	trial   map[string]bool
	reports map[string][]breaker.Class
	started map[string]int
	last    map[string]breaker.Outcome
	leases  map[string]time.Duration
	slow    time.Duration // what its store takes to answer
}

func newGate() *gate {
	return &gate{
		refuse: map[string]*breaker.Refusal{}, trial: map[string]bool{},
		reports: map[string][]breaker.Class{}, started: map[string]int{},
		last: map[string]breaker.Outcome{}, leases: map[string]time.Duration{},
	}
}

func (g *gate) Refresh(context.Context, ...string) {}

func (g *gate) Enter(ctx context.Context, id string, lease time.Duration) (breaker.Permit, error) {
	sleep(ctx, g.slow)
	g.leases[id] = lease
	if r := g.refuse[id]; r != nil {
		return nil, r
	}
	return &permit{g: g, id: id}, nil
}

func (g *gate) Snapshot(_ context.Context, ids ...string) []breaker.Status {
	out := make([]breaker.Status, len(ids))
	for i, id := range ids {
		out[i].Candidate = id
		if r := g.refuse[id]; r != nil {
			out[i].State, out[i].Until, out[i].Refuses = r.State, r.Until, true
		}
	}
	return out
}

type permit struct {
	g    *gate
	id   string
	once sync.Once
}

func (p *permit) Trial() bool { return p.g.trial[p.id] }

func (p *permit) Started() {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.g.started[p.id]++
}

func (p *permit) Done(o breaker.Outcome) {
	p.once.Do(func() {
		p.g.mu.Lock()
		defer p.g.mu.Unlock()
		p.g.reports[p.id] = append(p.g.reports[p.id], o.Class)
		p.g.last[p.id] = o
	})
}

// lab is a router over scripted models a, b, c … in the order of priority.
type lab struct {
	t        *testing.T
	models   map[string]*model
	gate     *gate
	settings Settings
	cache    LastResort
}

func newLab(t *testing.T, models ...*model) *lab {
	l := &lab{t: t, models: map[string]*model{}, gate: newGate()}
	l.settings = Settings{
		Version: "v1", Retries: Retries{Last: 0, Base: 200 * time.Millisecond, Cap: 2 * time.Second},
		Budget: Budget{Total: 180 * time.Second, Reserve: 2 * time.Second},
		Fallback: Fallback{Status: 200, RetryAfter: 30 * time.Second, Messages: map[string]string{
			"en": "busy", "zh": "忙",
		}},
	}
	for i, m := range models {
		id := string(rune('a' + i))
		l.models[id] = m
		l.settings.Candidates = append(l.settings.Candidates, Candidate{
			ID: id, Provider: "p-" + id, Model: "model-" + id, Client: m, Priority: i + 1, Weight: 1,
			Timeouts: Timeouts{Connect: time.Second, Header: 30 * time.Second, FirstToken: 5 * time.Second, Idle: 10 * time.Second},
		})
	}
	return l
}

func (l *lab) router() *Router { return New(l.settings, l.gate, l.cache) }

func (l *lab) candidate(id string) *Candidate { return l.settings.candidate(id) }

func request(change ...func(*Request)) *Request {
	r := &Request{
		Request: &providers.Request{Raw: []byte(`{}`)}, RouteID: "0198-77", Tenant: "t", Received: time.Now(),
		Tokens: 10, Language: "en",
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func whole(r *Request) { r.Hold = HoldComplete }

func thinking(r *Request) { r.Thinking.Mode = providers.ThinkingOn }

func named(model string) func(*Request) { return func(r *Request) { r.Model = model } }

// result is an answer read to its end.
type result struct {
	*Answer
	text string
	err  error
}

func (l *lab) ask(change ...func(*Request)) result {
	return read(l.router().Answer(context.Background(), request(change...)))
}

func read(a *Answer) result {
	defer a.Close()
	out := result{Answer: a}
	for {
		c, err := a.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			out.err = err
			return out
		}
		if c.Signal == providers.SignalContent {
			out.text += string(c.Data)
		}
	}
}

// outcomes are the trace in short: "a:timeout b:ok c:-trigger".
func (r result) outcomes() (out []string) {
	for _, a := range r.Trace.Attempts {
		if a.Skipped != "" {
			out = append(out, a.Candidate+":-"+string(a.Skipped))
		} else {
			out = append(out, a.Candidate+":"+a.Outcome)
		}
	}
	return out
}

func (l *lab) noneOpen() {
	l.t.Helper()
	for id, m := range l.models {
		require.Zero(l.t, m.open, "open streams of %s", id)
	}
}
