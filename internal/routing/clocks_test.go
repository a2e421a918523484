package routing

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

func after2s(s step) step {
	s.wait = 2 * time.Second
	return s
}

// Each clock of a candidate ends what it is for, at its time.
func TestClocks(t *testing.T) {
	hm := step{text: "hm", signal: providers.SignalReasoning}
	late := func(s step, d time.Duration) step {
		s.wait = d
		return s
	}
	tests := []struct {
		name   string
		clocks Timeouts
		script []step
		hold   Hold
		want   time.Duration // until the failure, 0 for an answer
	}{
		{"the header clock ends with the headers", Timeouts{Header: 3 * time.Second, FirstToken: 9 * time.Second}, []step{hang}, HoldFirstToken, 9 * time.Second},
		{"first token runs from the start, whatever comes", Timeouts{FirstToken: 5 * time.Second, Idle: time.Second}, []step{after2s(role), after2s(role), after2s(role), hang}, HoldFirstToken, 5 * time.Second},
		{"no idle clock before the first token", Timeouts{FirstToken: 5 * time.Second, Idle: time.Second}, []step{role, late(say("x"), 4*time.Second), stop, end}, HoldFirstToken, 0},
		{"idle in JSON", Timeouts{FirstToken: 5 * time.Second, Idle: time.Second}, []step{say("x"), hang}, HoldComplete, time.Second},
		{"idle in JSON counts anew", Timeouts{FirstToken: 5 * time.Second, Idle: 3 * time.Second}, []step{say("x"), after2s(say("y")), after2s(say("z")), hang}, HoldComplete, 7 * time.Second},
		{"total in JSON", Timeouts{FirstToken: 5 * time.Second, Idle: 3 * time.Second, Total: 5 * time.Second}, []step{say("x"), after2s(say("y")), after2s(say("z")), hang}, HoldComplete, 5 * time.Second},
		{"thinking, then content", Timeouts{Idle: 20 * time.Second}, []step{hm, late(say("x"), 6*time.Second), late(say("y"), 6*time.Second), stop, end}, HoldComplete, 0},
		{"thinking for too long", Timeouts{Idle: 20 * time.Second}, []step{hm, late(hm, 6*time.Second), hang}, HoldComplete, 8 * time.Second},
		{"reasoning after content has no clock", Timeouts{Idle: 20 * time.Second}, []step{say("x"), hm, late(hm, 15*time.Second), stop, end}, HoldComplete, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(test.script), scripted(answer))
				l.candidate("a").Timeouts = test.clocks
				l.settings.ThinkingTimeout = 8 * time.Second
				start := time.Now()
				got := l.ask(func(r *Request) { r.Hold = test.hold })
				if test.want == 0 {
					require.Equal(t, []string{"a:ok"}, got.outcomes())
					return
				}
				require.Equal(t, []string{"a:timeout", "b:ok"}, got.outcomes())
				require.Equal(t, test.want, time.Since(start))
				require.Equal(t, test.want, got.Trace.Attempts[0].Duration)
			})
		})
	}
}

// The wait for headers ends at the earlier of header and first_token.
func TestHeaderClock(t *testing.T) {
	for name, clocks := range map[string]Timeouts{
		"header first":      {Header: 3 * time.Second, FirstToken: 9 * time.Second},
		"first token first": {Header: 9 * time.Second, FirstToken: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(answer), scripted(answer))
				l.candidate("a").Client = silent{}
				l.candidate("a").Timeouts = clocks
				start := time.Now()
				require.Equal(t, []string{"a:timeout", "b:ok"}, l.ask().outcomes())
				require.Equal(t, 3*time.Second, time.Since(start))
			})
		})
	}
}

// Headers that took their time leave that much less for the first token.
func TestFirstTokenRunsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted([]step{role, hang}), scripted(answer))
		l.candidate("a").Client = slowHeaders{l.models["a"]}
		start := time.Now()
		require.Equal(t, []string{"a:timeout", "b:ok"}, l.ask().outcomes())
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

// A caller who pauses between two chunks pays with no clock of the provider's but total.
func TestSlowCallerInMidStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted([]step{say("a"), say("b"), say("c"), stop, end}))
		a := l.router().Answer(t.Context(), request())
		for range 2 { // the second chunk is a live one
			_, err := a.Next()
			require.NoError(t, err)
			<-time.After(time.Minute)
		}
		require.NoError(t, read(a).err)
		require.Equal(t, []breaker.Class{breaker.Success}, l.gate.reports["a"])
	})
}

// A clock that was set anew while it fired ends nothing.
func TestClockThatFiresLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canceled := false
		c := startClocks(Timeouts{Idle: time.Second}, 0, time.Time{}, func(error) { canceled = true })
		defer c.stop()
		c.forChunk()
		c.expire()
		require.False(t, canceled)
		c.pause()
		c.expire()
		require.False(t, canceled)
		c.forChunk()
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.True(t, canceled)
	})
}

// What the trace says of an attempt is true at every step, and final once the finish reason came.
func TestTraceOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := []step{after2s(role), after2s(say("a")), after2s(say("b")), after2s(stop), after2s(end)}
		l := newLab(t, scripted([]step{{err: &providers.Error{Kind: providers.KindOverloaded, Status: 529, Code: "busy", RetryAfter: time.Minute}}}), scripted(script))
		a := l.router().Answer(t.Context(), request())
		failed, entry := a.Trace.Attempts[0], &a.Trace.Attempts[1]
		require.Equal(t, Attempt{Candidate: "a", Outcome: "overloaded", Status: 529, Ended: true, Code: "busy"}, failed)
		require.Equal(t, breaker.Outcome{Class: breaker.Failure, RetryAfter: time.Minute, Why: "overloaded"}, l.gate.last["a"])
		require.Equal(t, Attempt{Candidate: "b", Outcome: "ok", Status: 200, Duration: 4 * time.Second, TTFT: 4 * time.Second}, *entry)
		for {
			if _, err := a.Next(); errors.Is(err, io.EOF) {
				break
			}
		}
		require.True(t, entry.Ended)
		require.Equal(t, 8*time.Second, entry.Duration, "until the finish reason")
		require.Equal(t, 1, l.gate.started["b"])
		a.Close()
		require.Equal(t, 8*time.Second, entry.Duration)
		require.Equal(t, 2, a.Trace.Calls())
	})
	synctest.Test(t, func(t *testing.T) { // JSON: all of it was held
		l := newLab(t, scripted([]step{after2s(say("a")), after2s(stop), end}))
		a := l.router().Answer(t.Context(), request(whole))
		_, err := a.Next()
		require.NoError(t, err)
		a.Close()
		require.Equal(t, []Attempt{{Candidate: "a", Outcome: "ok", Status: 200, Duration: 4 * time.Second, Ended: true, TTFT: 2 * time.Second}}, a.Trace.Attempts)
		require.Equal(t, []breaker.Class{breaker.Success}, l.gate.reports["a"], "a whole answer, though the caller left in the middle")
	})
	synctest.Test(t, func(t *testing.T) { // all in one chunk
		l := newLab(t, scripted([]step{{text: "a", signal: providers.SignalContent, finish: "stop"}, after2s(end)}))
		a := l.router().Answer(t.Context(), request())
		_, err := a.Next()
		require.NoError(t, err)
		require.True(t, a.Trace.Attempts[0].Ended)
		read(a)
		require.Zero(t, a.Trace.Attempts[0].Duration)
	})
	synctest.Test(t, func(t *testing.T) { // nobody waits for what may come after the finish reason
		l := newLab(t, scripted([]step{say("a"), stop, hang}))
		a := l.router().Answer(t.Context(), request())
		_, _ = a.Next()
		_, _ = a.Next()
		a.Close()
		require.Equal(t, []string{"a:ok"}, result{Answer: a}.outcomes())
		require.Equal(t, []breaker.Class{breaker.Success}, l.gate.reports["a"])
	})
	synctest.Test(t, func(t *testing.T) { // a stream that breaks
		l := newLab(t, scripted([]step{say("a"), {wait: time.Second, err: &providers.Error{Kind: providers.KindOverloaded, Status: 529, Code: "busy"}}}))
		got := l.ask()
		require.Error(t, got.err)
		require.Equal(t, []Attempt{{Candidate: "a", Outcome: "overloaded", Status: 529, Duration: time.Second, Ended: true, Code: "busy"}}, got.Trace.Attempts)
	})
	synctest.Test(t, func(t *testing.T) { // a caller who leaves
		l := newLab(t, scripted([]step{say("a"), after2s(say("b")), hang}))
		a := l.router().Answer(t.Context(), request())
		_, _ = a.Next()
		_, _ = a.Next()
		a.Close()
		require.Equal(t, "canceled", a.Trace.Attempts[0].Outcome)
		require.Equal(t, 2*time.Second, a.Trace.Attempts[0].Duration)
	})
}

// A failure that a caller could provoke opens no breaker for long, before and after the commit.
func TestForeignFieldsInAWalk(t *testing.T) {
	foreign := func(r *Request) { r.Foreign = true }
	for _, script := range [][]step{{fail(providers.KindQuota)}, {say("a"), fail(providers.KindQuota)}} {
		l := newLab(t, scripted(script))
		l.ask(foreign)
		l.ask()
		require.Equal(t, []breaker.Class{breaker.Excluded, breaker.Hard}, l.gate.reports["a"])
	}
}

// A trial may take as long as the wait for the first token, but no longer than the budget.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted(answer))
		l.ask()
		require.Equal(t, 5*time.Second, l.gate.leases["a"])
		l.ask(func(r *Request) { r.Hint = 2 * time.Second })
		require.Equal(t, 1600*time.Millisecond, l.gate.leases["a"])
		l.candidate("a").Timeouts.FirstToken = 0
		l.ask()
		require.Equal(t, 178*time.Second, l.gate.leases["a"])
	})
}

// The look-up ends early enough for its answer, or the message, to be written.
func TestLookupHasItsSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted([]step{hang}))
		l.candidate("a").Timeouts = Timeouts{}
		cache := &cacheOf{}
		l.cache = cache
		start := time.Now()
		l.ask()
		require.Equal(t, start.Add(180*time.Second-100*time.Millisecond), cache.deadline)
		l.ask(func(r *Request) { r.Hint = 100 * time.Millisecond })
		require.Equal(t, time.Now().Add(95*time.Millisecond), cache.deadline)
	})
}

// Usage is held too, and what is held was copied: an adapter may use its buffer again.
func TestHeldIsCopiedAndCounted(t *testing.T) {
	buf, usage := []byte("a"), []byte(`{"n":1}`)
	l := newLab(t, scripted(answer))
	l.candidate("a").Client = &odd{next: func(n int) (c providers.Chunk, err error) {
		if n > 3 {
			return c, io.EOF
		}
		buf[0], usage[5] = byte('a'+n), byte('0'+n)
		return providers.Chunk{Data: buf, Usage: usage, Signal: providers.SignalContent}, nil
	}}
	a := l.router().Answer(t.Context(), request(whole))
	defer a.Close()
	for _, want := range []string{`b{"n":1}`, `c{"n":2}`, `d{"n":3}`} {
		c, err := a.Next()
		require.NoError(t, err)
		require.Equal(t, want, string(c.Data)+string(c.Usage))
	}

	big := step{text: "x", usage: strings.Repeat("u", 100<<10)}
	l = newLab(t, scripted([]step{big, big, big, say("late"), stop, end}), scripted(answer))
	require.Equal(t, []string{"a:malformed", "b:ok"}, l.ask().outcomes())
}

// An ended stream is asked for nothing more.
func TestNothingIsReadAfterTheEnd(t *testing.T) {
	o := &odd{next: func(n int) (providers.Chunk, error) {
		if n > 1 {
			return providers.Chunk{}, io.EOF
		}
		return providers.Chunk{Data: []byte("a"), Signal: providers.SignalContent, Finish: "stop"}, nil
	}}
	l := newLab(t, scripted(answer))
	l.candidate("a").Client = o
	l.candidate("a").Timeouts.Total = time.Minute
	a := l.router().Answer(t.Context(), request(whole))
	require.Equal(t, "a", read(a).text)
	require.Equal(t, 2, o.read)
	require.False(t, a.source.(*live).clocks.timer.Stop(), "no timer is left")
}

// A model that thinks has more time than one clock: its reasoning is a first token, and from there on the first content
// has a clock of its own, longer than first_token. One that keeps its thoughts to itself has the first_token that its
// configuration gives it.
func TestThinkingHasTime(t *testing.T) {
	hm := step{text: "hm", signal: providers.SignalReasoning}
	late := func(s step, d time.Duration) step {
		s.wait = d
		return s
	}
	standard := Timeouts{FirstToken: 60 * time.Second, Idle: 30 * time.Second}
	reasons := func(content time.Duration) []step { // every 20 s, until the content
		script := []step{role, late(hm, 50*time.Second)}
		for ; content > 20*time.Second; content -= 20 * time.Second {
			script = append(script, late(hm, 20*time.Second))
		}
		return append(script, late(say("x"), content), stop, end)
	}
	tests := []struct {
		name   string
		clocks Timeouts
		script []step
		want   string
		after  time.Duration // of a failure
	}{
		{"content long after first_token", standard, reasons(119 * time.Second), "ok", 0},
		{"content that never comes", standard, reasons(121 * time.Second), "timeout", 170 * time.Second},
		{"reasoning that never comes", standard, []step{role, hang}, "timeout", 60 * time.Second},
		{"silence between thoughts", standard, []step{role, hm, hang}, "timeout", 30 * time.Second},
		{"thoughts that aren't shown, a clock of its own", Timeouts{FirstToken: 150 * time.Second, Idle: 30 * time.Second}, []step{role, late(say("x"), 140*time.Second), stop, end}, "ok", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(test.script))
				l.candidate("a").Timeouts, l.candidate("a").Thinking = test.clocks, true
				l.settings.Budget.Total, l.settings.ThinkingTimeout = 10*time.Minute, 120*time.Second
				got := l.ask(thinking, whole)
				require.Equal(t, []string{"a:" + test.want}, got.outcomes())
				if test.want != "ok" {
					require.Equal(t, test.after, got.Trace.Attempts[0].Duration)
				}
			})
		})
	}
}
