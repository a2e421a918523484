package api

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

func english(tokens int) estimate { return estimate{narrow: 3 * tokens, fixed: 4} }

func chinese(tokens int) estimate { return estimate{wide: tokens, fixed: 4} }

func TestCorrection(t *testing.T) {
	type sample struct {
		e       estimate
		counted int
		times   int
	}
	tests := []struct {
		name             string
		samples          []sample
		english, chinese int // what 1,000 tokens of text become, without the 4 around them
	}{
		{"nothing heard", nil, 1000, 1000},
		{"one sample too few", []sample{{english(200), 154, 49}}, 1000, 1000},
		{"enough, and only of their script", []sample{{english(200), 154, 50}}, 750, 1000},
		{"each script its own", []sample{{english(200), 154, 60}, {chinese(200), 124, 60}}, 750, 600},
		{"what surrounds the text is known", []sample{{estimate{narrow: 600, fixed: 400}, 600, 50}}, 1000, 1000},
		{"short prompts", []sample{{english(99), 75, 500}}, 1000, 1000},
		{"mixed text", []sample{{estimate{narrow: 300, wide: 100}, 150, 500}}, 1000, 1000},
		{"beyond the bounds", []sample{{english(200), 3, 500}, {english(200), 1000, 500}, {english(200), 0, 500}, {english(200), -9, 500}}, 1000, 1000},
		{"at the bounds", []sample{{english(200), 104, 500}, {chinese(200), 404, 500}}, 500, 2000},
		{"old samples fade", []sample{{english(200), 104, 500}, {english(200), 204, 2000}}, 1000, 1000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var c Correction
			for _, s := range test.samples {
				for range s.times {
					c.learn(s.e, s.counted)
				}
			}
			require.Equal(t, test.english+4, c.tokens(english(1000)))
			require.Equal(t, test.chinese+4, c.tokens(chinese(1000)))
		})
	}
}

func TestNoCorrection(t *testing.T) {
	var none *Correction
	none.learn(english(200), 100)
	require.Equal(t, 1004, none.tokens(english(1000)))
}

// Whatever providers count, an estimate stays within its bounds and close to the samples' own spread.
func TestCorrectionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Correction
		low, high := 1.0, 1.0
		for _, counted := range rapid.SliceOfN(rapid.IntRange(-10, 2000), 0, 400).Draw(t, "counted") {
			e := english(rapid.IntRange(1, 1000).Draw(t, "estimate"))
			c.learn(e, counted)
			if r := float64(counted-e.fixed) / float64(e.narrowTokens()); r >= minFactor && r <= maxFactor && e.narrowTokens() >= minSample {
				low, high = min(low, r), max(high, r)
			}
		}
		got := float64(c.tokens(english(10_000)) - 4)
		require.GreaterOrEqual(t, got, math.Floor(low*10_000))
		require.LessOrEqual(t, got, math.Ceil(high*10_000))
		require.Equal(t, 10_004, c.tokens(chinese(10_000)), "another script")
	})
}

// Only answers of a model with its own usage for a prompt of nothing but text are heard; what is heard changes what
// rules and windows see of the next request.
func TestWhatCorrectsEstimates(t *testing.T) {
	text := strings.Repeat("words ", 100) // 200 tokens, and 4 of the message
	own := usage(`{"prompt_tokens":104,"completion_tokens":2,"total_tokens":106}`)
	good := []step{data(`{"content":"a"}`, ""), data(`{}`, "stop"), own}
	body := func(message, more string) string {
		return fmt.Sprintf(`{"messages":[%s]%s}`, message, more)
	}
	user := fmt.Sprintf(`{"role":"user","content":%q}`, text)
	tests := []struct {
		name  string
		body  string
		steps []step
		tier  routing.Tier
		want  int
	}{
		{"plain text", body(user, ""), good, routing.TierModel, 104},
		{"a stream", body(user, `,"stream":true`), good, routing.TierModel, 104},
		{"parts of text", body(fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q}]}`, text), ""), good, routing.TierModel, 104},
		{"from the cache", body(user, ""), good, routing.TierCache, 204},
		{"no usage", body(user, ""), good[:2], routing.TierModel, 204},
		{"half a usage", body(user, ""), []step{good[0], good[1], usage(`{"prompt_tokens":104}`)}, routing.TierModel, 204},
		{"a usage that is none", body(user, ""), []step{good[0], good[1], usage(`{"prompt_tokens":"104","completion_tokens":1}`)}, routing.TierModel, 204},
		{"a broken stream", body(user, `,"stream":true`), []step{good[0], own, {err: &providers.Error{Kind: providers.KindTruncated}}}, routing.TierModel, 204},
		{"tools", body(user, `,"tools":[{"type":"function","function":{"name":"f"}}]`), good, routing.TierModel, 204},
		{"a schema", body(user, `,"response_format":{"type":"json_object"}`), good, routing.TierModel, 204},
		{"a provider's own field", body(user, `,"enable_search":true`), good, routing.TierModel, 204},
		{"an image", body(fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`, text), ""), good, routing.TierModel, 204},
		{"a tool's result", body(user+`,{"role":"tool","tool_call_id":"1","content":"x"}`, ""), good, routing.TierModel, 204},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{steps: test.steps, finished: make(chan finish, 1)}
			f.answer = func(ctx context.Context, req *routing.Request) *routing.Answer {
				trace := modelTrace(req)
				trace.Tier = test.tier
				return routing.NewAnswer(trace, &script{ctx: ctx, steps: append([]step(nil), test.steps...)})
			}
			var c Correction
			h := New(Settings{Anonymous: true}, Deps{Router: f, Correction: &c})
			for range firstSamples {
				call(h, "POST", "/v1/chat/completions", test.body)
			}
			call(h, "POST", "/v1/chat/completions", body(user, ""))
			require.Equal(t, test.want, f.requests[len(f.requests)-1].Tokens)
		})
	}
}
