package routing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// Every failure before the commit is switched, whatever it is and wherever it strikes, in streams and in JSON.
func TestSwitch(t *testing.T) {
	tests := []struct {
		name    string
		script  []step
		outcome string
		after   time.Duration
	}{
		{"refused", []step{fail(providers.KindConnect)}, "connect", 0},
		{"status 500", []step{failStatus(providers.KindServerError, 500)}, "server_error", 0},
		{"status 429", []step{failStatus(providers.KindRateLimited, 429)}, "rate_limited", 0},
		{"key refused", []step{failStatus(providers.KindAuth, 401)}, "auth", 0},
		{"hang at once", []step{hang}, "timeout", 5 * time.Second},
		{"role, then hang", []step{role, hang}, "timeout", 5 * time.Second},
		{"role chunks for ever", []step{role, {wait: 2 * time.Second}, {wait: 2 * time.Second}, {wait: 2 * time.Second}, hang}, "timeout", 5 * time.Second},
		{"role, then no money left", []step{role, fail(providers.KindQuota)}, "quota", 0},
		{"role, then error", []step{role, fail(providers.KindOverloaded)}, "overloaded", 0},
		{"empty", []step{role, {finish: "stop"}, fail(providers.KindEmpty)}, "empty", 0},
		{"html", []step{fail(providers.KindMalformed)}, "malformed", 0},
		{"cut before the first token", []step{role, fail(providers.KindTruncated)}, "truncated", 0},
	}
	for _, test := range tests {
		for name, hold := range map[string]Hold{"stream": HoldFirstToken, "JSON": HoldComplete} {
			t.Run(test.name+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t, scripted(test.script), scripted(answer))
					start := time.Now()
					got := l.ask(func(r *Request) { r.Hold = hold })
					require.NoError(t, got.err)
					require.Equal(t, "one two", got.text)
					require.Equal(t, []string{"a:" + test.outcome, "b:ok"}, got.outcomes())
					require.Equal(t, test.after, time.Since(start), "b is asked at once")
					require.Equal(t, TierModel, got.Trace.Tier)
					require.Equal(t, "b", got.Trace.Candidate)
					l.noneOpen()
				})
			})
		}
	}
}

// What dies after the first token is switched in JSON, as nothing was sent, and ends in an error in a stream.
func TestDeathAfterFirstToken(t *testing.T) {
	tests := []struct {
		name, outcome string
		script        []step
		after         time.Duration
	}{
		{"cut", "truncated", []step{role, say("half"), fail(providers.KindTruncated)}, 0},
		{"error event", "server_error", []step{role, say("half"), fail(providers.KindServerError)}, 0},
		{"silence", "timeout", []step{role, say("half"), hang}, 10 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(test.script), scripted(answer))
				start := time.Now()
				got := l.ask(whole)
				require.Equal(t, "one two", got.text)
				require.Equal(t, []string{"a:" + test.outcome, "b:ok"}, got.outcomes())
				require.Equal(t, test.after, time.Since(start))

				start = time.Now()
				got = l.ask()
				require.Equal(t, test.outcome, providers.AsError(got.err).Kind.String())
				require.Equal(t, "half", got.text)
				require.Equal(t, []string{"a:" + test.outcome}, got.outcomes())
				require.Equal(t, test.after, time.Since(start))
				require.Equal(t, 1, l.models["b"].calls, "no switch after the first token")
				require.Equal(t, []breaker.Class{breaker.Failure, breaker.Failure}, l.gate.reports["a"])
				l.noneOpen()
			})
		})
	}
}

func TestFirstTokenSettlesATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted([]step{role, {text: "hm", signal: providers.SignalReasoning}, say("yes"), stop, end}))
		a := l.router().Answer(t.Context(), request())
		require.Equal(t, 1, l.gate.started["a"])
		require.Empty(t, l.gate.reports["a"], "done comes at the end")
		read(a)
		require.Equal(t, []breaker.Class{breaker.Success}, l.gate.reports["a"])
	})
}

// Reasoning is a first token; the first content has a clock of its own from then on.
func TestThinkingTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hm := step{text: "hm", signal: providers.SignalReasoning, wait: 4 * time.Second}
		l := newLab(t, scripted([]step{hm, hm, hm, hm, hm, say("late"), stop, end}))
		l.settings.ThinkingTimeout = 9 * time.Second
		start := time.Now()
		got := l.ask()
		require.Equal(t, providers.KindTimeout, providers.AsError(got.err).Kind)
		require.Equal(t, 13*time.Second, time.Since(start), "9 s after the first reasoning at 4 s")
	})
}

func TestTotalTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := step{text: "tick", signal: providers.SignalContent, wait: 3 * time.Second}
		l := newLab(t, scripted([]step{tick, tick, tick, tick, tick, stop, end}))
		l.candidate("a").Timeouts.Total = 7 * time.Second
		start := time.Now()
		got := l.ask()
		require.Equal(t, providers.KindTimeout, providers.AsError(got.err).Kind)
		require.Equal(t, "ticktick", got.text)
		require.Equal(t, 7*time.Second, time.Since(start))
	})
}

// A caller who reads slowly is not the provider's fault.
func TestSlowCallerIsNoIdleProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted(answer))
		a := l.router().Answer(t.Context(), request())
		<-time.After(time.Minute) // virtual: the caller pauses
		require.Equal(t, "one two", read(a).text)
		require.Equal(t, []breaker.Class{breaker.Success}, l.gate.reports["a"])
	})
}

func TestNothingChangesAfterTheFinishReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, last := range []step{fail(providers.KindServerError), hang} {
			l := newLab(t, scripted([]step{say("all"), stop, last}))
			got := l.ask()
			require.NoError(t, got.err)
			require.Equal(t, []string{"a:ok"}, got.outcomes())
			require.Equal(t, []breaker.Class{breaker.Success}, l.gate.reports["a"])
		}
	})
}

func TestCallerLeaves(t *testing.T) {
	tests := []struct {
		name   string
		script []step
		hold   Hold
	}{
		{"while waiting for the first token", []step{role, hang}, HoldFirstToken},
		{"while JSON is collected", []step{role, say("half"), hang}, HoldComplete},
		{"while nothing was accepted", []step{hang}, HoldComplete},
		{"in mid-stream", []step{role, say("half"), hang}, HoldFirstToken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(test.script), scripted(answer))
				ctx, leave := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, leave)
				start := time.Now()
				read(l.router().Answer(ctx, request(func(r *Request) { r.Hold = test.hold })))
				require.Equal(t, time.Second, time.Since(start), "everything stops at once")
				require.Zero(t, l.models["b"].calls, "nobody is called for a caller who left")
				require.Equal(t, []breaker.Class{breaker.Cancelled}, l.gate.reports["a"])
				l.noneOpen()
			})
		})
	}
}

func TestCallerClosesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted(answer))
		a := l.router().Answer(t.Context(), request())
		_, err := a.Next()
		require.NoError(t, err)
		a.Close()
		a.Close()
		require.Equal(t, []breaker.Class{breaker.Cancelled}, l.gate.reports["a"])
		l.noneOpen()
	})
}

func TestCallerLeavesDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retryAfter := step{err: &providers.Error{Kind: providers.KindRateLimited, RetryAfter: 2 * time.Second}}
		l := newLab(t, scripted([]step{retryAfter}), scripted(answer))
		l.settings.Retries.Max = 3
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		got := read(l.router().Answer(ctx, request()))
		require.Equal(t, 499, got.Failure.Status)
		require.Equal(t, 1, l.models["a"].calls)
		require.Zero(t, l.models["b"].calls)
	})
}

// In a bubble, for copying takes a machine under load longer than a model may.
func TestHeldBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := step{text: strings.Repeat("x", 100<<10)}
		l := newLab(t, scripted([]step{big, big, big, say("late"), stop, end}), scripted(answer))
		require.Equal(t, []string{"a:malformed", "b:ok"}, l.ask().outcomes())
		require.Equal(t, []string{"a:ok"}, l.ask(whole).outcomes(), "JSON may hold more")

		large := []step{{text: strings.Repeat("x", 300<<10), signal: providers.SignalContent}, stop, end}
		require.Equal(t, []string{"a:ok"}, newLab(t, scripted(large)).ask().outcomes(), "the first token itself may be large")

		chunks := func(n int, text string) []step {
			return append(slices.Repeat([]step{{text: text}}, n), say("last"), stop, end)
		}
		l = newLab(t, scripted(chunks(17, strings.Repeat("x", 1<<20))), scripted(answer))
		require.Equal(t, []string{"a:malformed", "b:ok"}, l.ask(whole).outcomes(), "16 MiB of answer")

		token := `{"id":"` + strings.Repeat("i", 300) + `","choices":[{"index":0,"delta":{"content":"a"}}]}`
		require.Equal(t, []string{"a:ok"}, newLab(t, scripted(chunks(100_000, token))).ask(whole).outcomes(), "what is around the tokens doesn't count")
		l = newLab(t, scripted(chunks(65, `{"pad":"`+strings.Repeat("x", 1<<20)+`","choices":[{"index":0,"delta":{}}]}`)), scripted(answer))
		require.Equal(t, []string{"a:malformed", "b:ok"}, l.ask(whole).outcomes(), "but it isn't unbounded")
	})
}

func TestRetries(t *testing.T) {
	bad, two, none, yes := []step{failStatus(providers.KindServerError, 500)}, 2, 0, true
	tests := []struct {
		name    string
		change  func(*lab)
		scripts []*model
		calls   map[string]int
	}{
		{"switching beats waiting", func(*lab) {}, []*model{scripted(bad), scripted(answer)}, map[string]int{"a": 1, "b": 1}},
		{"the last one gets retries.last", func(l *lab) { l.settings.Retries.Last = 1 }, []*model{scripted(bad), scripted(bad)}, map[string]int{"a": 1, "b": 2}},
		{"the last that could be tried", func(l *lab) {
			l.settings.Retries.Last = 1
			l.gate.refuse["b"] = &breaker.Refusal{State: breaker.Open, Until: time.Now().Add(time.Hour)}
		}, []*model{scripted(bad), scripted(answer)}, map[string]int{"a": 2, "b": 0}},
		{"an entry that wouldn't fire is nobody to ask", func(l *lab) {
			l.settings.Retries.Last = 1
			l.settings.Chains = []Chain{{Name: "a", Primary: "a", Fallbacks: []Entry{{Model: "b", OnTimeout: &yes}, {Model: "c", OnTimeout: &yes}}}}
		}, []*model{scripted(bad), scripted(answer), scripted(answer)}, map[string]int{"a": 2, "b": 0, "c": 0}},
		{"but one after a skipped one would", func(l *lab) {
			l.settings.Retries.Last = 1
			l.candidate("b").Disabled = true
			l.settings.Chains = []Chain{{Name: "a", Primary: "a", Fallbacks: []Entry{{Model: "b"}, {Model: "c", OnTimeout: &yes}}}}
		}, []*model{scripted(bad), scripted(answer), scripted(answer)}, map[string]int{"a": 1, "b": 0, "c": 1}},
		{"retries.max on each", func(l *lab) { l.settings.Retries.Max = 2 }, []*model{scripted(bad), scripted(answer)}, map[string]int{"a": 3, "b": 1}},
		{"an entry's max_retries overrides", func(l *lab) {
			l.settings.Retries.Max = 1
			l.settings.Chains = []Chain{{Name: "a", Primary: "a", Fallbacks: []Entry{{Model: "b", MaxRetries: &two}, {Model: "c", MaxRetries: &none}}}}
		}, []*model{scripted(bad), scripted(bad), scripted(bad)}, map[string]int{"a": 2, "b": 3, "c": 1}},
		{"a second try may answer", func(l *lab) { l.settings.Retries.Max = 1 }, []*model{scripted(bad, answer), scripted(answer)}, map[string]int{"a": 2, "b": 0}},
		{"no retry of a trial", func(l *lab) { l.settings.Retries.Max, l.gate.trial["a"] = 2, true }, []*model{scripted(bad), scripted(answer)}, map[string]int{"a": 1, "b": 1}},
		{"no retry whose wait doesn't fit", func(l *lab) {
			l.settings.Retries.Max, l.settings.Budget.Total = 2, 2*time.Second // models have 1.6 s
		}, []*model{scripted([]step{{err: &providers.Error{Kind: providers.KindRateLimited, RetryAfter: 1500 * time.Millisecond}}}), scripted(answer)}, map[string]int{"a": 1, "b": 1}},
		{"no retry of a refused key", func(l *lab) { l.settings.Retries.Max = 2 }, []*model{scripted([]step{fail(providers.KindAuth)}), scripted(answer)}, map[string]int{"a": 1, "b": 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, test.scripts...)
				test.change(l)
				got := l.ask()
				for id, n := range test.calls {
					require.Equal(t, n, l.models[id].calls, "calls of %s", id)
					require.LessOrEqual(t, len(l.gate.reports[id]), 1, "one report a call of %s", id)
				}
				require.NotEqual(t, Tier(""), got.Trace.Tier)
			})
		})
	}
}

func TestInability(t *testing.T) {
	tooLong := step{err: &providers.Error{Kind: providers.KindContextTooLong, Status: 400, Message: "maximum is 8192", Param: "messages"}}
	unsupported := step{err: &providers.Error{Kind: providers.KindUnsupported, Status: 400, Code: "unsupported_value", Message: "no logprobs here"}}
	windows := func(sizes ...int) func(*lab) {
		return func(l *lab) {
			for i, w := range sizes {
				l.settings.Candidates[i].Window = w
			}
		}
	}
	long := func(r *Request) { r.Tokens = 5000 }
	tests := []struct {
		name    string
		change  func(*lab)
		request func(*Request)
		scripts []*model
		want    []string
		code    string // of the 400, "" for an answer
	}{
		{"window skips", windows(1000, 100_000), long, []*model{scripted(answer), scripted(answer)}, []string{"a:-window", "b:ok"}, ""},
		{"too long for all", windows(1000, 2000), long, []*model{scripted(answer), scripted(answer)}, []string{"a:-window", "b:-window"}, "context_length_exceeded"},
		{
			"after too long only a larger window, unknown ones last", windows(8192, 4096, 0, 100_000), whole,
			[]*model{scripted([]step{tooLong}), scripted(answer), scripted(answer), scripted([]step{fail(providers.KindConnect)})},
			[]string{"a:context_too_long", "b:-window", "d:connect", "c:ok"},
			"",
		},
		{"too long, nobody larger", windows(8192, 4096), whole, []*model{scripted([]step{tooLong}), scripted(answer)}, []string{"a:context_too_long", "b:-window"}, "context_length_exceeded"},
		{"nobody thinks", func(*lab) {}, thinking, []*model{scripted(answer)}, []string{"a:-thinking"}, "unsupported"},
		{"nobody sees", func(l *lab) { l.candidate("a").Features = &Needs{Tools: true} }, func(r *Request) { r.Needs.Vision = true }, []*model{scripted(answer)}, []string{"a:-feature"}, "unsupported"},
		{"all say unsupported", func(*lab) {}, whole, []*model{scripted([]step{unsupported})}, []string{"a:unsupported"}, "unsupported_value"},
		{"unsupported goes on", func(*lab) {}, whole, []*model{scripted([]step{unsupported}), scripted(answer)}, []string{"a:unsupported", "b:ok"}, ""},
		{
			"one open breaker among them", func(l *lab) {
				l.gate.refuse["b"] = &breaker.Refusal{State: breaker.Open}
				l.candidate("b").Thinking = true
			},
			thinking,
			[]*model{scripted(answer), scripted(answer)},
			[]string{"a:-thinking", "b:-breaker_open"},
			"",
		},
		{"a cooling one among them", func(l *lab) {
			l.gate.refuse["b"] = &breaker.Refusal{State: breaker.Open, Cooling: true}
			l.candidate("b").Thinking = true
		}, thinking, []*model{scripted(answer), scripted(answer)}, []string{"a:-thinking", "b:-cooling"}, ""},
		{"no time for one of them", func(l *lab) {
			l.candidate("b").Thinking = true
			l.settings.Budget.Total = 100 * time.Millisecond
		}, thinking, []*model{scripted(answer), scripted(answer)}, []string{"a:-thinking", "b:-budget"}, ""},
		{"nobody has tools", func(l *lab) { l.candidate("a").Features = &Needs{Vision: true, JSON: true} }, func(r *Request) { r.Needs.Tools = true }, []*model{scripted(answer)}, []string{"a:-feature"}, "unsupported"},
		{"nobody writes JSON", func(l *lab) { l.candidate("a").Features = &Needs{Vision: true, Tools: true} }, func(r *Request) { r.Needs.JSON = true }, []*model{scripted(answer)}, []string{"a:-feature"}, "unsupported"},
		{"whoever has what is needed", func(l *lab) { l.candidate("a").Features = &Needs{Tools: true} }, func(r *Request) { r.Needs.Tools = true }, []*model{scripted(answer)}, []string{"a:ok"}, ""},
		{"a window says most", func(l *lab) {
			l.candidate("a").Features, l.candidate("b").Window = &Needs{}, 1000
		}, func(r *Request) { r.Needs.Tools, r.Tokens = true, 5000 }, []*model{scripted(answer), scripted(answer)}, []string{"a:-feature", "b:-window"}, "context_length_exceeded"},
		{"a request that just fits", windows(5000), long, []*model{scripted(answer)}, []string{"a:ok"}, ""},
		{"too long, the same window is none larger", windows(8192, 8192), whole, []*model{scripted([]step{tooLong}), scripted(answer)}, []string{"a:context_too_long", "b:-window"}, "context_length_exceeded"},
		{"too long, for an unknown window too", windows(8192, 0, 8000), whole, []*model{scripted([]step{tooLong}), scripted([]step{tooLong}), scripted(answer)}, []string{"a:context_too_long", "c:-window", "b:context_too_long"}, "context_length_exceeded"},
		{"one fault among them", func(l *lab) { l.candidate("b").Thinking = true }, thinking, []*model{scripted(answer), scripted([]step{fail(providers.KindConnect)})}, []string{"a:-thinking", "b:connect"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, test.scripts...)
			test.change(l)
			got := l.ask(test.request)
			require.Equal(t, test.want, got.outcomes())
			if test.code == "" {
				require.Nil(t, got.Failure)
				return
			}
			require.Equal(t, 400, got.Failure.Status)
			require.Equal(t, test.code, got.Failure.Code)
			require.NotEmpty(t, got.Failure.Message)
		})
	}
}

func TestCallersMistakesReturnAtOnce(t *testing.T) {
	tests := []struct {
		err  providers.Error
		code string
	}{
		{providers.Error{Kind: providers.KindBadRequest, Status: 400, Code: "decimal_below_min_value", Param: "top_p", Message: "top_p is too small"}, "decimal_below_min_value"},
		{providers.Error{Kind: providers.KindContentPolicy, Status: 400, Code: "DataInspectionFailed", Message: "refused"}, "content_filter"},
	}
	for _, test := range tests {
		l := newLab(t, scripted([]step{{err: &test.err}}), scripted(answer))
		got := l.ask()
		require.Equal(t, 400, got.Failure.Status)
		require.Equal(t, test.code, got.Failure.Code)
		require.Equal(t, test.err.Message, got.Failure.Message)
		require.Equal(t, test.err.Param, got.Failure.Param)
		require.Zero(t, l.models["b"].calls)
		require.Equal(t, []breaker.Class{breaker.Excluded}, l.gate.reports["a"])
	}
}

// The caller's mistake stays his, whoever failed before.
func TestCallersMistakeAfterAFault(t *testing.T) {
	mistake := step{err: &providers.Error{Kind: providers.KindBadRequest, Status: 400, Message: "no"}}
	l := newLab(t, scripted([]step{fail(providers.KindConnect)}), scripted([]step{mistake}), scripted(answer))
	got := l.ask()
	require.Equal(t, []string{"a:connect", "b:bad_request"}, got.outcomes())
	require.Equal(t, 400, got.Failure.Status)
}

func TestSkips(t *testing.T) {
	l := newLab(t, scripted(answer), scripted(answer), scripted(answer), scripted(answer), scripted(answer), scripted(answer))
	l.candidate("a").Disabled = true
	l.candidate("b").Denied = true
	l.candidate("c").Client = nil
	l.gate.refuse["d"] = &breaker.Refusal{State: breaker.Open}
	l.gate.refuse["e"] = &breaker.Refusal{State: breaker.Open, Cooling: true}
	want := []string{"a:-disabled", "b:-denied", "c:-no_client", "d:-breaker_open", "e:-cooling", "f:ok"}
	require.Equal(t, want, l.ask().outcomes())
	require.Equal(t, 1, func() int { a := l.ask(); return a.Trace.Calls() }())
}

func TestUnknownModel(t *testing.T) {
	got := newLab(t, scripted(answer)).ask(named(strings.Repeat("ü", 1000)))
	require.Equal(t, 404, got.Failure.Status)
	require.Equal(t, "model_not_found", got.Failure.Code)
	require.Less(t, len(got.Failure.Message), 400)
	require.Empty(t, got.Trace.Tier)
}

// An error of a provider that wraps nothing of ours is the provider's, whatever it says.
func TestBlame(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	require.Equal(t, providers.KindServerError, blame(ctx, errors.New("odd")).Kind)
	cancel(errIdle)
	require.Equal(t, providers.KindTimeout, blame(ctx, errors.New("odd")).Kind)
}
