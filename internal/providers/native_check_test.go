package providers

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

func TestNativeRefusesByName(t *testing.T) {
	with := func(more string) string { return `{"messages":[{"role":"user","content":"hi"}],` + more + `}` }
	message := func(m string) string { return `{"messages":[` + m + `]}` }
	dash, oll, anth, gem := "dashscope", "ollama", "anthropic", "gemini"
	all := dash + " " + oll + " " + anth + " " + gem
	tests := []struct{ name, who, raw, param string }{
		{"audio out", all, with(`"modalities":["text","audio"]`), "modalities"},
		{"audio", all, with(`"audio":{"voice":"v"}`), "audio"},
		{"legacy functions", all, with(`"functions":[{"name":"f"}]`), "functions"},
		{"web search", all, with(`"web_search_options":{}`), "web_search_options"},
		{"bias", all, with(`"logit_bias":{"1":5}`), "logit_bias"},
		{"custom tool", all, with(`"tools":[{"type":"custom","custom":{"name":"x"}}]`), "tools"},
		{"odd format", all, with(`"response_format":{"type":"grammar"}`), "response_format"},
		{"must call", dash + " " + oll, with(`"tool_choice":"required"`), "tool_choice"},
		{"must call this", oll, with(`"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice"},
		{"frequency", dash + " " + anth, with(`"frequency_penalty":0.5`), "frequency_penalty"},
		{"logprobs", oll + " " + anth + " " + gem, with(`"logprobs":true`), "logprobs"},
		{"one tool at a time", oll + " " + gem, with(`"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false`), "parallel_tool_calls"},
		{"function role", all, message(`{"role":"function","name":"f","content":"x"}`), "messages[0].role"},
		{"function call of old", all, message(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`), "messages[0].function_call"},
		{"audio in", all, message(`{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}`), "messages[0].content[0].type"},
		{"image to fetch", oll + " " + gem, message(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://x.org/a.png"}}]}`), "messages[0].content[1].image_url"},
		{"arguments that are no object", oll + " " + anth + " " + gem, message(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"[1"}}]}`), "messages[0].tool_calls[0]"},
		{"presence", anth, with(`"presence_penalty":-1`), "presence_penalty"},
		{"seed", anth, with(`"seed":0`), "seed"},
		{"long seed", gem, with(`"seed":4294967296`), "seed"},
		{"verbosity", anth + " " + gem, with(`"verbosity":"low"`), "verbosity"},
		{"a choice of some tools", anth + " " + gem, with(`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`), "tool_choice"},
		{"JSON without a schema", anth, with(`"response_format":{"type":"json_object"}`), "response_format"},
		{"too hot", anth, with(`"temperature":1.5`), "temperature"},
		{"blank stop", anth, with(`"stop":["a","\n"]`), "stop"},
		{"warm thinking", anth, with(`"reasoning_effort":"low","temperature":0.2`), "temperature beside thinking"},
		{"narrow thinking", anth, with(`"reasoning_effort":"low","top_p":0.5`), "top_p beside thinking"},
		{"ranked thinking", anth, with(`"enable_thinking":true,"top_k":5`), "top_k beside thinking"},
		{"short thinking", anth, with(`"enable_thinking":true,"max_tokens":1024`), "max_tokens"},
		{"thinking, and a forced tool", anth, with(`"enable_thinking":true,"tool_choice":"required"`), "tool_choice beside thinking"},
		{"an image in a system prompt", anth + " " + gem, message(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}`), "messages[0].content[0].image_url"},
		{"an odd image", anth, message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA"}}]}`), "messages[0].content[0].image_url"},
		{"no image", gem, message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:video/mp4;base64,AA"}}]}`), "messages[0].content[0].image_url"},
	}
	for _, tt := range tests {
		for _, d := range strings.Fields(tt.who) {
			t.Run(d+" "+tt.name, func(t *testing.T) {
				p, u := nativeTest(t, providertest.Dialect(d))
				call := nativeCall(t, tt.raw)
				err := p.(Checker).Check(call)
				require.Equal(t, KindUnsupported, AsError(err).Kind)
				require.Contains(t, AsError(err).Message, tt.param)
				_, streamErr := p.Stream(t.Context(), call)
				require.Equal(t, err, streamErr)
				require.Zero(t, u.Calls())
			})
		}
	}
	harmless := with(`"modalities":["text"],"functions":[],"function_call":"none","logit_bias":{},"frequency_penalty":0.0,"tool_choice":"auto",
		"logprobs":false,"parallel_tool_calls":true,"response_format":{"type":"text"},"audio":null,"user":"u","store":true,"stop":null`)
	for _, d := range strings.Fields(all) {
		p, u := nativeTest(t, providertest.Dialect(d))
		h, _ := nativeAsk(t, p, nativeCall(t, harmless))
		require.ErrorIs(t, h.err, io.EOF)
		for _, gone := range []string{"functions", "function_call", "logit_bias", "modalities", "user", "store", "stop"} {
			require.NotContains(t, string(u.Seen().Body), `"`+gone+`":`)
		}
	}
}

func TestNativeHoldsBackWhatChangesWhoIsCalled(t *testing.T) {
	raw := `{"messages":[{"role":"user","content":"hi"}],"models":["x"],"provider":{},"route":"r","service_tier":"flex","priority":1,"novel":{"k":1.10}}`
	for _, d := range nativeDialects() {
		p, u := nativeTest(t, d)
		call := nativeCall(t, raw)
		call.Options.Allow = []string{"priority"}
		h, _ := nativeAsk(t, p, call)
		require.ErrorIs(t, h.err, io.EOF)
		body := string(u.Seen().Body)
		for _, name := range []string{"models", "provider", "route", "service_tier"} {
			require.NotContains(t, body, `"`+name+`"`)
		}
		require.Contains(t, body, `"priority":1`)
		require.Contains(t, body, `"novel":{"k":1.10}`)
	}
}
