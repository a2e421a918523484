package routing

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// frontOf is a cache in front: what it has by candidate, after a while.
type frontOf struct {
	hits  map[string]string
	takes time.Duration
	by    []string // who was asked for
}

func (f *frontOf) Answered(ctx context.Context, _ *Request, by *Candidate) *CacheHit {
	f.by = append(f.by, by.ID)
	text, ok := f.hits[by.ID]
	if !sleep(ctx, f.takes) || !ok {
		return nil
	}
	return &CacheHit{Rule: "exact", Similarity: 1, Age: time.Minute, Text: text}
}

func TestFrontAnswersBeforeAnyModel(t *testing.T) {
	l := newLab(t, scripted(answer))
	l.settings.Front = &frontOf{hits: map[string]string{"a": "as before"}}
	for _, change := range []func(*Request){whole, named("auto")} {
		got := l.ask(change)
		require.Equal(t, TierCache, got.Trace.Tier)
		require.Equal(t, &CacheHit{Rule: "exact", Similarity: 1, Age: time.Minute, Text: "as before", Front: true}, got.Trace.Cache)
		require.Empty(t, got.Trace.Attempts)
		require.Empty(t, got.Trace.Candidate+got.Trace.Provider+got.Trace.Model)
		require.Equal(t, "default", got.Trace.Chain)
		require.Equal(t, "auto", got.Model)
		require.Contains(t, got.text, "as before")
	}
	require.Zero(t, l.models["a"].calls)
	require.Equal(t, TierModel, l.ask(func(r *Request) { r.NoCache = true }).Trace.Tier)
	require.Equal(t, 404, l.ask(named("nobody")).Failure.Status)
}

// The cache is asked for the answer of whoever would be asked first if all were healthy.
func TestFrontAsksForTheFirstWhoCan(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*lab)
		ask    func(*Request)
		want   []string
	}{
		{"the first", func(*lab) {}, whole, []string{"a"}},
		{"who is named", func(*lab) {}, named("b"), []string{"b"}},
		{"disabled", func(l *lab) { l.candidate("a").Disabled = true }, whole, []string{"b"}},
		{"unable", func(l *lab) { l.candidate("b").Thinking = true }, thinking, []string{"b"}},
		{"a breaker is open", func(l *lab) { l.gate.refuse["a"] = &breaker.Refusal{State: breaker.Open} }, whole, []string{"a"}},
		{"by rule", func(l *lab) {
			l.settings.Rules = []Rule{{Name: "r", Match: func(f *Facts) bool { return f.Task == "small" }, Use: []string{"b"}}}
		}, func(r *Request) { r.Task = "small" }, []string{"b"}},
		{"nobody can", func(*lab) {}, thinking, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, scripted(answer), scripted(answer))
			f := &frontOf{}
			l.settings.Front = f
			c.change(l)
			l.ask(c.ask)
			require.Equal(t, c.want, f.by)
		})
	}
}

// A cache that doesn't answer costs 150 ms, less where the budget is small, and never an attempt.
func TestFrontIsBounded(t *testing.T) {
	for hint, want := range map[time.Duration]time.Duration{
		0: 150 * time.Millisecond, time.Minute: 150 * time.Millisecond, time.Second: 150 * time.Millisecond,
		400 * time.Millisecond: 60 * time.Millisecond, 260 * time.Millisecond: 4 * time.Millisecond,
		250 * time.Millisecond: 0,
	} {
		t.Run(hint.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, scripted(answer))
				f := &frontOf{takes: time.Hour}
				l.settings.Front = f
				start := time.Now()
				got := l.ask(func(r *Request) { r.Hint = hint })
				require.Equal(t, TierModel, got.Trace.Tier)
				require.Equal(t, want, l.models["a"].at[0].Sub(start))
				require.Equal(t, want > 0, len(f.by) > 0)
			})
		})
	}
}

func TestACallerWhoLeavesTheFrontIsAskedNoModelFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, scripted(answer))
		l.settings.Front = &frontOf{takes: time.Hour}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, leave)
		got := read(l.router().Answer(ctx, request()))
		require.Equal(t, 499, got.Failure.Status)
		require.Zero(t, l.models["a"].calls)
	})
}

// A front that misses leaves everything else as it was: the last tiers look for what any model said.
func TestFrontThenLastResort(t *testing.T) {
	l := newLab(t, scripted([]step{failStatus(providers.KindServerError, 500)}))
	l.settings.Front, l.cache = &frontOf{}, &cacheOf{hit: &CacheHit{Rule: "exact", Similarity: 1, Text: "of another"}}
	got := l.ask()
	require.Equal(t, TierCache, got.Trace.Tier)
	require.Equal(t, []string{"a:server_error"}, got.outcomes())
	require.False(t, got.Trace.Cache.Front)
}

// Whatever is replayed is one strict stream: one id, the role in the first chunk alone, pieces of a bounded size that
// are whole characters, one finish reason, and usage 0 behind it.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "word", " ", "\n", "桥", "👩‍👩‍👧‍👦", `"\`, "<b>", strings.Repeat("x", 900), strings.Repeat("桥", 400)})
		text := strings.Join(rapid.SliceOfN(word, 0, 60).Draw(t, "words"), "")
		a := replay(request(named("a")), Trace{}, text)
		var got, finish string
		var usage []string
		for i := 0; ; i++ {
			c, err := a.Next()
			if err != nil {
				break
			}
			require.True(t, a.Buffered())
			if c.Usage != nil {
				usage = append(usage, string(c.Usage))
				continue
			}
			require.Empty(t, usage)
			require.Empty(t, finish, "a chunk behind the end")
			v := gjson.ParseBytes(c.Data)
			require.Equal(t, "chatcmpl-019877", v.Get("id").Str)
			require.Equal(t, "chat.completion.chunk", v.Get("object").Str)
			require.Equal(t, "a", v.Get("model").Str)
			require.Equal(t, i == 0, v.Get("choices.0.delta.role").Str == "assistant")
			piece := v.Get("choices.0.delta.content").Str
			require.LessOrEqual(t, len(piece), maxPiece)
			require.True(t, utf8.ValidString(piece))
			require.NotContains(t, piece, "\uFFFD")
			got += piece
			finish = v.Get("choices.0.finish_reason").Str
			require.Equal(t, finish, c.Finish)
		}
		require.Equal(t, text, got)
		require.Equal(t, "stop", finish)
		require.Equal(t, []string{`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`}, usage)
	})
}

func TestPieces(t *testing.T) {
	for name, c := range map[string]struct{ text, next string }{
		"short":              {"a b", "a b"},
		"just so":            {strings.Repeat("x", maxPiece), strings.Repeat("x", maxPiece)},
		"behind a space":     {"a b " + strings.Repeat("x", maxPiece), "a b "},
		"without a space":    {strings.Repeat("x", maxPiece+1), strings.Repeat("x", maxPiece)},
		"inside a character": {"x" + strings.Repeat("桥", maxPiece/3+1), "x" + strings.Repeat("桥", maxPiece/3)},
		"a character before": {"xx" + strings.Repeat("桥", maxPiece/3+1), "xx" + strings.Repeat("桥", maxPiece/3-1)},
	} {
		t.Run(name, func(t *testing.T) {
			next, rest := piece(c.text)
			require.Equal(t, c.next, next)
			require.Equal(t, c.text, next+rest)
		})
	}
}
