package providers

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

func TestGeminiRequest(t *testing.T) {
	const hi = `[{"role":"user","parts":[{"text":"hi"}]}]`
	tests := []struct {
		name, raw, want string
		model           string
	}{
		{
			name: "every role, an image, tools, results", model: "gemini-2.5-pro",
			raw: `{"model":"auto","stream":true,"temperature":1.5,"top_p":0.5,"top_k":40,"seed":-7,"stop":"END","max_completion_tokens":9,"presence_penalty":0.1,
				"frequency_penalty":0.2,"user":"u","metadata":{"task":"x"},"safetySettings":[],"generationConfig":{"topP":0.9,"mediaResolution":"LOW"},
				"tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"$schema":"x","type":"object","additionalProperties":false}}},
				{"type":"function","function":{"name":"g"}}],"tool_choice":"required","messages":[
				{"role":"system","content":"be brief"},
				{"role":"user","name":"ann","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
				{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[
					{"id":"c:0","type":"function","function":{"name":"f","arguments":"{\"x\":1.10}"}},{"id":"c:1","type":"function","function":{"name":"g","arguments":""}}]},
				{"role":"tool","tool_call_id":"c:0","content":"42"},
				{"role":"tool","tool_call_id":"c:1","content":"{\"a\":[1]}"},
				{"role":"developer","content":"in French"},
				{"role":"user","content":"and now?"},
				{"role":"assistant","content":null,"refusal":"no"}]}`,
			want: `{"safetySettings":[],"generationConfig":{"temperature":1.5,"topP":0.9,"topK":40,"seed":-7,"stopSequences":["END"],"maxOutputTokens":9,"presencePenalty":0.1,
				"frequencyPenalty":0.2,"mediaResolution":"LOW"},
				"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","additionalProperties":false}},{"name":"g"}]}],
				"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"systemInstruction":{"parts":[{"text":"be brief"},{"text":"in French"}]},"contents":[
				{"role":"user","parts":[{"text":"ann:"},{"text":"what?"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
				{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1.10}}},{"functionCall":{"name":"g","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"42"}}},{"functionResponse":{"name":"g","response":{"a":[1]}}}]},{"role":"user","parts":[{"text":"and now?"}]},
				{"role":"model","parts":[{"text":"no"}]}]}`,
		},
		{name: "the least", raw: nativeHi, want: `{"contents":` + hi + `}`},
		{
			name: "only a system prompt", raw: `{"messages":[{"role":"system","content":"greet"}]}`,
			want: `{"systemInstruction":{"parts":[{"text":"greet"}]},"contents":[{"role":"user","parts":[{"text":"Continue."}]}]}`,
		},
		{
			name: "a version that signs its calls, and calls of others", model: "gemini-3-pro-preview",
			raw: `{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[{"role":"user","content":"a"},
				{"role":"assistant","content":"so","extra_content":{"google":{"thought_signature":"dGV4dA=="}},"tool_calls":[
					{"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}},{"id":"d","function":{"name":"f","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"d","content":"2"},{"role":"tool","tool_call_id":"c","content":"1"},
				{"role":"assistant","tool_calls":[{"id":"toolu/1","function":{"name":"f","arguments":"{}"}},{"id":"toolu/2","function":{"name":"f","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"toolu/1","content":"3"}]}`,
			want: `{"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},"contents":[
				{"role":"user","parts":[{"text":"a"}]},
				{"role":"model","parts":[{"text":"so","thoughtSignature":"dGV4dA=="},{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"d","name":"f","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"d","name":"f","response":{"output":"2"}}},{"functionResponse":{"id":"c","name":"f","response":{"output":"1"}}}]},
				{"role":"model","parts":[{"functionCall":{"id":"toolu_1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"toolu_2","name":"f","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"toolu_1","name":"f","response":{"output":"3"}}}]}]}`,
		},
		{
			name: "tools that may not be called, JSON", model: "gemini-2.5-flash",
			raw:  `{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none","parallel_tool_calls":false,"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"hi"}]}`,
			want: `{"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"generationConfig":{"responseMimeType":"application/json"},"contents":` + hi + `}`,
		},
		{
			name: "JSON by a schema",
			raw:  `{"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}},"messages":[{"role":"user","content":"hi"}]}`,
			want: `{"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}},"contents":` + hi + `}`,
		},
		{
			name: "schemas of an old version", model: "gemini-2.0-flash-001",
			raw:  `{"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"none","messages":[{"role":"user","content":"hi"}]}`,
			want: `{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object"}}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"object"}},"contents":` + hi + `}`,
		},
		{
			name: "what says nothing goes unsaid",
			raw:  `{"messages":[{"role":"user","content":"hi"}],"logprobs":false,"verbosity":"medium","response_format":{"type":"text"},"tools":[],"tool_choice":"auto","service_tier":"flex"}`,
			want: `{"contents":` + hi + `}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, u := nativeTest(t, providertest.Gemini)
			call := nativeCall(t, tt.raw)
			if tt.model != "" {
				call.Model = tt.model
			}
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, "Hello there.", h.text)
			require.JSONEq(t, tt.want, string(u.Seen().Body))
			require.Equal(t, "/v1beta/models/"+call.Model+":streamGenerateContent", u.Seen().Path)
			require.Empty(t, u.Seen().Header.Get("Authorization"))

			call.Options.NoStream = true
			h, _ = nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, "Hello there.", h.text)
			require.JSONEq(t, tt.want, string(u.Seen().Body))
			require.Equal(t, "/v1beta/models/"+call.Model+":generateContent", u.Seen().Path)
		})
	}
}

func TestGeminiThinks(t *testing.T) {
	const old, pro, three = "gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-flash-preview"
	tests := []struct{ name, model, way, asked, want string }{
		{"unasked", old, "", `"temperature":1`, ``},
		{"off", old, "", `"enable_thinking":false`, `{"thinkingBudget":0}`},
		{"as little as it can", pro, "", `"reasoning_effort":"none"`, `{"thinkingBudget":128}`},
		{"on", old, "", `"enable_thinking":true`, `{"includeThoughts":true,"thinkingBudget":-1}`},
		{"low", old, "", `"reasoning_effort":"low"`, `{"includeThoughts":true,"thinkingBudget":1024}`},
		{"medium", old, "", `"reasoning_effort":"medium"`, `{"includeThoughts":true,"thinkingBudget":8192}`},
		{"high", old, "", `"reasoning_effort":"xhigh"`, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"a budget", old, "", `"enable_thinking":true,"thinking_budget":5`, `{"includeThoughts":true,"thinkingBudget":5}`},
		{"a level", three, "", `"reasoning_effort":"medium"`, `{"includeThoughts":true,"thinkingLevel":"medium"}`},
		{"no level", three, "", `"enable_thinking":true`, `{"includeThoughts":true}`},
		{"the highest", three, "", `"reasoning_effort":"max"`, `{"includeThoughts":true,"thinkingLevel":"high"}`},
		{"the lowest", three, "", `"enable_thinking":false`, `{"thinkingLevel":"low"}`},
		{"nearly the lowest", three, "", `"reasoning_effort":"minimal"`, `{"includeThoughts":true,"thinkingLevel":"low"}`},
		{"a model without a middle", "gemini-3-pro-preview", "", `"reasoning_effort":"medium"`, `{"includeThoughts":true,"thinkingLevel":"high"}`},
		{"the newest", "gemini-flash-latest", "", `"reasoning_effort":"low"`, `{"includeThoughts":true,"thinkingLevel":"low"}`},
		{"by level, as configured", "m", ThinkingByEffort, `"reasoning_effort":"low"`, `{"includeThoughts":true,"thinkingLevel":"low"}`},
		{"by budget, as configured", three, ThinkingByType, `"reasoning_effort":"low"`, `{"includeThoughts":true,"thinkingBudget":1024}`},
		{"not at all, as configured", three, ThinkingByNone, `"reasoning_effort":"low"`, ``},
		{"the dialect's own words", three, "", `"reasoning_effort":"low","generationConfig":{"thinkingConfig":{"thinkingBudget":7}}`, `{"thinkingBudget":7}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newGemini(Settings{Thinking: tt.way}).(*gemini)
			call := nativeCall(t, `{"messages":[{"role":"user","content":"hi"}],`+tt.asked+`}`)
			call.Model = tt.model
			require.NoError(t, p.Check(call))
			body := string(p.body(call))
			if tt.want == "" {
				require.NotContains(t, body, "thinkingConfig")
			} else {
				require.JSONEq(t, tt.want, gjson.Get(body, "generationConfig.thinkingConfig").Raw)
			}
			require.NotContains(t, body, "reasoning_effort")
			require.NotContains(t, body, "enable_thinking")
		})
	}
}

func TestGeminiURL(t *testing.T) {
	const vertex = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google"
	tests := []struct{ base, model, want string }{
		{"https://h", "gemini-2.5-pro", "https://h/v1beta/models/gemini-2.5-pro"},
		{"https://h/", "models/gemini-2.5-pro", "https://h/v1beta/models/gemini-2.5-pro"},
		{"https://h/v1", "m", "https://h/v1/models/m"},
		{"https://h/x/v1alpha/models", "m", "https://h/x/v1alpha/models/m"},
		{"https://h/vertex", "m", "https://h/vertex/v1beta/models/m"},
		{"http://127.0.0.1:1/rec/gemini/01-text.sse", "m?", "http://127.0.0.1:1/rec/gemini/01-text.sse/v1beta/models/m%3F"},
		{vertex, "m", vertex + "/models/m"},
	}
	for _, tt := range tests {
		call := Call{Model: tt.model}
		require.Equal(t, tt.want+":streamGenerateContent?alt=sse", geminiURL(call, tt.base))
		call.Options.NoStream = true
		require.Equal(t, tt.want+":generateContent", geminiURL(call, tt.base))
	}
}

func TestGeminiRefusesByVersion(t *testing.T) {
	call := nativeCall(t, `{"tools":[{"type":"function","function":{"name":"f"}}],"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"hi"}]}`)
	for model, refused := range map[string]bool{"gemini-2.5-pro": true, "gemini-3-pro": false, "gemini-flash-latest": false, "m": false} {
		call.Model = model
		err := newGemini(Settings{}).(Checker).Check(call)
		require.Equal(t, refused, err != nil, model)
	}
}
