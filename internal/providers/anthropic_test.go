package providers

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

func TestAnthropicRequest(t *testing.T) {
	const hi = `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	tests := []struct {
		name, raw, want string
		model           string
		options         Options
	}{
		{
			name: "every role, an image, tools, results",
			raw: `{"model":"auto","stream":true,"temperature":0.5,"top_p":1,"stop":"END","max_completion_tokens":9,"user":"u-1","metadata":{"task":"x"},
				"tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}},
				{"type":"function","function":{"name":"g"}}],"tool_choice":"required","parallel_tool_calls":false,"context_management":{"edits":[]},"messages":[
				{"role":"system","content":"be brief"},
				{"role":"user","name":"ann","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
				{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[
					{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{\"x\":1.10}"}},
					{"id":"functions.g:1","type":"function","function":{"name":"g","arguments":""}}]},
				{"role":"tool","tool_call_id":"functions.f:0","content":"42"},
				{"role":"tool","tool_call_id":"functions.g:1","content":""},
				{"role":"developer","content":"in French"},
				{"role":"user","content":"and now?"},
				{"role":"assistant","content":null,"refusal":"no "}]}`,
			want: `{"model":"m","stream":true,"temperature":0.5,"stop_sequences":["END"],"max_tokens":9,"metadata":{"user_id":"u-1"},
				"tools":[{"name":"f","description":"d","strict":true,"input_schema":{"type":"object","properties":{"x":{"type":"integer"}}}},
				{"name":"g","input_schema":{"type":"object","properties":{}}}],
				"tool_choice":{"type":"any","disable_parallel_tool_use":true},"context_management":{"edits":[]},
				"system":[{"type":"text","text":"be brief"},{"type":"text","text":"in French"}],"messages":[
				{"role":"user","content":[{"type":"text","text":"ann:"},{"type":"text","text":"what?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
				{"role":"assistant","content":[{"type":"tool_use","id":"functions_f_0","name":"f","input":{"x":1.10}},{"type":"tool_use","id":"functions_g_1","name":"g","input":{}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_f_0","content":[{"type":"text","text":"42"}]},{"type":"tool_result","tool_use_id":"functions_g_1"},{"type":"text","text":"and now?"}]},
				{"role":"assistant","content":[{"type":"text","text":"no"}]}]}`,
		},
		{name: "the least", raw: nativeHi, want: `{"model":"m","stream":true,"max_tokens":8192,"messages":` + hi + `}`},
		{name: "no stream", options: Options{NoStream: true}, raw: nativeHi, want: `{"model":"m","stream":false,"max_tokens":8192,"messages":` + hi + `}`},
		{name: "a Claude's own room", model: "claude-haiku-4-5", raw: nativeHi, want: `{"model":"claude-haiku-4-5","stream":true,"max_tokens":32000,"messages":` + hi + `}`},
		{name: "an old Claude's", model: "claude-3-haiku-20240307", raw: nativeHi, want: `{"model":"claude-3-haiku-20240307","stream":true,"max_tokens":4096,"messages":` + hi + `}`},
		{
			name: "only a system prompt", raw: `{"messages":[{"role":"system","content":"greet"}],"user":"ann@x.org"}`,
			want: `{"model":"m","stream":true,"max_tokens":8192,"system":[{"type":"text","text":"greet"}],"messages":[{"role":"user","content":[{"type":"text","text":"Continue."}]}]}`,
		},
		{
			name: "sides that don't alternate, one that says nothing",
			raw:  `{"messages":[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":" "},{"role":"user","content":"d"}]}`,
			want: `{"model":"m","stream":true,"max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"Continue."}]},
				{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
				{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}]}`,
		},
		{
			name: "the same id again, and none at all",
			raw: `{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[{"role":"user","content":"a"},
				{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"},
				{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"c","content":"2"},{"role":"tool","content":"3"}]}`,
			want: `{"model":"m","stream":true,"max_tokens":8192,"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"tool","name":"f"},"messages":[
				{"role":"user","content":[{"type":"text","text":"a"}]},
				{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"1"}]}]},
				{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"f","input":{}},{"type":"tool_use","id":"call_2","name":"f","input":{}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"2"}]},{"type":"tool_result","tool_use_id":"call_2","content":[{"type":"text","text":"3"}]}]}]}`,
		},
		{
			name: "calls in a history without tools",
			raw:  `{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}]}`,
			want: `{"model":"m","stream":true,"max_tokens":8192,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"},"messages":[
				{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"1"}]}]}]}`,
		},
		{
			name: "tools that may not be called", raw: `{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none","messages":[{"role":"user","content":"hi"}]}`,
			want: `{"model":"m","stream":true,"max_tokens":8192,"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"},"messages":` + hi + `}`,
		},
		{
			name: "a schema, closed", model: "claude-sonnet-4-5",
			raw: `{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{
				"b":{"type":"array","items":{"type":"object","properties":{}}},"a":{"anyOf":[{"type":"null"},{"properties":{"type":{"type":"string"}}}]},
				"free":{"type":"object","additionalProperties":true}},"$defs":{"d":{"type":"object"}},"enum":[{"type":"object"}]}}}}`,
			want: `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":32000,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false,"properties":{
				"b":{"type":"array","items":{"type":"object","properties":{},"additionalProperties":false}},"a":{"anyOf":[{"type":"null"},{"properties":{"type":{"type":"string"}},"additionalProperties":false}]},
				"free":{"type":"object","additionalProperties":true}},"$defs":{"d":{"type":"object","additionalProperties":false}},"enum":[{"type":"object"}]}}},"messages":` + hi + `}`,
		},
		{
			name: "marks for the prompt cache",
			raw: `{"messages":[{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"hi"}],
				"tools":[{"type":"function","cache_control":{"type":"ephemeral"},"function":{"name":"f"}}]}`,
			want: `{"model":"m","stream":true,"max_tokens":8192,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
				"tools":[{"name":"f","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"messages":` + hi + `}`,
		},
		{
			name: "defaults go unsaid", model: "claude-opus-4-7",
			raw: `{"messages":[{"role":"user","content":"hi"}],"temperature":1.0,"top_p":1,"frequency_penalty":0,"presence_penalty":0.0,"logprobs":false,
				"verbosity":"medium","response_format":{"type":"text"},"tools":[],"reasoning_effort":null}`,
			want: `{"model":"claude-opus-4-7","stream":true,"max_tokens":32000,"messages":` + hi + `}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, u := nativeTest(t, providertest.Anthropic)
			call := nativeCall(t, tt.raw)
			call.Options = tt.options
			if tt.model != "" {
				call.Model = tt.model
			}
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, "Hello there.", h.text)
			seen := u.Seen()
			require.JSONEq(t, tt.want, string(seen.Body))
			require.Equal(t, "/v1/messages", seen.Path)
			require.Equal(t, "2023-06-01", seen.Header.Get("anthropic-version"))
			require.Empty(t, seen.Header.Get("Authorization"))
		})
	}
}

// signedThought is a thought as the caller got it and sends it back.
const signedThought = `{"type":"reasoning.text","format":"anthropic-claude-v1","text":"hm","signature":"c2ln"}`

func TestAnthropicThinks(t *testing.T) {
	const opus, sonnet = "claude-opus-4-8", "claude-sonnet-4-5"
	const midTurn = `{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]%s},{"role":"tool","tool_call_id":"c","content":"1"}`
	tests := []struct{ name, model, way, asked, thinking, effort string }{
		{"unasked", sonnet, "", `"temperature":1`, ``, ``},
		{"off", sonnet, "", `"enable_thinking":false`, `{"type":"disabled"}`, ``},
		{"off, of a model that thinks by itself", "claude-opus-5", "", `"reasoning_effort":"none"`, `{"type":"disabled"}`, ``},
		{"on", sonnet, "", `"enable_thinking":true`, `{"type":"enabled","budget_tokens":8192}`, ``},
		{"a little", sonnet, "", `"reasoning_effort":"minimal"`, `{"type":"enabled","budget_tokens":1024}`, ``},
		{"much, with room", sonnet, "", `"reasoning_effort":"high","max_tokens":64000`, `{"type":"enabled","budget_tokens":16384}`, ``},
		{"much, without", sonnet, "", `"reasoning_effort":"high","max_tokens":1500`, `{"type":"enabled","budget_tokens":1024}`, ``},
		{"a budget", sonnet, "", `"enable_thinking":true,"thinking_budget":5000`, `{"type":"enabled","budget_tokens":5000}`, ``},
		{"a budget beyond the room", sonnet, "", `"enable_thinking":true,"thinking_budget":5000,"max_tokens":2000`, `{"type":"enabled","budget_tokens":1999}`, ``},
		{"adaptive", opus, "", `"enable_thinking":true`, `{"type":"adaptive","display":"summarized"}`, ``},
		{"adaptive with effort", opus, "", `"reasoning_effort":"xhigh"`, `{"type":"adaptive","display":"summarized"}`, `xhigh`},
		{"an effort of older words", "claude-opus-4-6", "", `"reasoning_effort":"xhigh"`, `{"type":"adaptive","display":"summarized"}`, `high`},
		{"the least effort", "claude-mythos-preview", "", `"reasoning_effort":"minimal"`, `{"type":"adaptive","display":"summarized"}`, `low`},
		{"another family", "MiniMax-M2", "", `"reasoning_effort":"low"`, `{"type":"enabled","budget_tokens":2048}`, ``},
		{"by effort, as configured", "MiniMax-M2", ThinkingByEffort, `"reasoning_effort":"low"`, `{"type":"adaptive","display":"summarized"}`, `low`},
		{"by budget, as configured", opus, ThinkingByType, `"reasoning_effort":"low"`, `{"type":"enabled","budget_tokens":2048}`, ``},
		{"not at all, as configured", opus, ThinkingByNone, `"reasoning_effort":"low"`, ``, ``},
		{"the dialect's own words", sonnet, "", `"thinking":{"type":"enabled","budget_tokens":1}`, `{"type":"enabled","budget_tokens":1}`, ``},
		{"within a turn whose thoughts are gone", sonnet, "", `"enable_thinking":true,"messages":[` + sprintf(midTurn, "") + `]`, `{"type":"disabled"}`, ``},
		{"within a turn whose thoughts are another's", sonnet, "", `"enable_thinking":true,"messages":[` + sprintf(midTurn, `,"reasoning_details":[{"type":"reasoning.text","text":"x","signature":"y","format":"openai"}]`) + `]`, `{"type":"disabled"}`, ``},
		{"within a turn whose thoughts are here", sonnet, "", `"enable_thinking":true,"messages":[` + sprintf(midTurn, `,"reasoning_details":[`+signedThought+`]`) + `]`, `{"type":"enabled","budget_tokens":8192}`, ``},
		{"adaptive, thoughts or not", opus, "", `"enable_thinking":true,"messages":[` + sprintf(midTurn, "") + `]`, `{"type":"adaptive","display":"summarized"}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := providertest.Start(t, providertest.Anthropic)
			tr := newTransport()
			t.Cleanup(tr.CloseIdleConnections)
			p := newAnthropic(Settings{BaseURL: u.URL, Thinking: tt.way, Transport: tr})
			raw := `{` + tt.asked + `}`
			if !gjson.Get(raw, "messages").Exists() {
				raw = `{"messages":[{"role":"user","content":"hi"}],` + tt.asked + `}`
			}
			call := nativeCall(t, raw)
			call.Model = tt.model
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			body := u.Seen().Body
			if tt.thinking == "" {
				require.False(t, gjson.GetBytes(body, "thinking").Exists())
			} else {
				require.JSONEq(t, tt.thinking, gjson.GetBytes(body, "thinking").Raw)
			}
			require.Equal(t, tt.effort, gjson.GetBytes(body, "output_config.effort").Str)
			for _, gone := range []string{"enable_thinking", "reasoning_effort", "thinking_budget", "reasoning_details"} {
				require.NotContains(t, string(body), gone)
			}
			call.Options.NoThinking = true
			if gjson.Get(raw, "thinking").Exists() {
				return
			}
			h, _ = nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.False(t, gjson.GetBytes(u.Seen().Body, "thinking").Exists())
		})
	}
}

func TestAnthropicGivesThoughtsBack(t *testing.T) {
	p, u := nativeTest(t, providertest.Anthropic)
	ask := func(asked string) gjson.Result {
		call := nativeCall(t, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_details":[`+signedThought+`,
			{"type":"reasoning.encrypted","format":"anthropic-claude-v1","data":"ZW5j"},{"type":"reasoning.text","format":"anthropic-claude-v1","text":"unsigned"}]},
			{"role":"user","content":"c"}],`+asked+`}`)
		h, _ := nativeAsk(t, p, call)
		require.ErrorIs(t, h.err, io.EOF)
		return gjson.GetBytes(u.Seen().Body, "messages.1.content")
	}
	require.JSONEq(t, `[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"ZW5j"},{"type":"text","text":"b"}]`,
		ask(`"enable_thinking":true`).Raw)
	require.JSONEq(t, `[{"type":"text","text":"b"}]`, ask(`"enable_thinking":false`).Raw)
}

func TestAnthropicRefusesByModel(t *testing.T) {
	tests := []struct{ model, asked, param string }{
		{"claude-opus-4-7", `"temperature":0.5`, "temperature"},
		{"claude-opus-5", `"top_p":0.5`, "top_p"},
		{"claude-opus-4-8", `"top_k":5`, "top_k"},
		{"claude-opus-4-8", `"enable_thinking":true,"thinking_budget":5`, "thinking_budget"},
		{"claude-3-5-haiku-20241022", `"response_format":{"type":"json_schema","json_schema":{}}`, "response_format"},
		{"claude-sonnet-4-20250514", `"tools":[{"type":"function","function":{"name":"f","strict":true}}]`, "strict"},
	}
	for _, tt := range tests {
		call := nativeCall(t, `{"messages":[{"role":"user","content":"hi"}],`+tt.asked+`}`)
		p := newAnthropic(Settings{BaseURL: "https://api.anthropic.com"}).(Checker)
		require.NoError(t, p.Check(Call{Request: nativeCall(t, nativeHi).Request, Model: tt.model}))
		call.Model = tt.model
		err := AsError(p.Check(call))
		require.Equal(t, KindUnsupported, err.Kind, tt.model)
		require.Contains(t, err.Message, tt.param)
	}
}

func TestAnthropicFetchesImagesOnlyInPublic(t *testing.T) {
	call := nativeCall(t, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.org/a.png"}}]}]}`)
	p := newAnthropic(Settings{BaseURL: "https://api.anthropic.com"}).(*anthropic)
	require.NoError(t, p.Check(call))
	require.JSONEq(t, `[{"type":"image","source":{"type":"url","url":"https://x.org/a.png"}}]`, gjson.GetBytes(p.body(call), "messages.0.content").Raw)
	call.BaseURL = "http://10.0.0.1"
	require.Equal(t, KindUnsupported, AsError(p.Check(call)).Kind)
	call.Options.ImageURLs = true
	require.NoError(t, p.Check(call))
}

func TestAnthropicURL(t *testing.T) {
	for _, base := range []string{"https://h", "https://h/", "https://h/v1", "https://h/v1/messages"} {
		require.Equal(t, "https://h/v1/messages", anthropicURL(base))
	}
	require.Equal(t, "https://h/anthropic/v1/messages", anthropicURL("https://h/anthropic"))
}
