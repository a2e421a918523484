package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// costed is a lab whose tokens cost a dollar each, cached ones half: prices no provider has, but easy to read.
func costed(t *testing.T, more string, o Options, plans ...[]providertest.Behaviour) *lab {
	l := &lab{t: t, log: &locked{}}
	for _, plan := range plans {
		l.up = append(l.up, providertest.Start(t, providertest.OpenAI, plan...))
	}
	l.start(costs(yamlOf(more, l.up)), o)
	return l
}

func costs(yaml string) string {
	return strings.ReplaceAll(yaml, ", timeouts:", ", price: {input: 1e6, cached_input: 0.5e6, output: 1e6}, timeouts:")
}

// event is the log's last line about a request.
func (l *lab) event() (e struct {
	Cost      *float64 `json:"cost_usd"`
	Estimated bool     `json:"cost_estimated"`
},
) {
	require.NoError(l.t, l.app.after.wait(l.t.Context()))
	lines := strings.Split(l.log.String(), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(lines[i], `"msg":"chat"`) {
			require.NoError(l.t, json.Unmarshal([]byte(lines[i]), &e))
			return e
		}
	}
	require.Fail(l.t, "no event")
	return e
}

func dollars(c *float64, estimated bool) string {
	switch {
	case c == nil:
		return "unknown"
	case estimated:
		return "estimated"
	}
	return fmt.Sprintf("%g", *c)
}

// Each attempt says in the answer what it cost, as far as that is known when it is told; the log says all.
func TestCostOfEachAttempt(t *testing.T) {
	used := &providertest.Usage{Prompt: 20, Completion: 5, Cached: 8, Reasoning: 2}
	whole := providertest.Behaviour{Chunks: []string{"Hello", " there."}, Usage: used}
	beside := providertest.Behaviour{Body: `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",` +
		`"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}

` +
		`data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":4,"completion_tokens":3,"total_tokens":7}}` + "\n\ndata: [DONE]\n\n"}
	absurd := beside
	absurd.Body = strings.Replace(beside.Body, `"prompt_tokens":4`, `"prompt_tokens":-4000`, 1)
	brokenEarly, brokenLate := providertest.Ends(providertest.EndEOF), providertest.Ends(providertest.EndCut, "Hel", "lo")
	tests := []struct {
		name         string
		a            providertest.Behaviour
		json, stream []string // of the attempts, in the answer
		log          [2]string
	}{
		{"whole", whole, []string{"21"}, []string{"unknown"}, [2]string{"21", "21"}},
		{"usage beside the finish reason", beside, []string{"7"}, []string{"7"}, [2]string{"7", "7"}},
		{"usage that can't be", absurd, []string{"estimated"}, []string{"estimated"}, [2]string{"estimated", "estimated"}},
		{"status 500", down(), []string{"unknown", "21"}, []string{"unknown", "unknown"}, [2]string{"21", "21"}},
		{"cut before anything came", brokenEarly, []string{"unknown", "21"}, []string{"unknown", "unknown"}, [2]string{"21", "21"}},
		{"cut late", brokenLate, []string{"estimated", "21"}, []string{"estimated"}, [2]string{"estimated", "estimated"}},
	}
	for _, test := range tests {
		for i, want := range [][]string{test.json, test.stream} {
			t.Run(fmt.Sprintf("%s, stream %t", test.name, i == 1), func(t *testing.T) {
				l := costed(t, "", Options{}, []providertest.Behaviour{test.a}, []providertest.Behaviour{whole})
				var got []string
				for _, a := range l.ask(i == 1, "How do bridges carry heavy loads?").meta.Attempts {
					got = append(got, dollars(a.Cost, a.Estimated))
				}
				require.Equal(t, want, got)
				e := l.event()
				require.Equal(t, test.log[i], dollars(e.Cost, e.Estimated))
			})
		}
	}
}

func TestCostInTheUsageChunk(t *testing.T) {
	l := costed(t, "", Options{}, healthy())
	ctx, cancel := context.WithTimeout(t.Context(), callerLimit)
	defer cancel()
	res, err := l.send(ctx, `{"messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`)
	require.NoError(t, err)
	defer res.Body.Close()
	var seen []string
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		var r reply
		if r.take([]byte(strings.TrimPrefix(lines.Text(), "data: "))); r.meta.Attempts != nil {
			seen = append(seen, dollars(r.meta.Attempts[0].Cost, r.meta.Attempts[0].Estimated))
		}
	}
	require.Equal(t, []string{"unknown", "10"}, seen, "the first chunk, the last")
}

// A caller who leaves in the middle has still spent something.
func TestCostOfACallerWhoLeaves(t *testing.T) {
	l := costed(t, "", Options{}, []providertest.Behaviour{providertest.Ends(providertest.EndHang, "Hello", " there")})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := l.post(ctx, true, "How do bridges carry heavy loads?")
	require.NoError(t, err)
	_, err = bufio.NewReader(res.Body).ReadString('\n')
	require.NoError(t, err)
	cancel()
	require.NoError(t, res.Body.Close())
	l.up[0].Await(t, "the caller leave", func(s providertest.Seen) bool { return s.Cancelled == 1 })
	require.Eventually(t, func() bool { return strings.Contains(l.log.String(), `"msg":"chat"`) }, callerLimit, 10*time.Millisecond)
	require.True(t, l.event().Estimated)
}
