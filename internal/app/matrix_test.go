package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// The failure matrix: what a caller gets when the first model fails in each of the ways that real ones do, in JSON and
// in streams. A is asked first, B is healthy.

// wanted is the outcome of a cell.
type wanted string

const (
	answeredByB wanted = "whole answer from B"
	visible     wanted = "error that the caller can see"
	wrong       wanted = "wrong 200"
	hangs       wanted = "hang"
)

// judge says what a caller got, without looking at the metadata.
func judge(r reply, stream bool) wanted {
	switch {
	case r.hung:
		return hangs
	case r.failed || r.status != 200:
		return visible
	case r.text == "BBB" && r.finish == "stop" && (r.done || !stream):
		return answeredByB
	}
	return wrong
}

type row struct {
	name    string
	a       providertest.Behaviour
	json    wanted // "" where the row has streams only
	stream  wanted
	outcome string // of A's attempt
}

func matrix() []row {
	three := []string{"A", "A", "A"}
	ends := func(end providertest.End, chunks ...string) providertest.Behaviour {
		return providertest.Ends(end, chunks...)
	}
	limited := providertest.Fails(429)
	limited.Headers = map[string]string{"Retry-After": "30"}
	return []row{
		{"a status 500", providertest.Fails(500), answeredByB, answeredByB, "server_error"},
		{"b status 429, Retry-After 30", limited, answeredByB, answeredByB, "rate_limited"},
		{"c status 401", providertest.Fails(401), answeredByB, answeredByB, "auth"},
		{"d never sends headers", ends(providertest.EndHangHeaders), answeredByB, answeredByB, "timeout"},
		{"e headers and role, then hang", ends(providertest.EndHang), answeredByB, answeredByB, "timeout"},
		{"f headers and role, then error event", ends(providertest.EndErrorEvent), "", answeredByB, "server_error"},
		{"g 200 with a JSON error body", ends(providertest.EndErrorBody), answeredByB, answeredByB, "server_error"},
		{"h 200 with HTML", ends(providertest.EndHTML), answeredByB, answeredByB, "malformed"},
		{"i 200 with only [DONE]", ends(providertest.EndOnlyDone), answeredByB, answeredByB, "malformed"},
		{"j empty completion, finish stop", ends(providertest.EndEmpty), answeredByB, answeredByB, "empty"},
		{"k three tokens, then cut", ends(providertest.EndCut, three...), answeredByB, visible, "truncated"},
		{"l three tokens, then a clean end", ends(providertest.EndEOF, three...), answeredByB, visible, "truncated"},
		{"m three tokens, then an error event", ends(providertest.EndErrorEvent, three...), "", visible, "server_error"},
		{"m2 three tokens, then silence", ends(providertest.EndHang, three...), "", visible, "timeout"},
	}
}

func healthy() []providertest.Behaviour {
	return []providertest.Behaviour{providertest.Says("B", "B", "B")}
}

func TestFailureMatrix(t *testing.T) {
	counts := map[wanted]int{}
	for _, r := range matrix() {
		for _, stream := range []bool{false, true} {
			want := r.json
			if stream {
				want = r.stream
			}
			if want == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s stream=%t", r.name, stream), func(t *testing.T) {
				l := open(t, "", []providertest.Behaviour{r.a}, healthy())
				start := time.Now()
				got := l.ask(stream, "q")
				cell := judge(got, stream)
				counts[cell]++
				require.Equal(t, want, cell, "%+v", got)
				require.Less(t, time.Since(start), callerLimit/3)
				require.Equal(t, 1, l.up[0].Calls(), "calls of A: no retry stands in front of the switch")
				require.Equal(t, "a:"+r.outcome, got.outcomes()[0])
				if want == visible {
					require.Zero(t, l.up[1].Calls(), "B after text of A was sent")
					require.False(t, got.done, "[DONE] after a broken stream")
					require.Equal(t, "AAA", got.text)
					return
				}
				require.Equal(t, 1, l.up[1].Calls())
				require.Equal(t, "b", got.meta.Candidate)
				l.up[0].Await(t, "the failed call's end", func(s providertest.Seen) bool { return s.Open == 0 })
			})
		}
	}
	t.Logf("failure matrix: %d answered by B / %d visible errors / %d wrong / %d hang",
		counts[answeredByB], counts[visible], counts[wrong], counts[hangs])
	require.Equal(t, map[wanted]int{answeredByB: 21, visible: 4}, counts)
}

func TestMatrixHealthy(t *testing.T) {
	for _, stream := range []bool{false, true} {
		l := open(t, "", []providertest.Behaviour{providertest.Says("A", "A")}, healthy())
		got := l.ask(stream, "q")
		require.Equal(t, "AA", got.text)
		require.Zero(t, l.up[1].Calls())
	}
}

// Rows n, n2: with every model down there still is an answer, and it says what it is.
func TestMatrixAllDown(t *testing.T) {
	for _, b := range []providertest.Behaviour{
		providertest.Fails(500), providertest.Ends(providertest.EndHangHeaders),
		providertest.Ends(providertest.EndErrorEvent), providertest.Ends(providertest.EndHang), // after a role each
	} {
		for _, stream := range []bool{false, true} {
			l := open(t, "", []providertest.Behaviour{b}, []providertest.Behaviour{b})
			got := l.ask(stream, "a question")
			require.Equal(t, 200, got.status)
			require.Equal(t, "fallback", got.meta.Tier)
			require.Equal(t, "fallback", got.header.Get("Holdfast-Tier"))
			require.Contains(t, got.text, "busy")
			require.False(t, got.failed)
			require.Equal(t, []string{"a", "b"}, []string{got.meta.Attempts[0].Candidate, got.meta.Attempts[1].Candidate})
		}
	}
}

// Rows o, o5: from the third failure on A is spared.
func TestMatrixBreaker(t *testing.T) {
	for name, b := range map[string]providertest.Behaviour{
		"o hanging": providertest.Ends(providertest.EndHangHeaders), "o hanging after the role": providertest.Ends(providertest.EndHang),
		"o5 status 500": providertest.Fails(500),
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%t", name, stream), func(t *testing.T) {
				l := open(t, "", []providertest.Behaviour{b}, healthy())
				for i := range 8 {
					got := l.ask(stream, fmt.Sprint("q", i))
					require.Equal(t, answeredByB, judge(got, stream))
					require.Equal(t, min(i+1, 2), l.up[0].Calls(), "calls of A after request %d", i+1)
					if i >= 2 {
						require.Equal(t, "a:-breaker_open", got.outcomes()[0])
					}
				}
			})
		}
	}
}

// Row p: a caller who leaves cancels his call at once, starts no other and counts for nothing.
func TestMatrixCallerLeaves(t *testing.T) {
	tick := providertest.Behaviour{Chunks: strings.Split(strings.Repeat("tick ", 200), " "), Gap: 50 * time.Millisecond}
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream=", stream), func(t *testing.T) {
			l := open(t, "", []providertest.Behaviour{tick}, healthy())
			for i := range 3 {
				ctx, leave := context.WithCancel(t.Context())
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					if res, err := l.post(ctx, stream, "q"); err == nil {
						_, _ = res.Body.Read(make([]byte, 10)) // stays until he leaves
						<-ctx.Done()
						_ = res.Body.Close()
					}
				}()
				l.up[0].Await(t, "the call", func(s providertest.Seen) bool { return s.Calls == i+1 })
				leave()
				<-gone
				l.up[0].Await(t, "that the caller left", func(s providertest.Seen) bool { return s.Cancelled == i+1 })
			}
			require.Zero(t, l.up[1].Calls(), "calls of B for nobody")
			l.up[0].Play(providertest.Says("fine"))
			require.Equal(t, "fine", l.ask(stream, "q").text, "A after three callers who left")
		})
	}
}

// Row q: text arrives exactly, however the bytes are cut.
func TestMatrixUnicodeInPieces(t *testing.T) {
	text := "Grüße, 世界! 👩‍👩‍👧‍👦 \"quoted\" \\ \u2028 end"
	for _, stream := range []bool{false, true} {
		l := open(t, "", []providertest.Behaviour{{Chunks: strings.SplitAfter(text, " "), Piece: 5}})
		require.Equal(t, text, l.ask(stream, "q").text)
	}
}
