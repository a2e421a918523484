package routing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// odd is a provider that does what none should.
type odd struct {
	refusal error
	next    func(n int) (providers.Chunk, error) // nil: no stream at all
	calls   int
	read    int
}

func (o *odd) Stream(context.Context, providers.Call) (providers.Stream, error) {
	o.calls++
	if o.refusal != nil || o.next == nil {
		return nil, o.refusal
	}
	return o, nil
}

func (o *odd) Next() (providers.Chunk, error) {
	o.read++
	return o.next(o.read)
}

func (o *odd) Close() error { return nil }

// panics plays steps, then panics.
func panics(steps ...step) func(int) (providers.Chunk, error) {
	return func(n int) (providers.Chunk, error) {
		if n > len(steps) {
			panic("what a caller or a provider wrote")
		}
		s := steps[n-1]
		return providers.Chunk{Data: []byte(s.text), Signal: s.signal, Finish: s.finish}, nil
	}
}

// Whatever an adapter does, the next candidate is asked, and nobody is told that the caller left or the budget ended.
func TestOddProviders(t *testing.T) {
	tests := []struct {
		name   string
		odd    *odd
		class  breaker.Class
		panics bool
	}{
		{"panic in its first chunk", &odd{next: panics()}, breaker.Cancelled, true},
		{"panic before the first token", &odd{next: panics(role)}, breaker.Cancelled, true},
		{"no stream and no error", &odd{}, breaker.Cancelled, true},
		{"a failure without a kind", &odd{refusal: &providers.Error{}}, breaker.Failure, false},
		{"canceled, though nobody did", &odd{refusal: &providers.Error{Kind: providers.KindCanceled}}, breaker.Failure, false},
		{"deadline, though none passed", &odd{refusal: &providers.Error{Kind: providers.KindDeadline}}, breaker.Failure, false},
		{"a foreign error", &odd{refusal: context.Canceled}, breaker.Failure, false},
		{"the end, instead of a stream", &odd{refusal: io.EOF}, breaker.Failure, false},
	}
	for _, test := range tests {
		for name, hold := range map[string]Hold{"stream": HoldFirstToken, "JSON": HoldComplete} {
			t.Run(test.name+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t, scripted(answer), scripted(answer))
					test.odd.read = 0
					l.candidate("a").Client = test.odd
					got := l.ask(func(r *Request) { r.Hold = hold })
					require.Equal(t, []string{"a:server_error", "b:ok"}, got.outcomes())
					require.Equal(t, "one two", got.text)
					require.Equal(t, []breaker.Class{test.class}, l.gate.reports["a"])
					require.Equal(t, test.panics, got.Trace.Attempts[0].Stack != "")
					require.NotContains(t, got.Trace.Attempts[0].Stack, "wrote")
				})
			})
		}
	}
}

func TestPanicAfterTheCommit(t *testing.T) {
	l := newLab(t, scripted(answer), scripted(answer))
	l.candidate("a").Client = &odd{next: panics(role, say("half"))}
	got := l.ask()
	require.Equal(t, "half", got.text)
	require.Equal(t, providers.KindServerError, providers.AsError(got.err).Kind)
	require.Equal(t, []string{"a:server_error"}, got.outcomes())
	require.NotEmpty(t, got.Trace.Attempts[0].Stack)
	require.Equal(t, []breaker.Class{breaker.Cancelled}, l.gate.reports["a"])
}

// The end of an answer stays what it was, however often one asks.
func TestEndIsFinal(t *testing.T) {
	ends := func(a *Answer, want error) {
		for range 3 {
			_, err := a.Next()
			require.ErrorIs(t, err, want)
		}
	}
	l := newLab(t, scripted([]step{say("half"), fail(providers.KindTruncated)}, answer, answer))
	a := l.router().Answer(t.Context(), request())
	got := read(a)
	require.Equal(t, providers.KindTruncated, providers.AsError(got.err).Kind)
	ends(a, got.err)

	a = l.router().Answer(t.Context(), request())
	require.NoError(t, read(a).err)
	ends(a, io.EOF)

	a = l.router().Answer(t.Context(), request())
	a.Close()
	_, err := a.Next()
	require.NotErrorIs(t, err, io.EOF, "an answer that was left is not complete")
	require.Equal(t, []string{"a:canceled"}, result{Answer: a}.outcomes())
	require.Equal(t, []breaker.Class{breaker.Failure, breaker.Success, breaker.Cancelled}, l.gate.reports["a"])
}

// JSON too: what comes after the finish reason changes nothing, and nothing is bought twice.
func TestNothingChangesAfterTheFinishReasonOfJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, last := range []step{fail(providers.KindServerError), hang} {
			l := newLab(t, scripted([]step{say("all"), stop, last}), scripted(answer))
			got := l.ask(whole)
			require.NoError(t, got.err)
			require.Equal(t, "all", got.text)
			require.Equal(t, []string{"a:ok"}, got.outcomes())
			require.Equal(t, []breaker.Class{breaker.Success}, l.gate.reports["a"])
		}
	})
}

// With no time at all there still is an answer, and a line for every candidate.
func TestNoTime(t *testing.T) {
	tests := []struct {
		name    string
		hint    time.Duration
		expired time.Duration // how long ago the platform's deadline was; 0: there is none
		age     time.Duration // of the request
	}{
		{"a hint of 1 ms", time.Millisecond, 0, 0},
		{"the platform's deadline is over", 0, time.Second, 0},
		{"the platform's deadline is long over", 0, time.Hour, 0},
		{"received an hour ago", 0, 0, time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(answer), scripted(answer))
				l.candidate("b").Disabled = true
				ctx := t.Context()
				if test.expired > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithDeadline(ctx, time.Now().Add(-test.expired))
					defer cancel()
				}
				got := read(l.router().Answer(ctx, request(func(r *Request) {
					r.Hint, r.Received = test.hint, time.Now().Add(-test.age)
				})))
				require.Equal(t, []string{"a:-budget", "b:-disabled"}, got.outcomes())
				require.Equal(t, TierFallback, got.Trace.Tier)
				require.Nil(t, got.Failure)
				require.Zero(t, l.models["a"].calls)
			})
		})
	}
}

func TestNobodyToAsk(t *testing.T) {
	got := read(New(Settings{Fallback: Fallback{Status: 200}}, newGate(), nil).Answer(t.Context(), request()))
	require.Equal(t, TierFallback, got.Trace.Tier)
	require.NotEmpty(t, got.text)
	require.Empty(t, got.Trace.Attempts)
}

// A tenant learns nothing of another's candidates, whatever he asks.
func TestTenantsApart(t *testing.T) {
	l := newLab(t, scripted(answer), scripted(answer))
	l.candidate("b").Tenants = []string{"other"}
	l.settings.Chains = []Chain{
		{Name: "a", Primary: "a", Fallbacks: []Entry{{Model: "b"}}},
		{Name: "named", Primary: "a", Fallbacks: []Entry{{Model: "b"}}},
		{Name: "theirs", Primary: "b", Fallbacks: []Entry{{Model: "a"}}},
	}
	r := l.router()
	for tenant, want := range map[string]string{
		"t":     "models [{a p-a} {named holdfast}] status [a] chains [a:a[] named:a[]]",
		"other": "models [{a p-a} {b p-b} {named holdfast} {theirs holdfast}] status [a b] chains [a:a[b] named:a[b] theirs:b[a]]",
	} {
		var status, chains []string
		s := r.Status(t.Context(), tenant)
		for _, c := range s.Candidates {
			status = append(status, c.Candidate.ID)
		}
		for _, c := range s.Chains {
			var next []string
			for _, e := range c.Fallbacks {
				next = append(next, e.Model)
			}
			chains = append(chains, fmt.Sprintf("%s:%s%v", c.Name, c.Primary, next))
		}
		require.Equal(t, want, fmt.Sprintf("models %v status %v chains %v", r.Models(tenant), status, chains))
	}
	require.Len(t, l.settings.Chains[0].Fallbacks, 1, "the settings stay as they are")
	for _, model := range []string{"b", "theirs"} {
		hidden, unknown := l.ask(named(model)), l.ask(named("nowhere"))
		unknown.Failure.Message = fmt.Sprintf(unknownModel, model)
		require.Equal(t, unknown.Failure, hidden.Failure)
		require.Equal(t, unknown.Trace, hidden.Trace)
	}
	l.models["a"].scripts = [][]step{{fail(providers.KindConnect)}}
	require.Equal(t, []string{"a:connect"}, l.ask().outcomes())
}

// A denial that is over is over everywhere.
func TestDenialEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted(answer))
		l.candidate("a").Denied, l.candidate("a").DeniedUntil = true, time.Now().Add(time.Hour)
		r := l.router()
		require.Empty(t, r.Models("t"))
		require.Equal(t, SkipDenied, r.Status(t.Context(), "t").Candidates[0].Skip)
		<-time.After(time.Hour)
		require.Equal(t, []Listing{{"a", "p-a"}}, r.Models("t"))
		require.Empty(t, r.Status(t.Context(), "t").Candidates[0].Skip)
		require.Equal(t, []string{"a:ok"}, read(r.Answer(t.Context(), request())).outcomes())
	})
}

// An order that a request changed on its way is its own: the settings and the next request don't see it.
func TestReorderingIsTheRequestsOwn(t *testing.T) {
	tooLong := &providers.Error{Kind: providers.KindContextTooLong, Status: 400, Message: "too long"}
	l := newLab(t, scripted([]step{{err: tooLong}}), scripted(answer), scripted([]step{fail(providers.KindConnect)}))
	l.candidate("a").Window, l.candidate("c").Window = 8192, 100_000
	l.settings.Chains = []Chain{{Name: "x", Primary: "a", Fallbacks: []Entry{{Model: "b"}, {Model: "c"}}}}
	r := l.router()
	before := slices.Clone(l.settings.Chains[0].Fallbacks)
	for range 3 {
		require.Equal(t, []string{"a:context_too_long", "c:connect", "b:ok"}, read(r.Answer(t.Context(), request())).outcomes())
	}
	require.Equal(t, before, l.settings.Chains[0].Fallbacks)
}

// Thousands of requests that end in every way leave nothing behind: TestMain looks for goroutines.
func TestManyRequestsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which waits for every goroutine, and sees each timer
		l := newLab(t,
			scripted([]step{hang}, []step{role, say("half"), hang}, answer, []step{fail(providers.KindConnect)}),
			scripted([]step{role, hang}), scripted(answer))
		r := l.router()
		for i := range 2000 {
			l.models["a"].calls = i % 4
			ctx, leave := context.WithCancel(t.Context())
			a := r.Answer(ctx, request(func(r *Request) { r.Hold = Hold(i / 4 % 2) }))
			switch i % 3 {
			case 0:
				read(a)
			case 1:
				_, _ = a.Next()
			case 2:
				leave()
				_, _ = a.Next()
			}
			a.Close()
			leave()
		}
		l.noneOpen()
		reports := 0
		for _, classes := range l.gate.reports {
			reports += len(classes)
		}
		calls := len(l.models["a"].at) + len(l.models["b"].at) + len(l.models["c"].at)
		require.Equal(t, calls, reports, "a report a call")
	})
}

func TestUnsupportedHasACode(t *testing.T) {
	l := newLab(t, scripted([]step{{err: &providers.Error{Kind: providers.KindUnsupported, Status: 400, Message: "no images here"}}}))
	got := l.ask()
	require.Equal(t, "unsupported", got.Failure.Code)
	require.Equal(t, "no images here", got.Failure.Message)
}

var errPlain = errors.New("plain")

// An error of nobody's kind is the provider's fault and names none of our clocks.
func TestOfProvider(t *testing.T) {
	for _, kind := range []providers.Kind{providers.KindNone, providers.KindCanceled, providers.KindDeadline} {
		e := ofProvider(&providers.Error{Kind: kind, Status: 500, Code: "c", Err: errPlain})
		require.Equal(t, providers.KindServerError, e.Kind)
		require.Equal(t, 500, e.Status)
		require.Equal(t, "c", e.Code)
		require.ErrorIs(t, e, errPlain)
	}
	e := &providers.Error{Kind: providers.KindQuota}
	require.Same(t, e, ofProvider(e))
}

// silent never answers.
type silent struct{}

func (silent) Stream(ctx context.Context, _ providers.Call) (providers.Stream, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// slowHeaders accepts after 3 s.
type slowHeaders struct{ *model }

func (s slowHeaders) Stream(ctx context.Context, call providers.Call) (providers.Stream, error) {
	if !sleep(ctx, 3*time.Second) {
		return nil, context.Cause(ctx)
	}
	return s.model.Stream(ctx, call)
}

// narrow is a provider whose dialect can't carry everything.
type narrow struct{ *model }

func (n narrow) Check(call providers.Call) error {
	if call.Model == "model-a" {
		return &providers.Error{Kind: providers.KindUnsupported}
	}
	return nil
}

func TestDialectThatCannot(t *testing.T) {
	l := newLab(t, scripted(answer), scripted(answer))
	for id, m := range l.models {
		l.candidate(id).Client = narrow{m}
	}
	require.Equal(t, []string{"a:-feature", "b:ok"}, l.ask().outcomes())
}
