package providers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func bodyFor(raw, way string, change func(*Call)) string {
	call := nativeCallOf(raw)
	if change != nil {
		change(&call)
	}
	return string(openAIBody(call, way, "https://api.openai.com/v1"))
}

// nativeCallOf is a call of model "m" with the thinking that raw asks for.
func nativeCallOf(raw string) Call {
	r := &Request{Raw: []byte(raw)}
	r.Thinking.Effort = gjson.Get(raw, "reasoning_effort").Str
	switch enable := gjson.Get(raw, "enable_thinking"); {
	case enable.Raw == "false" || r.Thinking.Effort == "none":
		r.Thinking.Mode = ThinkingOff
	case enable.Raw == "true" || r.Thinking.Effort != "":
		r.Thinking.Mode = ThinkingOn
	}
	return Call{Request: r, Model: "m"}
}

func TestOpenAIBody(t *testing.T) {
	const end = `"stream":true,"stream_options":{"include_usage":true}`
	for _, tt := range []struct {
		name   string
		raw    string
		change func(*Call)
		want   string
	}{
		{"the least", `{"messages":[]}`, nil, `{"messages":[],"model":"m",` + end + `}`},
		{"in its place", `{"model":"auto","messages":[],"stream":false}`, nil, `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`},
		{
			"untouched bytes", `{"messages":[{"content":"\u00e9 <b>"}],"seed":12345678901234567890,"temperature":1.10,"x":{"b":1,"a":[ 2 ]}}`, nil,
			`{"messages":[{"content":"\u00e9 <b>"}],"seed":12345678901234567890,"temperature":1.10,"x":{"b":1,"a":[ 2 ]},"model":"m",` + end + `}`,
		},
		{
			"stream options are kept", `{"stream_options":{"include_obfuscation":false,"include_usage":false}}`, nil,
			`{"stream_options":{"include_obfuscation":false,"include_usage":true},"model":"m","stream":true}`,
		},
		{"stream options that are none", `{"stream_options":null}`, nil, `{"stream_options":{"include_usage":true},"model":"m","stream":true}`},
		{"no stream", `{"stream":true,"stream_options":{"include_usage":true}}`, func(c *Call) { c.Options.NoStream = true }, `{"stream":false,"model":"m"}`},
		{"a model's name with quotes", `{}`, func(c *Call) { c.Model = `a"b` }, `{"model":"a\"b",` + end + `}`},
		{
			"what is held back", `{"models":[1],"provider":{},"route":"x","transforms":[],"plugins":[],"data_sources":[],"service_tier":"flex","priority":1,"chat_template":"x","a":1}`, nil,
			`{"a":1,"model":"m",` + end + `}`,
		},
		{"what is allowed", `{"service_tier":"flex","priority":1}`, func(c *Call) { c.Options.Allow = []string{"service_tier"} }, `{"service_tier":"flex","model":"m",` + end + `}`},
		{
			"held back in disguise", `{"servic\u0065_tier":"x","Models":[1],"MODEL":"dear","ſtream":false,"a":1}`, nil,
			`{"model":"m","stream":true,"a":1,"stream_options":{"include_usage":true}}`,
		},
		{"metadata", `{"metadata":{"task":"x"},"a":1}`, nil, `{"a":1,"model":"m",` + end + `}`},
		{"metadata beside store: false", `{"metadata":{},"store":false}`, nil, `{"store":false,"model":"m",` + end + `}`},
		{"metadata beside store", `{"metadata":{"a":"b"},"store":true}`, nil, `{"metadata":{"a":"b"},"store":true,"model":"m",` + end + `}`},
		{"n and others", `{"n":1,"top_k":5,"user":"u"}`, nil, `{"n":1,"top_k":5,"user":"u","model":"m",` + end + `}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := bodyFor(tt.raw, ThinkingByEffort, tt.change)
			require.True(t, json.Valid([]byte(got)), got)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestOpenAIBodyThinking(t *testing.T) {
	const on, off, high, none = `{"enable_thinking":true}`, `{"enable_thinking":false}`, `{"reasoning_effort":"high"}`, `{"reasoning_effort":"none"}`
	for _, tt := range []struct{ way, raw, want string }{
		{ThinkingByEffort, `{}`, `{}`},
		{ThinkingByEffort, on, `{"reasoning_effort":"medium"}`},
		{ThinkingByEffort, high, `{"reasoning_effort":"high"}`},
		{ThinkingByEffort, `{"enable_thinking":true,"reasoning_effort":"low"}`, `{"reasoning_effort":"low"}`},
		{ThinkingByEffort, off, `{"reasoning_effort":"none"}`},
		{ThinkingByEffort, none, `{"reasoning_effort":"none"}`},
		{ThinkingByEnable, `{}`, `{}`},
		{ThinkingByEnable, on, `{"enable_thinking":true}`},
		{ThinkingByEnable, high, `{"enable_thinking":true}`},
		{ThinkingByEnable, off, `{"enable_thinking":false}`},
		{ThinkingByEnable, none, `{"enable_thinking":false}`},
		{ThinkingByEnable, `{"enable_thinking":true,"thinking_budget":9}`, `{"enable_thinking":true,"thinking_budget":9}`},
		{ThinkingByTemplate, `{}`, `{}`},
		{ThinkingByTemplate, high, `{"chat_template_kwargs":{"enable_thinking":true}}`},
		{ThinkingByTemplate, off, `{"chat_template_kwargs":{"enable_thinking":false}}`},
		{
			ThinkingByTemplate, `{"chat_template_kwargs":{"a":1,"enable_thinking":true},"enable_thinking":false}`,
			`{"chat_template_kwargs":{"a":1,"enable_thinking":false}}`,
		},
		{ThinkingByTemplate, `{"chat_template_kwargs":{"a":1}}`, `{"chat_template_kwargs":{"a":1}}`},
		{ThinkingByType, high, `{"thinking":{"type":"enabled"}}`},
		{ThinkingByType, `{"thinking":{"budget_tokens":5},"enable_thinking":true}`, `{"thinking":{"budget_tokens":5,"type":"enabled"}}`},
		{ThinkingByType, off, `{"thinking":{"type":"disabled"}}`},
		{ThinkingByType, `{"thinking":{"type":"enabled"}}`, `{"thinking":{"type":"enabled"}}`},
		{ThinkingByNone, high, `{}`},
		{ThinkingByNone, off, `{}`},
	} {
		t.Run(tt.way+" "+tt.raw, func(t *testing.T) {
			got := bodyFor(tt.raw, tt.way, nil)
			for _, ours := range []string{`"model":"m"`, `"stream":true`, `"stream_options":{"include_usage":true}`} {
				require.Contains(t, got, ours)
				got = strings.ReplaceAll(got, ours, "")
			}
			got = strings.NewReplacer(",,,", "", ",,", "", "{,", "{", ",}", "}").Replace(got)
			require.Equal(t, tt.want, got)
		})
	}
	for _, raw := range []string{on, off, high, none} {
		got := bodyFor(raw, ThinkingByEffort, func(c *Call) { c.Options.NoThinking = true })
		require.NotContains(t, got, "thinking")
		require.NotContains(t, got, "reasoning")
	}
}

func TestOpenAIBodyWithoutStreamOptions(t *testing.T) {
	call := nativeCallOf(`{"stream_options":{"include_usage":true}}`)
	require.JSONEq(t, `{"model":"m","stream":true}`, string(openAIBody(call, ThinkingByNone, "https://api.mistral.ai/v1")))
	require.False(t, takesStreamOptions("https://api.mistral.ai/v1"))
	require.True(t, takesStreamOptions("https://api.openai.com/v1"))
}

// A caller may send a million fields: each costs little.
func TestOpenAIBodyOfManyFields(t *testing.T) {
	call := nativeCallOf("{" + strings.Repeat(`"a":1,`, 10_000) + `"b":1}`)
	require.Less(t, testing.AllocsPerRun(1, func() { openAIBody(call, ThinkingByNone, "") }), 20_000.0)
}

// Whatever a caller sends, the body is JSON, asks for the right model once, and has nothing that is held back.
func FuzzOpenAIBody(f *testing.F) {
	f.Add([]byte(`{"model":"auto","stream_options":{"a":1},"servic\u0065_tier":1,"enable_thinking":true}`))
	f.Add([]byte(`{"":{},"\ud800":1,"a":[{"b":"]}\\\""}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) || !isObject(raw) {
			return
		}
		body := openAIBody(nativeCallOf(string(raw)), ThinkingByEnable, "")
		var got map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &got), "%s", body)
		require.Equal(t, `"m"`, string(got["model"]))
		require.Equal(t, "true", string(got["stream"]))
		names := map[string]int{}
		for w := walk(body); ; {
			key, _, ok := w.member()
			if !ok {
				break
			}
			names[fold(decodeKey(key))]++
		}
		require.Equal(t, 1, names["model"])
		for _, name := range heldBack() {
			require.Zero(t, names[name], name)
		}
	})
}
