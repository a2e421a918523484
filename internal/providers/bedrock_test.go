package providers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

func TestBedrockRequest(t *testing.T) {
	const hi = `[{"role":"user","content":[{"text":"hi"}]}]`
	const sonnet = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
	tests := []struct {
		name, raw, want string
		model           string
		options         Options
	}{
		{
			name: "every role, an image, tools, results", model: "amazon.nova-pro-v1:0",
			raw: `{"model":"auto","stream":true,"temperature":0.50,"top_p":1,"stop":"END","max_completion_tokens":9,"user":"u-1","metadata":{"task":"x"},
				"tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}},
				{"type":"function","function":{"name":"g"}}],"tool_choice":"required","messages":[
				{"role":"system","content":"be brief"},
				{"role":"user","name":"ann","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/jpg;base64,AAAA"}}]},
				{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[
					{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{\"x\":1.10}"}},
					{"id":"functions.g:1","type":"function","function":{"name":"g","arguments":""}}]},
				{"role":"tool","tool_call_id":"functions.f:0","content":[{"type":"text","text":"42"},{"type":"image_url","image_url":{"url":"data:image/webp;base64,BBBB"}}]},
				{"role":"tool","tool_call_id":"functions.g:1","content":""},
				{"role":"developer","content":"in French"},
				{"role":"user","content":"and now?"},
				{"role":"assistant","content":null,"refusal":"no"}]}`,
			want: `{"inferenceConfig":{"temperature":0.50,"topP":1,"maxTokens":9,"stopSequences":["END"]},
				"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"d","strict":true,"inputSchema":{"json":{"type":"object","properties":{"x":{"type":"integer"}}}}}},
				{"toolSpec":{"name":"g","inputSchema":{"json":{"type":"object","properties":{}}}}}],"toolChoice":{"any":{}}},
				"system":[{"text":"be brief"},{"text":"in French"}],"messages":[
				{"role":"user","content":[{"text":"ann:"},{"text":"what?"},{"image":{"format":"jpeg","source":{"bytes":"AAAA"}}}]},
				{"role":"assistant","content":[{"toolUse":{"toolUseId":"functions_f_0","name":"f","input":{"x":1.10}}},{"toolUse":{"toolUseId":"functions_g_1","name":"g","input":{}}}]},
				{"role":"user","content":[{"toolResult":{"toolUseId":"functions_f_0","content":[{"text":"42"},{"image":{"format":"webp","source":{"bytes":"BBBB"}}}]}},
					{"toolResult":{"toolUseId":"functions_g_1","content":[{"text":"(nothing)"}]}},{"text":"and now?"}]},
				{"role":"assistant","content":[{"text":"no"}]}]}`,
		},
		{name: "the least", raw: nativeHi, want: `{"messages":` + hi + `}`},
		{name: "no stream", options: Options{NoStream: true}, raw: nativeHi, want: `{"messages":` + hi + `}`},
		{name: "only a system prompt", raw: `{"messages":[{"role":"system","content":"greet"}]}`, want: `{"system":[{"text":"greet"}],"messages":[{"role":"user","content":[{"text":"Continue."}]}]}`},
		{
			name: "sides that don't alternate, one that says nothing",
			raw:  `{"messages":[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":" "},{"role":"user","content":"d"}]}`,
			want: `{"messages":[{"role":"user","content":[{"text":"Continue."}]},{"role":"assistant","content":[{"text":"a"},{"text":"b"}]},{"role":"user","content":[{"text":"c"},{"text":"d"}]}]}`,
		},
		{
			name: "one tool, by name", raw: `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`,
			want: `{"messages":` + hi + `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{}}}}}],"toolChoice":{"tool":{"name":"f"}}}}`,
		},
		{
			name: "no tool wanted", raw: `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none","parallel_tool_calls":true}`,
			want: `{"messages":` + hi + `}`,
		},
		{
			name: "a choice of no tools", raw: `{"messages":[{"role":"user","content":"hi"}],"tools":[],"tool_choice":"required","parallel_tool_calls":false}`,
			want: `{"messages":` + hi + `}`,
		},
		{
			name: "one tool at a time", model: sonnet, raw: `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false}`,
			want: `{"messages":` + hi + `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{}}}}}]},
				"additionalModelRequestFields":{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}}`,
		},
		{
			name: "JSON by schema", raw: `{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"s","description":"d","strict":true,"schema":{"type":"object"}}}}`,
			want: `{"messages":` + hi + `,"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"s","description":"d","schema":"{\"type\":\"object\"}"}}}}}`,
		},
		{
			name: "JSON by a schema that a Claude takes", model: sonnet, raw: `{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}}`,
			want: `{"messages":` + hi + `,"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"s","schema":"{\"type\":\"object\",\"additionalProperties\":false}"}}}}}`,
		},
		{
			name: "a Claude's defaults", model: sonnet, raw: `{"messages":[{"role":"user","content":"hi"}],"temperature":1,"top_p":0.9,"stop":["a","b"],"top_k":5}`,
			want: `{"messages":` + hi + `,"inferenceConfig":{"topP":0.9,"stopSequences":["a","b"]},"additionalModelRequestFields":{"top_k":5}}`,
		},
		{
			name: "fields of the model's and of Converse's own",
			raw: `{"messages":[{"role":"user","content":"hi"}],"top_k":5,"additionalModelRequestFields":{"top_k":7,"inferenceConfig":{"topK":1}},"guardrailConfig":{"guardrailIdentifier":"g","guardrailVersion":"1"},
				"requestMetadata":{"a":"b"},"performanceConfig":{"latency":"optimized"},"serviceTier":{"type":"priority"},"service_tier":"flex","provider":{},"STREAM":false}`,
			want: `{"messages":` + hi + `,"additionalModelRequestFields":{"top_k":7,"inferenceConfig":{"topK":1}},"guardrailConfig":{"guardrailIdentifier":"g","guardrailVersion":"1"},"requestMetadata":{"a":"b"}}`,
		},
		{
			name: "what costs more, allowed", options: Options{Allow: []string{"service_tier", "performanceConfig"}},
			raw:  `{"messages":[{"role":"user","content":"hi"}],"performanceConfig":{"latency":"optimized"},"service_tier":"flex"}`,
			want: `{"messages":` + hi + `,"performanceConfig":{"latency":"optimized"},"serviceTier":{"type":"flex"}}`,
		},
		{
			name: "marks for the prompt cache", model: sonnet,
			raw: `{"tools":[{"type":"function","function":{"name":"f"},"cache_control":{"type":"ephemeral"}}],"messages":[
				{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}]},
				{"role":"user","content":[{"type":"text","text":"","cache_control":{"type":"ephemeral"}},{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},
				{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"1","cache_control":{"type":"ephemeral"}}]}]}`,
			want: `{"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{}}}}},{"cachePoint":{"type":"default"}}]},
				"system":[{"text":"s"},{"cachePoint":{"type":"default","ttl":"1h"}}],"messages":[{"role":"user","content":[{"text":"a"},{"cachePoint":{"type":"default"}}]},
				{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]},
				{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"1"}]}},{"cachePoint":{"type":"default"}}]}]}`,
		},
		{
			name: "a model without a prompt cache", model: "meta.llama3-1-8b-instruct-v1:0",
			raw:  `{"stop":["",null],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}`,
			want: `{"messages":` + hi + `}`,
		},
		{
			name: "an id that is too long", raw: `{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[
				{"role":"assistant","tool_calls":[{"id":"` + strings.Repeat("x", 65) + `","function":{"name":"f","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"` + strings.Repeat("x", 65) + `","content":"1"}]}`,
			want: `{"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{}}}}}]},
				"messages":[{"role":"user","content":[{"text":"Continue."}]},
				{"role":"assistant","content":[{"toolUse":{"toolUseId":"` + shortID(strings.Repeat("x", 65)) + `","name":"f","input":{}}}]},
				{"role":"user","content":[{"toolResult":{"toolUseId":"` + shortID(strings.Repeat("x", 65)) + `","content":[{"text":"1"}]}}]}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, u := nativeTest(t, providertest.Bedrock)
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
			require.Equal(t, "Bearer sk-secret", seen.Header.Get("Authorization"))
			require.Equal(t, "application/json", seen.Header.Get("Content-Type"))
			method := "/converse-stream"
			if tt.options.NoStream {
				method = "/converse"
			}
			require.Equal(t, "/model/"+call.Model+method, seen.Path)
		})
	}
	require.LessOrEqual(t, len(shortID(strings.Repeat("x", 65))), 64)
}

func TestBedrockThinks(t *testing.T) {
	const sonnet, opus, profile = "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-opus-4-6-v1", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
	const nova, oss, llama = "us.amazon.nova-2-lite-v1:0", "openai.gpt-oss-120b-1:0", "meta.llama3-1-8b-instruct-v1:0"
	tests := []struct{ name, model, way, asked, extra string }{
		{"a Claude with a budget", sonnet, "", `"reasoning_effort":"low"`, `{"thinking":{"type":"enabled","budget_tokens":2048}}`},
		{"a Claude with the caller's budget", sonnet, "", `"enable_thinking":true,"thinking_budget":5000,"max_tokens":9000`, `{"thinking":{"type":"enabled","budget_tokens":5000}}`},
		{"a Claude that adapts", opus, "", `"reasoning_effort":"high"`, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}`},
		{"a Claude that need not", sonnet, "", `"enable_thinking":false`, `{"thinking":{"type":"disabled"}}`},
		{"a Claude by another way", sonnet, ThinkingByEffort, `"reasoning_effort":"high"`, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}`},
		{"a profile of a Claude", profile, ThinkingByType, `"enable_thinking":true`, `{"thinking":{"type":"enabled","budget_tokens":4096}}`},
		{"a profile of nobody knows what", profile, "", `"enable_thinking":true`, ``},
		{"a Nova", nova, "", `"enable_thinking":true`, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"medium"}}`},
		{"a Nova at its best", nova, "", `"reasoning_effort":"xhigh"`, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}`},
		{"a Nova with a limit", nova, "", `"reasoning_effort":"high","max_tokens":500`, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"medium"}}`},
		{"a Nova that need not", nova, "", `"reasoning_effort":"none"`, `{"reasoningConfig":{"type":"disabled"}}`},
		{"OpenAI's", oss, "", `"enable_thinking":true,"reasoning_effort":"minimal"`, `{"reasoning_effort":"low"}`},
		{"OpenAI's, which always thinks", oss, "", `"enable_thinking":false`, `{"reasoning_effort":"low"}`},
		{"no way known", llama, "", `"enable_thinking":true`, ``},
		{"no way wanted", nova, ThinkingByNone, `"enable_thinking":true`, ``},
		{"by effort", llama, ThinkingByEffort, `"enable_thinking":true`, `{"reasoning_effort":"medium"}`},
		{"by Qwen's field", llama, ThinkingByEnable, `"reasoning_effort":"none"`, `{"enable_thinking":false}`},
		{"by the template", llama, ThinkingByTemplate, `"enable_thinking":true,"chat_template_kwargs":{"a":1}`, `{"chat_template_kwargs":{"a":1,"enable_thinking":true}}`},
		{"by type", llama, ThinkingByType, `"enable_thinking":true`, `{"thinking":{"type":"enabled"}}`},
		{"by type, not", llama, ThinkingByType, `"enable_thinking":false`, `{"thinking":{"type":"disabled"}}`},
		{"nothing said", sonnet, "", `"user":"u"`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := providertest.Start(t, providertest.Bedrock)
			p, err := New(Settings{Name: "mine", Dialect: "bedrock", BaseURL: u.URL, APIKey: "sk-secret", Thinking: tt.way})
			require.NoError(t, err)
			call := nativeCall(t, `{"messages":[{"role":"user","content":"hi"}],`+tt.asked+`}`)
			call.Model = tt.model
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			extra := gjson.GetBytes(u.Seen().Body, "additionalModelRequestFields").Raw
			if tt.extra == "" {
				require.Empty(t, extra)
			} else {
				require.JSONEq(t, tt.extra, extra)
			}
			if budget := gjson.Get(extra, "thinking.budget_tokens").Int(); budget > 0 {
				require.Greater(t, gjson.GetBytes(u.Seen().Body, "inferenceConfig.maxTokens").Int(), budget)
			}
			call.Options.NoThinking = true
			h, _ = nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			for _, gone := range []string{"thinking", "reasoningConfig", "reasoning_effort", "enable_thinking", "output_config"} {
				require.False(t, gjson.GetBytes(u.Seen().Body, "additionalModelRequestFields."+gone).Exists(), gone)
			}
		})
	}
}

// Thoughts that a Claude signed go back to it while it thinks; another family's stay out, and with them its thinking.
func TestBedrockGivesThoughtsBack(t *testing.T) {
	const tool = `"tools":[{"type":"function","function":{"name":"f"}}]`
	const call = `"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]`
	said := func(more string) string {
		return `{"enable_thinking":true,` + tool + `,"messages":[{"role":"user","content":"hi"},{"role":"assistant","reasoning_content":"hm",` + more + call + `},{"role":"tool","tool_call_id":"c","content":"1"}]}`
	}
	ask := func(raw string) gjson.Result {
		p, u := nativeTest(t, providertest.Bedrock)
		c := nativeCall(t, raw)
		c.Model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
		h, _ := nativeAsk(t, p, c)
		require.ErrorIs(t, h.err, io.EOF)
		return gjson.ParseBytes(u.Seen().Body)
	}
	body := ask(said(`"reasoning_details":[{"type":"reasoning.text","format":"anthropic-claude-v1","text":"hm","signature":"s"},{"type":"reasoning.encrypted","format":"anthropic-claude-v1","data":"x"}],`))
	require.JSONEq(t, `[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]`, body.Get("messages.1.content").Raw)
	require.Equal(t, "enabled", body.Get("additionalModelRequestFields.thinking.type").Str)

	body = ask(said(`"reasoning_details":[{"type":"reasoning.text","format":"other","text":"hm","signature":"s"}],`))
	require.Equal(t, int64(1), body.Get("messages.1.content.#").Int())
	require.Equal(t, "disabled", body.Get("additionalModelRequestFields.thinking.type").Str)
}

func TestBedrockRefuses(t *testing.T) {
	with := func(more string) string { return `{"messages":[{"role":"user","content":"hi"}],` + more + `}` }
	message := func(m string) string { return `{"messages":[` + m + `]}` }
	image := func(role, url string) string {
		return message(`{"role":"` + role + `","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}`)
	}
	const tool = `"tools":[{"type":"function","function":{"name":"f"}}]`
	const history = `"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"1"}]`
	const haiku, sonnet = "anthropic.claude-3-haiku-20240307-v1:0", "anthropic.claude-sonnet-4-5-20250929-v1:0"
	tests := []struct{ name, model, raw, param string }{
		{"audio", "m", with(`"modalities":["text","audio"]`), "modalities"},
		{"web search", "m", with(`"web_search_options":{}`), "web_search_options"},
		{"a document", "m", message(`{"role":"user","content":[{"type":"file","file":{"file_data":"x"}}]}`), "messages[0].content[0].type"},
		{"seed", "m", with(`"seed":0`), "seed"},
		{"frequency", "m", with(`"frequency_penalty":0.5`), "frequency_penalty"},
		{"presence", "m", with(`"presence_penalty":-1`), "presence_penalty"},
		{"logprobs", "m", with(`"logprobs":true`), "logprobs"},
		{"too hot", "m", with(`"temperature":1.5`), "temperature"},
		{"JSON without a schema", "m", with(`"response_format":{"type":"json_object"}`), "response_format"},
		{"JSON by no schema", "m", with(`"response_format":{"type":"json_schema","json_schema":{"name":"s"}}`), "response_format"},
		{"a choice of some tools", "m", with(tool + `,"tool_choice":{"type":"allowed_tools"}`), "tool_choice"},
		{"one tool at a time", "m", with(tool + `,"parallel_tool_calls":false`), "parallel_tool_calls"},
		{"one tool at a time of an old Claude", haiku, with(tool + `,"parallel_tool_calls":false`), "parallel_tool_calls"},
		{"calls without tools", "m", `{` + history + `}`, "tool calls"},
		{"calls, and no more of them", sonnet, `{` + history + `,` + tool + `,"tool_choice":"none"}`, "tool calls"},
		{"an image to fetch", "m", image("user", "https://x.org/a.png"), "messages[0].content[0].image_url"},
		{"an odd image", "m", image("user", "data:image/tiff;base64,AA"), "messages[0].content[0].image_url"},
		{"an image of the model's", "m", image("assistant", "data:image/png;base64,AA"), "messages[0].content[0].image_url"},
		{"arguments that are no object", "m", message(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"[1"}}]}`), "tool"},
		{"a schema for an old Claude", haiku, with(`"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{}}}`), "response_format"},
		{"warm thinking", sonnet, with(`"reasoning_effort":"low","temperature":0.2`), "temperature beside thinking"},
		{"thinking, and a forced tool", sonnet, with(tool + `,"enable_thinking":true,"tool_choice":"required"`), "tool_choice beside thinking"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, u := nativeTest(t, providertest.Bedrock)
			call := nativeCall(t, tt.raw)
			call.Model = tt.model
			call.Options.ImageURLs = true
			err := p.(Checker).Check(call)
			require.Equal(t, KindUnsupported, AsError(err).Kind)
			require.Contains(t, AsError(err).Message, tt.param)
			_, streamErr := p.Stream(t.Context(), call)
			require.Equal(t, err, streamErr)
			require.Zero(t, u.Calls())
		})
	}
	p, _ := nativeTest(t, providertest.Bedrock)
	harmless := with(`"modalities":["text"],"functions":[],"logit_bias":{},"frequency_penalty":0.0,"tool_choice":"none","logprobs":false,
		"parallel_tool_calls":false,"response_format":{"type":"text"},"verbosity":"medium","stop":null,"seed":null`)
	require.NoError(t, p.(Checker).Check(nativeCall(t, harmless)))
}

// awsEnvironment takes all of this machine's AWS settings away, so that nothing but what a test sets is found.
func awsEnvironment(t *testing.T, set map[string]string) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for name, value := range set {
		t.Setenv(name, value)
	}
}

func awsKeys() map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI", "AWS_SESSION_TOKEN": "session", "AWS_REGION": "eu-west-3"}
}

// signedServer answers calls whose signature it can make itself from what came, and refuses others.
func signedServer(t *testing.T, region string) (url string, last func() *http.Request) {
	t.Helper()
	u := providertest.New(providertest.Bedrock)
	var seen *http.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = r.Clone(t.Context())
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		again, _ := http.NewRequest(http.MethodPost, "http://"+r.Host+r.RequestURI, strings.NewReader(string(body)))
		hash := sha256.Sum256(body)
		keys := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI", SessionToken: "session"}
		if err == nil {
			err = v4.NewSigner().SignHTTP(t.Context(), keys, again, hex.EncodeToString(hash[:]), "bedrock", region, at)
		}
		if err != nil || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
			w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException:http://internal.amazon.com/coral/")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		u.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() *http.Request { return seen }
}

func TestBedrockSigns(t *testing.T) {
	for _, tt := range []struct {
		name, region, want string
		headers            map[string]string
		model, path        string
	}{
		{name: "region of the environment", want: "eu-west-3", model: "amazon.nova-pro-v1:0", path: "/model/amazon.nova-pro-v1%3A0/converse-stream"},
		{name: "region of the settings", region: "us-west-2", want: "us-west-2", model: "m", path: "/model/m/converse-stream"},
		{
			name: "an ARN", want: "eu-west-3", model: "arn:aws:bedrock:eu-west-3:123456789012:inference-profile/eu.x y+z",
			path: "/model/arn%3Aaws%3Abedrock%3Aeu-west-3%3A123456789012%3Ainference-profile%2Feu.x%20y%2Bz/converse-stream",
		},
		{name: "another host", want: "eu-west-3", headers: map[string]string{"Host": "bedrock.internal", "X-Team": "a"}, model: "m", path: "/model/m/converse-stream"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			awsEnvironment(t, awsKeys())
			at, last := signedServer(t, tt.want)
			p, err := New(Settings{Name: "bedrock", BaseURL: at, Region: tt.region, Headers: tt.headers})
			require.NoError(t, err)
			call := nativeCall(t, nativeHi)
			call.Model = tt.model
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.Equal(t, tt.path, last().RequestURI)
			require.Equal(t, "session", last().Header.Get("X-Amz-Security-Token"))
			require.Contains(t, last().Header.Get("Authorization"), "/"+tt.want+"/bedrock/aws4_request")
			require.Equal(t, tt.headers["X-Team"], last().Header.Get("X-Team"))
		})
	}
}

// A region that the address names is the one that signs, whatever else is set.
func TestBedrockRegion(t *testing.T) {
	awsEnvironment(t, nil)
	for host, want := range map[string]string{
		"bedrock-runtime.us-east-1.amazonaws.com":                 "us-east-1",
		"bedrock-runtime-fips.us-gov-west-1.amazonaws.com":        "us-gov-west-1",
		"vpce-0a.bedrock-runtime.eu-central-1.vpce.amazonaws.com": "eu-central-1",
		"bedrock-runtime.ap-south-1.api.aws":                      "ap-south-1",
		"bedrock-runtime.gateway.example.org":                     "set",
		"10.0.0.1":                                                "set",
		"amazonaws.com":                                           "set",
	} {
		got, err := (&awsAccount{region: "set"}).place(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, want, got, host)
	}
	found := func(context.Context) (aws.Config, error) { return aws.Config{Region: "sa-east-1"}, nil }
	got, err := (&awsAccount{find: found}).place(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "sa-east-1", got)
}

func TestBedrockAddress(t *testing.T) {
	for _, tt := range []struct {
		name     string
		env      map[string]string
		settings Settings
		call     Call
		want     string
	}{
		{name: "of the region", env: map[string]string{"AWS_REGION": "eu-west-3"}, want: "https://bedrock-runtime.eu-west-3.amazonaws.com/model/m/converse-stream"},
		{name: "of the settings' region", env: awsKeys(), settings: Settings{Region: "us-east-2"}, want: "https://bedrock-runtime.us-east-2.amazonaws.com/model/m/converse-stream"},
		{name: "of the environment", env: map[string]string{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://127.0.0.1:4566/"}, want: "http://127.0.0.1:4566/model/m/converse-stream"},
		{name: "of the settings", env: map[string]string{"AWS_ENDPOINT_URL": "http://x"}, settings: Settings{BaseURL: "http://y/z"}, want: "http://y/z/model/m/converse-stream"},
		{name: "of the candidate", settings: Settings{BaseURL: "http://y"}, call: Call{BaseURL: "http://z"}, want: "http://z/model/m/converse-stream"},
		{name: "without a stream", settings: Settings{BaseURL: "http://y"}, call: Call{Options: Options{NoStream: true}}, want: "http://y/model/m/converse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			awsEnvironment(t, tt.env)
			tt.settings.Name, tt.call.Model = "bedrock", "m"
			p, err := New(tt.settings)
			require.NoError(t, err)
			got, err := p.(*bedrock).url(t.Context(), tt.call)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestBedrockKeyOfTheEnvironment(t *testing.T) {
	awsEnvironment(t, map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "token-of-bedrock"})
	u := providertest.Start(t, providertest.Bedrock)
	p, err := New(Settings{Name: "bedrock", BaseURL: u.URL})
	require.NoError(t, err)
	h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
	require.ErrorIs(t, h.err, io.EOF)
	require.Equal(t, "Bearer token-of-bedrock", u.Seen().Header.Get("Authorization"))
	require.Empty(t, u.Seen().Header.Get("X-Amz-Date"))
}

// An account that can't be used fails the call, not the start.
func TestBedrockWithoutAnAccount(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		env        map[string]string
		base       bool
	}{
		{name: "no credentials", code: "no_credentials", env: map[string]string{"AWS_REGION": "eu-west-3"}, base: true},
		{name: "no region", code: "no_region", env: map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x"}},
		{name: "no region to sign for", code: "no_region", env: map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x"}, base: true},
		{name: "a profile that isn't there", code: "no_credentials", env: map[string]string{"AWS_REGION": "eu-west-3", "AWS_PROFILE": "CANARY"}, base: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			awsEnvironment(t, tt.env)
			u := providertest.Start(t, providertest.Bedrock)
			s := Settings{Name: "bedrock"}
			if tt.base {
				s.BaseURL = u.URL
			}
			p, err := New(s)
			require.NoError(t, err)
			for range 2 {
				_, err = p.Stream(t.Context(), nativeCall(t, nativeHi))
				require.Equal(t, KindAuth, AsError(err).Kind, "%v", err)
				require.Equal(t, tt.code, AsError(err).Code)
				require.Zero(t, AsError(err).Status)
				require.NotContains(t, err.Error(), "CANARY")
			}
			require.Zero(t, u.Calls())
		})
	}
}

func TestBedrockReadsItsAccountAgain(t *testing.T) {
	awsEnvironment(t, map[string]string{"AWS_REGION": "eu-west-3", "AWS_PROFILE": "none"})
	at, _ := signedServer(t, "eu-west-3")
	p, err := New(Settings{Name: "bedrock", BaseURL: at})
	require.NoError(t, err)
	_, err = p.Stream(t.Context(), nativeCall(t, nativeHi))
	require.Equal(t, KindAuth, AsError(err).Kind)
	awsEnvironment(t, awsKeys())
	h, _ := nativeAsk(t, p, nativeCall(t, nativeHi))
	require.ErrorIs(t, h.err, io.EOF)
}
