package providers

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestChunkMaker(t *testing.T) {
	m := newChunkMaker(`a"b`)
	var chunks []string
	for _, d := range []delta{
		{},
		{Reasoning: "hm"},
		{Text: "é\n\"<\x01\u2028"},
		{Refusal: "no"},
		{Calls: []callDelta{{Index: 0, ID: "c0", Name: "f"}, {Index: 1, ID: "c1", Name: "g", Arguments: `{"a":1}`}}},
		{Calls: []callDelta{{Index: 0, Arguments: `{}`}}},
		{Text: "end", Finish: "stop"},
	} {
		c := m.chunk(d)
		require.Equal(t, d.signal(), c.Signal)
		require.Equal(t, d.Finish, c.Finish)
		chunks = append(chunks, string(c.Data))
	}
	requireStrictChunks(t, chunks)
	require.Equal(t, `a"b`, gjson.Get(chunks[0], "model").Str)
	delta := func(i int) string { return gjson.Get(chunks[i], "choices.0.delta").Raw }
	require.JSONEq(t, `{"role":"assistant"}`, delta(0))
	require.JSONEq(t, `{"reasoning_content":"hm"}`, delta(1))
	require.Equal(t, "é\n\"<\x01\u2028", gjson.Get(delta(2), "content").Str)
	require.JSONEq(t, `{"refusal":"no"}`, delta(3))
	require.JSONEq(t, `{"content":"end"}`, delta(6))
	require.Equal(t, []string{"c0 f {}", `c1 g {"a":1}`}, toolCalls(chunks))
}

func TestDeltaSignal(t *testing.T) {
	require.Equal(t, SignalNone, (&delta{Finish: "stop"}).signal())
	require.Equal(t, SignalReasoning, (&delta{Reasoning: "a"}).signal())
	require.Equal(t, SignalContent, (&delta{Reasoning: "a", Text: "b"}).signal())
	require.Equal(t, SignalContent, (&delta{Calls: make([]callDelta, 1)}).signal())
}

func TestUsageChunk(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   usage
		want string
	}{
		{"all", usage{Prompt: 10, Completion: 5, Total: 15, Cached: 4, Reasoning: 3}, `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`},
		{"no details", usage{Prompt: 10, Completion: 5, Cached: -1, Reasoning: -1}, `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`},
		{"nothing known", usage{Prompt: -1, Completion: -1, Total: -1, Cached: -1, Reasoning: -1}, `{}`},
		{"no completion", usage{Prompt: 10, Completion: -1, Total: 15, Cached: -1, Reasoning: -1}, `{"prompt_tokens":10}`},
		{"nothing used", usage{Cached: -1, Reasoning: -1}, `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newChunkMaker("m").usageChunk(tt.in)
			require.Nil(t, c.Data)
			require.Equal(t, tt.want, string(c.Usage))
		})
	}
}

func TestProgressEnd(t *testing.T) {
	reset := &Error{Kind: KindConnect}
	for _, tt := range []struct {
		name  string
		p     progress
		cause error
		want  error
	}{
		{"finished", progress{SignalContent, "stop"}, io.EOF, io.EOF},
		{"finished, then broken", progress{SignalContent, "stop"}, reset, io.EOF},
		{"said nothing", progress{SignalNone, "stop"}, io.EOF, &Error{Kind: KindEmpty}},
		{"said nothing for lack of room", progress{SignalNone, "length"}, io.EOF, io.EOF},
		{"only thought", progress{SignalReasoning, "stop"}, io.EOF, io.EOF},
		{"not finished", progress{SignalContent, ""}, io.EOF, &Error{Kind: KindTruncated, Err: io.ErrUnexpectedEOF}},
		{"not finished, no cause", progress{}, nil, &Error{Kind: KindTruncated, Err: io.ErrUnexpectedEOF}},
		{"broken", progress{SignalContent, ""}, reset, reset},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, tt.p.end(tt.cause)) })
	}
}

// A string that appendString writes is read back as it was, but for what is no UTF-8.
func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n\x00\u2028é\xff")
	f.Fuzz(func(t *testing.T, s string) {
		raw := appendString(nil, s)
		var got string
		require.NoError(t, json.Unmarshal(raw, &got), "%s", raw)
		want, err := json.Marshal(s)
		require.NoError(t, err)
		var same string
		require.NoError(t, json.Unmarshal(want, &same))
		require.Equal(t, same, got)
	})
}

// A count that a provider leaves out, or that can't be one, is unknown: it is not 0.
func TestCountsThatAreNotSaid(t *testing.T) {
	anthropic := noCounts()
	anthropic.take([]byte(`{"input_tokens":2000000000,"output_tokens":7}`))
	for name, got := range map[string]*usage{
		"gemini":    geminiUsage([]byte(`{"candidatesTokenCount":5,"thoughtsTokenCount":2}`)),
		"dashscope": dashScopeUsage([]byte(`{"input_tokens":-1,"output_tokens":7}`)),
		"ollama":    ollamaUsage([]byte(`{"prompt_eval_count":1e30,"eval_count":7}`)),
		"bedrock":   bedrockUsage([]byte(`{"inputTokens":null,"outputTokens":7}`)),
		"anthropic": anthropic.usage(),
	} {
		t.Run(name, func(t *testing.T) {
			require.JSONEq(t, `{"completion_tokens":7}`, gjson.GetBytes(newChunkMaker("m").usageChunk(*got).Usage, "{completion_tokens,prompt_tokens,total_tokens}").Raw)
		})
	}
}
