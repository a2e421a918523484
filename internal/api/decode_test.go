package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

func TestBadInput(t *testing.T) {
	user := func(content string) string { return `{"messages":[{"role":"user","content":` + content + `}]}` }
	one := func(message string) string { return `{"messages":[` + message + `]}` }
	for _, c := range []struct{ name, body, param, says string }{
		{"empty", ``, "", "empty"},
		{"blank", ` `, "", "isn't valid JSON"},
		{"cut", `{"messages": [`, "", "isn't valid JSON"},
		{"trailing data", ask("") + `{}`, "", "after top-level value"},
		{"array", `[1,2]`, "", "got an array"},
		{"null", `null`, "", "got null"},
		{"string", `"x"`, "", "got a string"},
		{"not UTF-8", ask("\"user\":\"\xff\""), "", "UTF-8"},
		{"comment", `{/**/}`, "", "isn't valid JSON"},
		{"too deep", ask(`"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300)), "", "deeper than 200"},
		{"same key twice", ask(`"model":"a","model":"b"`), "model", "twice"},
		{"same key twice, escaped", ask(`"model":"a","m\u006fdel":"b"`), "model", "twice"},
		{"foreign key twice", ask(`"provider":1,"provider":2`), "provider", "twice"},
		{"messages absent", `{"model":"auto"}`, "messages", "missing"},
		{"messages null", `{"messages":null}`, "messages", "missing"},
		{"messages empty", `{"messages":[]}`, "messages", "empty"},
		{"messages a string", `{"messages":"hello"}`, "messages", "got a string"},
		{"messages an object", `{"messages":{}}`, "messages", "got an object"},
		{"message a string", one(`"hi"`), "messages[0]", "got a string"},
		{"role absent", one(`{"content":"q"}`), "messages[0].role", "missing"},
		{"role a number", one(`{"role":5,"content":"q"}`), "messages[0].role", "got a number"},
		{"role unknown", one(`{"role":"boss","content":"q"}`), "messages[0].role", "system, developer"},
		{"content absent", one(`{"role":"user"}`), "messages[0].content", "missing"},
		{"content null", user(`null`), "messages[0].content", "missing"},
		{"content null of an assistant", one(`{"role":"assistant","content":null}`), "messages[0].content", "missing"},
		{"content a number", user(`5`), "messages[0].content", "got a number"},
		{"content an object", user(`{}`), "messages[0].content", "got an object"},
		{"content twice", one(`{"role":"user","content":"a","content":"b"}`), "messages[0].content", "twice"},
		{"parts empty", user(`[]`), "messages[0].content", "empty"},
		{"part a string", user(`["a"]`), "messages[0].content[0]", "got a string"},
		{"part without type", user(`[{"text":"a"}]`), "messages[0].content[0].type", "missing"},
		{"part without text", user(`[{"type":"text"}]`), "messages[0].content[0].text", "missing"},
		{"part with wrong text", user(`[{"type":"text","text":"a"},{"type":"text","text":1}]`), "messages[0].content[1].text", "got a number"},
		{"image without URL", user(`[{"type":"image_url","image_url":{}}]`), "messages[0].content[0].image_url.url", "missing"},
		{"image absent", user(`[{"type":"image_url"}]`), "messages[0].content[0].image_url", "missing"},
		{"image a number", user(`[{"type":"image_url","image_url":1}]`), "messages[0].content[0].image_url", "got a number"},
		{"name a number", one(`{"role":"user","content":"q","name":1}`), "messages[0].name", "got a number"},
		{"tool calls an object", one(`{"role":"assistant","tool_calls":{}}`), "messages[0].tool_calls", "got an object"},
		{"arguments an object", one(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}`), "messages[0].tool_calls[0].function.arguments", "got an object"},
		{"second message", `{"messages":[{"role":"user","content":"a"},{"role":"user","content":1}]}`, "messages[1].content", "got a number"},
		{"model", ask(`"model":1`), "model", "got a number"},
		{"stream", ask(`"stream":"yes"`), "stream", "got a string"},
		{"stream_options", ask(`"stream_options":true`), "stream_options", "got a boolean"},
		{"include_usage", ask(`"stream_options":{"include_usage":1}`), "stream_options.include_usage", "got a number"},
		{"temperature a string", ask(`"temperature":"hot"`), "temperature", "got a string"},
		{"temperature too high", ask(`"temperature":2.1`), "temperature", "from 0 to 2"},
		{"temperature too low", ask(`"temperature":-1`), "temperature", "from 0 to 2"},
		{"top_p", ask(`"top_p":1.5`), "top_p", "from 0 to 1"},
		{"presence_penalty", ask(`"presence_penalty":3`), "presence_penalty", "from -2 to 2"},
		{"n two", ask(`"n":2`), "n", "must be 1"},
		{"n zero", ask(`"n":0`), "n", "at least 1"},
		{"n a string", ask(`"n":"1"`), "n", "got a string"},
		{"n huge", ask(`"n":1e99`), "n", "integer"},
		{"max_tokens zero", ask(`"max_tokens":0`), "max_tokens", "at least 1"},
		{"max_tokens a fraction", ask(`"max_tokens":1.5`), "max_tokens", "integer"},
		{"max_tokens huge", ask(`"max_tokens":99999999999999999999`), "max_tokens", "from 1 to"},
		{"max_completion_tokens", ask(`"max_completion_tokens":-1`), "max_completion_tokens", "at least 1"},
		{"seed", ask(`"seed":1.5`), "seed", "integer"},
		{"stop a number", ask(`"stop":1`), "stop", "got a number"},
		{"stop of numbers", ask(`"stop":["a",1]`), "stop[1]", "got a number"},
		{"stop of too many", ask(`"stop":["` + strings.Repeat(`a","`, 16) + `a"]`), "stop[16]", "too many"},
		{"tools an object", ask(`"tools":{}`), "tools", "got an object"},
		{"tool a string", ask(`"tools":["f"]`), "tools[0]", "got a string"},
		{"tool without type", ask(`"tools":[{"function":{"name":"f"}}]`), "tools[0].type", "missing"},
		{"tool without function", ask(`"tools":[{"type":"function"}]`), "tools[0].function", "missing"},
		{"tool without name", ask(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "missing"},
		{"tool with wrong name", ask(`"tools":[{"type":"function","function":{"name":1}}]`), "tools[0].function.name", "got a number"},
		{"tool_choice", ask(`"tool_choice":1`), "tool_choice", "string or an object"},
		{"tool_choice.type", ask(`"tool_choice":{"type":1}`), "tool_choice.type", "got a number"},
		{"functions", ask(`"functions":[{}]`), "functions[0].name", "missing"},
		{"function_call", ask(`"function_call":1`), "function_call", "string or an object"},
		{"response_format a string", ask(`"response_format":"json"`), "response_format", "got a string"},
		{"response_format without type", ask(`"response_format":{}`), "response_format.type", "missing"},
		{"json_schema", ask(`"response_format":{"type":"json_schema","json_schema":1}`), "response_format.json_schema", "got a number"},
		{"reasoning_effort", ask(`"reasoning_effort":3`), "reasoning_effort", "got a number"},
		{"enable_thinking", ask(`"enable_thinking":"true"`), "enable_thinking", "got a string"},
		{"user", ask(`"user":7`), "user", "got a number"},
		{"metadata", ask(`"metadata":[]`), "metadata", "got an array"},
		{"metadata value", ask(`"metadata":{"k":1}`), "metadata.k", "got a number"},
		{"logprobs", ask(`"logprobs":1`), "logprobs", "got a number"},
		{"logit_bias", ask(`"logit_bias":[]`), "logit_bias", "got an array"},
		{"modalities", ask(`"modalities":[1]`), "modalities[0]", "got a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{steps: hello()}
			w := post(f.open(), c.body)
			e := requireError(t, w, 400)
			require.Equal(t, c.param, e.Get("param").Str)
			require.Contains(t, e.Get("message").Str, c.says)
			if c.param != "" {
				require.Contains(t, e.Get("message").Str, "`"+c.param+"`")
			}
			require.NotEmpty(t, w.Header().Get("Holdfast-Route-Id"))
			require.Empty(t, f.requests)
		})
	}
}

func TestBadHeaders(t *testing.T) {
	for _, value := range []string{"0", "-5", "soon", "1.5", "1e3", "-99999999999999999999"} {
		e := requireError(t, post((&fake{}).open(), ask(""), "Holdfast-Deadline-Ms", value), 400)
		require.Equal(t, "Holdfast-Deadline-Ms", e.Get("param").Str)
	}
}

func TestLongNamesAreShortened(t *testing.T) {
	name := strings.Repeat("é", 5000)
	w := post((&fake{}).open(), ask(`"`+name+`":1,"`+name+`":1`))
	requireError(t, w, 400)
	require.Less(t, w.Body.Len(), 1000)
}

// decoded sends a body through the handler and gives what routing is asked.
func decoded(t *testing.T, body string, headers ...string) *routing.Request {
	t.Helper()
	f := &fake{steps: hello()}
	w := post(f.open(), body, headers...)
	require.Equal(t, 200, w.Code, w.Body.String())
	require.Len(t, f.requests, 1)
	return f.requests[0]
}

func TestDecode(t *testing.T) {
	body := `{
		"model": "a", "user": "u-1", "seed": 12345678901234567890, "n": 1, "temperature": null, "stop": ["x"],
		"messages": [
			{"role": "system", "content": "Be brief."},
			{"role": "user", "name": "Ann", "content": [
				{"type": "text", "text": "What"}, {"type": "text", "text": "is \"this\"?\n"},
				{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
				{"type": "image_url", "image_url": "https://example.com/a.png"},
				{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]},
			{"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
				{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}}]},
			{"role": "tool", "tool_call_id": "c1", "content": "done 你好 😀"},
			{"role": "assistant", "content": null, "refusal": "no"}
		],
		"tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
	}`
	before := time.Now()
	r := decoded(t, body)
	require.Equal(t, body, string(r.Raw))
	require.Equal(t, "a", r.Model)
	require.Equal(t, "u-1", r.User)
	require.Equal(t, "anonymous", r.Tenant)
	require.Equal(t, routing.HoldComplete, r.Hold)
	require.Equal(t, routing.Needs{Tools: true, Vision: true}, r.Needs)
	require.False(t, r.Structured)
	require.False(t, r.Foreign)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-`, r.RouteID)
	require.WithinRange(t, r.Received, before, time.Now())

	require.Len(t, r.Messages, 5)
	user := r.Messages[1]
	require.Equal(t, "Ann", user.Name)
	require.Equal(t, "What\nis \"this\"?\n", user.Text)
	require.Len(t, user.Parts, 5)
	for i, raw := range gjson.Get(body, "messages.1.content").Array() {
		require.Equal(t, raw.Raw, string(user.Parts[i].Raw))
	}
	require.Equal(t, "data:image/png;base64,AAAA", user.Parts[2].ImageURL)
	require.Equal(t, "https://example.com/a.png", user.Parts[3].ImageURL)
	require.Equal(t, "input_audio", user.Parts[4].Type)
	require.Equal(t, providers.Message{
		Role: "assistant", Reasoning: "hm",
		ToolCalls: []providers.ToolCall{{ID: "c1", Name: "look", Arguments: `{"a":1}`}},
	}, r.Messages[2])
	require.Equal(t, providers.Message{Role: "tool", ToolCallID: "c1", Text: "done 你好 😀"}, r.Messages[3])
}

func TestWhatFollowsFromFields(t *testing.T) {
	on, off, unset := providers.ThinkingOn, providers.ThinkingOff, providers.ThinkingUnset
	for _, c := range []struct {
		name, more string
		check      func(t *testing.T, r *routing.Request)
	}{
		{"stream", `"stream":true`, func(t *testing.T, r *routing.Request) { require.Equal(t, routing.HoldFirstToken, r.Hold) }},
		{"stream null", `"stream":null`, func(t *testing.T, r *routing.Request) { require.Equal(t, routing.HoldComplete, r.Hold) }},
		{"thinking unset", ``, thinks(unset, "")},
		{"thinking on", `"enable_thinking":true`, thinks(on, "")},
		{"thinking off", `"enable_thinking":false`, thinks(off, "")},
		{"effort", `"reasoning_effort":"high"`, thinks(on, "high")},
		{"effort none", `"reasoning_effort":"none"`, thinks(off, "none")},
		{"effort null", `"reasoning_effort":null`, thinks(unset, "")},
		{"effort beside off", `"reasoning_effort":"high","enable_thinking":false`, thinks(off, "high")},
		{"plain", ``, structured(false)},
		{"format text", `"response_format":{"type":"text"}`, structured(false)},
		{"format json", `"response_format":{"type":"json_object"}`, structured(true)},
		{"format schema", `"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`, structured(true)},
		{"choice auto", `"tool_choice":"auto"`, structured(false)},
		{"choice none", `"tool_choice":"none"`, structured(false)},
		{"choice required", `"tool_choice":"required"`, structured(true)},
		{"choice named", `"tool_choice":{"type":"function","function":{"name":"f"}}`, structured(true)},
		{"choice allowed auto", `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`, structured(false)},
		{"choice allowed required", `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[]}}`, structured(true)},
		{"legacy call", `"function_call":{"name":"f"}`, structured(true)},
		{"legacy auto", `"function_call":"auto"`, structured(false)},
		{"legacy functions", `"functions":[{"name":"f"}]`, func(t *testing.T, r *routing.Request) { require.True(t, r.Needs.Tools) }},
		{"no tools", `"tools":[]`, func(t *testing.T, r *routing.Request) { require.False(t, r.Needs.Tools) }},
		{"own tools", `"tools":[{"type":"custom","custom":{"name":"f"}}]`, func(t *testing.T, r *routing.Request) { require.True(t, r.Needs.Tools) }},
		{"format needs JSON", `"response_format":{"type":"json_object"}`, func(t *testing.T, r *routing.Request) { require.True(t, r.Needs.JSON) }},
		{"standard fields", `"top_p":1,"service_tier":"auto","store":true,"metadata":{"task":"x"},"enable_thinking":true,"verbosity":"low"`, foreign(false)},
		{"foreign field", `"chat_template":"x"`, foreign(true)},
		{"foreign null", `"provider":null`, foreign(false)},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, decoded(t, ask(c.more))) })
	}
}

func thinks(mode providers.ThinkingMode, effort string) func(*testing.T, *routing.Request) {
	return func(t *testing.T, r *routing.Request) {
		require.Equal(t, providers.Thinking{Mode: mode, Effort: effort}, r.Thinking)
	}
}

func structured(is bool) func(*testing.T, *routing.Request) {
	return func(t *testing.T, r *routing.Request) { require.Equal(t, is, r.Structured) }
}

func foreign(is bool) func(*testing.T, *routing.Request) {
	return func(t *testing.T, r *routing.Request) { require.Equal(t, is, r.Foreign) }
}

func TestRequestHeaders(t *testing.T) {
	for _, c := range []struct {
		name           string
		headers        []string
		hint           time.Duration
		noCache, noSto bool
	}{
		{"none", nil, 0, false, false},
		{"deadline", []string{"Holdfast-Deadline-Ms", "2500"}, 2500 * time.Millisecond, false, false},
		{"deadline beyond numbers", []string{"Holdfast-Deadline-Ms", "99999999999999999999"}, 24 * time.Hour, false, false},
		{"no-cache", []string{"Cache-Control", "no-cache"}, 0, true, false},
		{"no-store", []string{"Cache-Control", "max-age=0, No-Store"}, 0, false, true},
		{"both", []string{"Cache-Control", "no-store,no-cache"}, 0, true, true},
		{"another", []string{"Cache-Control", "no-transform"}, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := decoded(t, ask(""), c.headers...)
			require.Equal(t, c.hint, r.Hint)
			require.Equal(t, [2]bool{c.noCache, c.noSto}, [2]bool{r.NoCache, r.NoStore})
		})
	}
}

func TestWhatRulesSee(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"https://x/y"}}`
	body := `{"messages":[{"role":"user","content":[` + image + `,` + image + `]},{"role":"user","content":"q"}],` +
		`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}],` +
		`"functions":[{"name":"h"}],"metadata":{"task":"classify","team":"se\u0061rch","gone":null}}`
	d, err := decode([]byte(body))
	require.NoError(t, err)
	require.NoError(t, d.headers(http.Header{"Holdfast-Task": {"extract"}}))
	require.Equal(t, "classify", d.req.Task, "metadata goes before the header")
	require.Equal(t, map[string]string{"task": "classify", "team": "search"}, d.req.Tags)
	require.Equal(t, 3, d.req.Tools)
	require.Equal(t, 2, d.req.Images)

	d, err = decode([]byte(ask("")))
	require.NoError(t, err)
	require.NoError(t, d.headers(http.Header{"Holdfast-Task": {"extract"}}))
	require.Equal(t, "extract", d.req.Task)
	require.Nil(t, d.req.Tags)
	require.Zero(t, d.req.Tools)
}

func TestContentTypeDoesNotMatter(t *testing.T) {
	decoded(t, ask(""), "Content-Type", "application/x-www-form-urlencoded")
}

func TestManyKeys(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString(`,"k` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + http.StatusText(200) + string(rune(0x4e00+i)) + `":1`)
	}
	decoded(t, ask(b.String()[1:]))
	requireError(t, post((&fake{}).open(), ask(b.String()[1:]+b.String())), 400)
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		ask(""), ask(`"stream":true,"stream_options":{"include_usage":true}`), `{"messages":[{"role":"user","content":[{"type":"text","text":"\ud83d"}]}]}`,
		ask(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools"}`), `{"a":1,"a":2}`, `[[[[`, `{"messages":[{}]}`, "{\"\\u0000\":0}",
		`  {"messages" : [ {"content" : [ {"text":"a" , "type":"text"} ] , "role" : "user"} ] } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := decode(body)
		if err != nil {
			var m *misuse
			require.ErrorAs(t, err, &m)
			require.NotEmpty(t, m.Error())
			return
		}
		require.True(t, json.Valid(body))
		var plain map[string]json.RawMessage // a struct would take Messages for messages
		require.NoError(t, json.Unmarshal(body, &plain))
		var messages []json.RawMessage
		require.NoError(t, json.Unmarshal(plain["messages"], &messages))
		require.NotEmpty(t, messages)
		require.Len(t, d.req.Messages, len(messages))
		for i, m := range d.req.Messages {
			require.NotEmpty(t, m.Role, i)
			for _, p := range m.Parts {
				require.True(t, json.Valid(p.Raw), "%q", p.Raw)
			}
		}
		require.Positive(t, d.req.Tokens)
	})
}
