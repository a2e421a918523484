package providers

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// mended runs events through a mender whose first chunk, with the role, is already out.
func mended(t *testing.T, events ...string) []Chunk {
	t.Helper()
	m := mender{asked: "asked"}
	_, err := m.take([]byte(chunkOf(`{"role":"assistant"}`, "null")))
	require.NoError(t, err)
	var out []Chunk
	for _, ev := range events {
		require.True(t, gjson.Valid(ev), ev)
		c, err := m.take([]byte(ev))
		require.NoError(t, err)
		c.Data, c.Usage = clone(c.Data), clone(c.Usage)
		out = append(out, c)
	}
	return out
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// chunkOf is a chunk that is right.
func chunkOf(delta, finish string) string {
	return `{"id":"i","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

func TestMendLeavesWhatIsRight(t *testing.T) {
	for _, data := range []string{
		chunkOf(`{"content":"a"}`, "null"),
		chunkOf(`{"content":""}`, "null"),
		chunkOf(`{"content":null,"refusal":null}`, "null"),
		chunkOf(`{}`, `"stop"`),
		chunkOf(`{"content":"last"}`, `"length"`),
		chunkOf(`{"reasoning_content":"hm","content":null}`, "null"),
		chunkOf(`{"refusal":"no"}`, "null"),
		chunkOf(`{"content":"a","unknown":{"b":[1]}}`, "null"),
		chunkOf(`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}`, "null"),
		strings.Replace(chunkOf(`{"content":"a"}`, "null"), `{"id"`, `{"usage":null,"x":1,"id"`, 1),
		strings.Replace(chunkOf(`{"content":"a"}`, "null"), `"index":0`, `"logprobs":null,"index":0`, 1),
		strings.ReplaceAll(chunkOf(`{"content":"a"}`, "null"), `,`, ` , `),
	} {
		c := mended(t, data)[0]
		require.Equal(t, data, string(c.Data))
	}
}

func TestMend(t *testing.T) {
	right := chunkOf(`{"content":"a"}`, "null")
	head, tail, _ := strings.Cut(right, `"choices":`)
	with := func(choices string) string { return head + `"choices":` + choices + `}` }
	require.NotEmpty(t, tail)
	for _, tt := range []struct{ name, event, want string }{
		{"another id", strings.Replace(right, `"i"`, `"other"`, 1), right},
		{"no id, no object, no created, no model", `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`, right},
		{"created as a float", strings.Replace(right, `"created":1`, `"created":1.0`, 1), right},
		{"another object", strings.Replace(right, `chat.completion.chunk`, `chat.completion`, 1), right},
		{"finish reason empty", chunkOf(`{"content":"a"}`, `""`), right},
		{"finish reason as the word null", chunkOf(`{"content":"a"}`, `"null"`), right},
		{"finish reason left out", with(`[{"index":0,"delta":{"content":"a"}}]`), right},
		{"finish reason as a number", chunkOf(`{}`, `1`), chunkOf(`{}`, `"stop"`)},
		{"finish reason of another dialect", chunkOf(`{}`, `"end_turn"`), chunkOf(`{}`, `"stop"`)},
		{"finish reason nobody knows", chunkOf(`{}`, `"tired"`), chunkOf(`{}`, `"tired"`)},
		{"index left out", with(`[{"delta":{"content":"a"},"finish_reason":null}]`), right},
		{"index as a string", with(`[{"index":"0","delta":{"content":"a"},"finish_reason":null}]`), right},
		{"only choice 0", with(`[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"},"finish_reason":null}]`), right},
		{"role again", chunkOf(`{"role":"assistant","content":"a"}`, "null"), right},
		{"role null", chunkOf(`{"role":null,"content":"a"}`, "null"), right},
		{"error null", strings.Replace(right, `{"id"`, `{"error":null,"id"`, 1), right},
		{"content as parts", chunkOf(`{"content":[{"type":"text","text":"a"}]}`, "null"), right},
		{"content as one part", chunkOf(`{"content":{"type":"text","text":"a"}}`, "null"), right},
		{"content as strings", chunkOf(`{"content":["a",""]}`, "null"), right},
		{
			"thinking as parts", chunkOf(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}`, "null"),
			chunkOf(`{"content":"a","reasoning_content":"hm"}`, "null"),
		},
		{"content as a number", chunkOf(`{"content":1}`, "null"), chunkOf(`{}`, "null")},
		{"reasoning", chunkOf(`{"reasoning":"hm"}`, "null"), chunkOf(`{"reasoning_content":"hm"}`, "null")},
		{"thinking", chunkOf(`{"thinking":"hm"}`, "null"), chunkOf(`{"reasoning_content":"hm"}`, "null")},
		{"the first reasoning that isn't empty", chunkOf(`{"reasoning_content":"","reasoning":"hm"}`, "null"), chunkOf(`{"reasoning_content":"hm"}`, "null")},
		{"reasoning twice", chunkOf(`{"reasoning_content":"hm","reasoning":"hm"}`, "null"), chunkOf(`{"reasoning_content":"hm"}`, "null")},
		{"reasoning empty", chunkOf(`{"reasoning":"","content":"a"}`, "null"), right},
		{"message for delta", with(`[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":null}]`), right},
		{"message beside an empty delta", with(`[{"index":0,"delta":{},"message":{"content":"a"},"finish_reason":null}]`), right},
		{"text of a completion", with(`[{"index":0,"text":"a","finish_reason":null}]`), right},
		{"no delta at all", with(`[{"index":0,"finish_reason":"stop"}]`), chunkOf(`{}`, `"stop"`)},
		{
			"unknown members stay", strings.Replace(chunkOf(`{"role":"assistant","content":"a","reasoning_details":[1],"x":1.10}`, "null"), `{"id"`, `{"citations":["u"],"id"`, 1),
			`{"id":"i","object":"chat.completion.chunk","created":1,"model":"x","citations":["u"],"choices":[{"index":0,"delta":{"content":"a","reasoning_details":[1],"x":1.10},"finish_reason":null}]}`,
		},
		{
			"logprobs stay", with(`[{"delta":{"content":"a"},"logprobs":{"content":[]},"finish_reason":null}]`),
			with(`[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[]},"finish_reason":null}]`),
		},
		{"usage goes", strings.Replace(right, `{"id"`, `{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"id"`, 1), right},
		{"line ends go", strings.ReplaceAll(right, ",", ",\n"), right},
		{"no UTF-8", strings.Replace(right, `"a"`, "\"a\xff\"", 1), strings.Replace(right, `"a"`, "\"a\ufffd\"", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, string(mended(t, tt.event)[0].Data)) })
	}
}

func TestMendFirstChunk(t *testing.T) {
	for _, tt := range []struct{ name, event, want string }{
		{"right", chunkOf(`{"role":"assistant","content":""}`, "null"), chunkOf(`{"role":"assistant","content":""}`, "null")},
		{"no role", chunkOf(`{"content":"a"}`, "null"), chunkOf(`{"role":"assistant","content":"a"}`, "null")},
		{"another role", chunkOf(`{"role":"model","content":"a"}`, "null"), chunkOf(`{"role":"assistant","content":"a"}`, "null")},
		{
			"a whole answer", `{"id":"i","object":"chat.completion","created":1,"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`,
			chunkOf(`{"role":"assistant","content":"a"}`, `"stop"`),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mender{}
			c, err := m.take([]byte(tt.event))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(c.Data))
		})
	}
	t.Run("what all chunks have is made where it is missing", func(t *testing.T) {
		for _, event := range []string{
			`{"choices":[{"delta":{"content":"a"}}]}`,
			`{"id":"","object":"","created":0,"model":"","choices":[{"delta":{"content":"a"}}]}`,
			`{"id":null,"created":null,"model":null,"choices":[{"delta":{"content":"a"}}]}`,
			`{"id":5,"created":"soon","model":{},"choices":[{"delta":{"content":"a"}}]}`,
		} {
			m := mender{asked: "asked"}
			c, err := m.take([]byte(event))
			require.NoError(t, err)
			require.Regexp(t, `^chatcmpl-.{10,}`, gjson.GetBytes(c.Data, "id").Str)
			require.Greater(t, gjson.GetBytes(c.Data, "created").Int(), int64(1_700_000_000))
			require.Equal(t, "asked", gjson.GetBytes(c.Data, "model").Str)
		}
	})
}

func TestMendDropsWhatSaysNothing(t *testing.T) {
	for _, event := range []string{
		`{"id":"","choices":[],"prompt_filter_results":[]}`,
		`{"id":"i","object":"chat.completion.chunk","sla_metrics":{}}`,
		`{"id":"i","object":"chat.completion.chunk","choices":null}`,
		`{}`,
		`{"choices":[{"index":1,"delta":{"content":"other"}}]}`,
		`{"choices":[null]}`,
		`{"choices":{}}`,
	} {
		c := mended(t, event)[0]
		require.Empty(t, c.Data, event)
		require.Empty(t, c.Usage, event)
	}
}

func TestMendAfterTheFinish(t *testing.T) {
	stop := chunkOf(`{}`, `"stop"`)
	got := mended(t, chunkOf(`{"content":"a"}`, "null"), stop, stop, chunkOf(`{"content":""}`, "null"), chunkOf(`{"content":"b"}`, `"stop"`))
	require.Equal(t, stop, string(got[1].Data))
	require.Empty(t, got[2].Data, "a second finish reason")
	require.Empty(t, got[3].Data, "an empty delta")
	require.Equal(t, chunkOf(`{"content":"b"}`, "null"), string(got[4].Data), "text isn't lost")
	require.Empty(t, got[4].Finish)
}

// A message that repeats the whole answer beside the deltas is no second answer.
func TestMendIgnoresARepeatedMessage(t *testing.T) {
	both := func(delta, message string) string {
		return `{"id":"i","choices":[{"index":0,"delta":{"content":"` + delta + `"},"message":{"content":"` + message + `"},"finish_reason":null}]}`
	}
	got := mended(t, both("a", "a"), both("b", "ab"), both("", "ab"))
	require.Equal(t, chunkOf(`{"content":"a"}`, "null"), string(got[0].Data))
	require.Equal(t, chunkOf(`{"content":"b"}`, "null"), string(got[1].Data))
	require.Equal(t, chunkOf(`{"content":""}`, "null"), string(got[2].Data))
}

func TestMendSignal(t *testing.T) {
	for delta, want := range map[string]Signal{
		`{}`: SignalNone, `{"role":"assistant"}`: SignalNone, `{"content":""}`: SignalNone, `{"content":null}`: SignalNone,
		`{"reasoning_content":""}`: SignalNone, `{"content":[]}`: SignalNone, `{"tool_calls":[]}`: SignalNone, `{"tool_calls":null}`: SignalNone,
		`{"refusal":""}`: SignalNone, `{"obfuscation":"x"}`: SignalNone, `{"content":[{"type":"text","text":""}]}`: SignalNone,
		`{"content":"a"}`: SignalContent, `{"content":" "}`: SignalContent, `{"refusal":"no"}`: SignalContent,
		`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}`: SignalContent,
		`{"function_call":{"name":"f"}}`: SignalContent, `{"content":[{"type":"text","text":"a"}]}`: SignalContent,
		`{"reasoning_content":"a"}`: SignalReasoning, `{"reasoning":"a"}`: SignalReasoning, `{"reasoning_content":"","reasoning":"a"}`: SignalReasoning,
		`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}`: SignalReasoning,
		`{"content":"","reasoning_content":"a"}`:                                    SignalReasoning, `{"content":"a","reasoning_content":"b"}`: SignalContent,
	} {
		require.Equal(t, want, mended(t, chunkOf(delta, "null"))[0].Signal, delta)
	}
}

func TestMendErrors(t *testing.T) {
	for _, tt := range []struct {
		name, event string
		want        Kind
		status      int
	}{
		{"object", `{"error":{"message":"x","type":"server_error"}}`, KindServerError, 0},
		{"string", `{"error":"x"}`, KindServerError, 0},
		{"beside choices", `{"choices":[{"index":0,"delta":{"content":"a"}}],"error":{"code":429,"message":"x"}}`, KindRateLimited, 429},
		{"beside a finish reason of error", `{"choices":[{"delta":{},"finish_reason":"error"}],"error":{"code":502,"message":"x"}}`, KindServerError, 502},
		{"a finish reason alone", chunkOf(`{}`, `"error"`), KindServerError, 0},
		{"overload as a finish reason", chunkOf(`{"content":"a"}`, `"insufficient_system_resource"`), KindOverloaded, 0},
		{"DashScope's shape", `{"code":"DataInspectionFailed","message":"x","request_id":"r"}`, KindContentPolicy, 0},
		{"vLLM's shape", `{"object":"error","message":"x","type":"BadRequestError","code":400}`, KindBadRequest, 400},
		{"a detail", `{"detail":"x"}`, KindServerError, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mender{}
			_, err := m.take([]byte(tt.event))
			e := AsError(err)
			require.Equal(t, tt.want.String(), e.Kind.String())
			require.Equal(t, tt.status, e.Status)
		})
	}
	c := mended(t, `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"error":{"code":400,"message":"Token limit reached"}}`)[0]
	require.Equal(t, "length", c.Finish, "an answer that ended for lack of room is one, whatever stands beside it")
}

func TestMendToolCalls(t *testing.T) {
	piece := func(calls string) string { return chunkOf(`{"tool_calls":[`+calls+`]}`, "null") }
	begin := `{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}`
	for _, tt := range []struct {
		name   string
		events []string
		want   []string // "id name arguments" of each call, pieces merged as strict clients do
		same   bool     // all travel as the same bytes
	}{
		{"right", []string{begin, `{"index":0,"function":{"arguments":"{}"}}`}, []string{"c1 f {}"}, true},
		{"empty id and name again", []string{begin, `{"index":0,"id":"","function":{"name":"","arguments":"{}"}}`}, []string{"c1 f {}"}, false},
		{"null id and name again", []string{begin, `{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{}"}}`}, []string{"c1 f {}"}, false},
		{"id and name again", []string{begin, `{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}`}, []string{"c1 f {}"}, false},
		{"no index", []string{`{"id":"c1","function":{"name":"f","arguments":"{}"}}`}, []string{"c1 f {}"}, false},
		{"no index in the next piece", []string{begin, `{"function":{"arguments":"{}"}}`}, []string{"c1 f {}"}, false},
		{"no indexes, by id", []string{`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`, `{"id":"a","function":{"arguments":"1"}}`}, []string{"a f 1", "b g "}, false},
		{"no ids, no indexes", []string{`{"function":{"name":"f","arguments":{"a": 1}}},{"function":{"name":"g","arguments":{}}}`}, []string{`? f {"a": 1}`, "? g {}"}, false},
		{"0 for both", []string{begin, `{"index":0,"id":"c2","type":"function","function":{"name":"g","arguments":"1"}}`, `{"index":0,"function":{"arguments":"2"}}`}, []string{"c1 f ", "c2 g 12"}, false},
		{"two in turn", []string{begin, `{"index":1,"id":"c2","type":"function","function":{"name":"g","arguments":"1"}}`, `{"index":0,"function":{"arguments":"2"}}`}, []string{"c1 f 2", "c2 g 1"}, true},
		{"arguments null", []string{`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":null}}`}, []string{"a f "}, false},
		{"no type", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`}, []string{"a f "}, false},
		{"index as a string", []string{`{"index":"0","id":"a","type":"function","function":{"name":"f","arguments":""}}`}, []string{"a f "}, false},
		{"indexes from 1", []string{`{"index":1,"id":"a","type":"function","function":{"name":"f","arguments":""}}`, `{"index":1,"function":{"arguments":"1"}}`, `{"index":2,"id":"b","type":"function","function":{"name":"g","arguments":"2"}}`, `{"index":1,"function":{"arguments":"3"}}`}, []string{"a f 13", "b g 2"}, false},
		{"indexes with a gap", []string{begin, `{"index":1000000,"id":"b","type":"function","function":{"name":"g","arguments":"2"}}`}, []string{"c1 f ", "b g 2"}, false},
		{"the name in pieces", []string{`{"index":0,"id":"a","type":"function","function":{"name":"get_","arguments":""}}`, `{"index":0,"function":{"name":"time","arguments":"1"}}`}, []string{"a get_time 1"}, true},
		{"the name comes later", []string{`{"index":0,"id":"a","type":"function"}`, `{"index":0,"function":{"name":"f","arguments":""}}`}, []string{"a f "}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := make([]string, len(tt.events))
			for i, calls := range tt.events {
				events[i] = piece(calls)
			}
			var data []string
			for _, c := range mended(t, events...) {
				data = append(data, string(c.Data))
			}
			require.Equal(t, tt.same, slices.Equal(data, events), "%s", data)
			got := mergeCalls(t, data)
			for i := range got {
				if strings.HasPrefix(tt.want[i], "?") {
					require.Regexp(t, `^call_`, got[i])
					_, rest, _ := strings.Cut(got[i], " ")
					got[i] = "? " + rest
				}
			}
			require.Equal(t, tt.want, got)
		})
	}
	t.Run("unknown members stay", func(t *testing.T) {
		c := mended(t, piece(`{"id":"a","extra_content":{"s":1},"function":{"name":"f","arguments":"","x":2}}`))[0]
		require.Equal(t, piece(`{"index":0,"id":"a","extra_content":{"s":1},"type":"function","function":{"name":"f","arguments":"","x":2}}`), string(c.Data))
	})
}

// mergeCalls does what a client does that trusts the schema: it takes index as it is, joins names and arguments, and
// takes the id and the type once.
func mergeCalls(t *testing.T, chunks []string) []string {
	t.Helper()
	type call struct{ id, name, arguments string }
	var calls []call
	for _, c := range chunks {
		for _, p := range gjson.Get(c, "choices.0.delta.tool_calls").Array() {
			require.Equal(t, gjson.Number, p.Get("index").Type)
			i := int(p.Get("index").Int())
			if i == len(calls) {
				require.Equal(t, "function", p.Get("type").Str)
				calls = append(calls, call{})
			}
			require.Less(t, i, len(calls))
			calls[i].id += p.Get("id").Str
			calls[i].name += p.Get("function.name").Str
			calls[i].arguments += p.Get("function.arguments").Str
		}
	}
	var out []string
	for _, c := range calls {
		out = append(out, c.id+" "+c.name+" "+c.arguments)
	}
	return out
}

func TestMendUsage(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"right", `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":0.5}`, `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":0.5}`},
		{"no total", `{"prompt_tokens":1,"completion_tokens":2}`, `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`},
		{"floats", `{"prompt_tokens":1.0,"completion_tokens":2.0,"total_tokens":3.0}`, `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`},
		{"nulls", `{"prompt_tokens":1,"completion_tokens":null,"total_tokens":null}`, `{"prompt_tokens":1}`},
		{"below zero", `{"prompt_tokens":-1,"completion_tokens":2,"total_tokens":1}`, `{"completion_tokens":2}`},
		{"the last below zero", `{"prompt_tokens":1,"completion_tokens":2,"completion_tokens":-2,"total_tokens":3,"cost":0.5}`, `{"prompt_tokens":1,"cost":0.5}`},
		{"of another world", `{"prompt_tokens":1000000001,"completion_tokens":2,"total_tokens":1000000003}`, `{"completion_tokens":2}`},
		{"beyond numbers", `{"prompt_tokens":99999999999999999999,"completion_tokens":1e400,"total_tokens":1e30}`, ""},
		{"no numbers", `{"prompt_tokens":"many","completion_tokens":{},"total_tokens":true}`, ""},
		{"texts", `{"prompt_tokens":"1","completion_tokens":"2"}`, `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`},
		{"other names", `{"input_tokens":1,"output_tokens":2}`, `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"input_tokens":1,"output_tokens":2}`},
		{
			"cache hits beside", `{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_cache_hit_tokens":4}`,
			`{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4},"prompt_cache_hit_tokens":4}`,
		},
		{
			"reasoning only in the total", `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":20,"completion_tokens_details":{"reasoning_tokens":8}}`,
			`{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20,"completion_tokens_details":{"reasoning_tokens":8}}`,
		},
		{"nothing", `{}`, ""},
		{"null", `null`, ""},
		{"no object", `[1]`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, string(mendUsage([]byte(tt.in)))) })
	}
	const u = `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`
	for name, event := range map[string]string{
		"a chunk of its own":   `{"id":"i","object":"chat.completion.chunk","choices":[],"usage":` + u + `}`,
		"beside a choice":      `{"choices":[{"index":0,"delta":{}}],"usage":` + u + `}`,
		"within the choice":    `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":` + u + `}]}`,
		"in Groq's own member": `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":` + u + `}}`,
	} {
		require.Equal(t, u, string(mended(t, event)[0].Usage), name)
	}
}

func TestText(t *testing.T) {
	content, reasoning := Text([]byte(chunkOf(`{"content":"a\n\u00e9","reasoning_content":"b"}`, "null")))
	require.Equal(t, []string{"a\né", "b"}, []string{content, reasoning})
	content, reasoning = Text([]byte(`{"choices":[]}`))
	require.Empty(t, content+reasoning)
	content, _ = Text(nil)
	require.Empty(t, content)
}

// Whatever a provider sends, what comes out is one valid line of JSON in OpenAI's schema, or nothing, or an error.
func FuzzMend(f *testing.F) {
	f.Add([]byte(chunkOf(`{"role":"assistant","content":[{"thinking":[{"text":"x"}]}],"tool_calls":[{"function":{"name":"f","arguments":{}}}]}`, "3")), []byte(`{}`))
	f.Add([]byte(chunkOf(`{"reasoning":"x"}`, `"x"`)), []byte(`{"choices":[{"message":{"content":"a"},"usage":{"input_tokens":"1"}}],"created":"x"}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		m := mender{asked: "m"}
		roles, finishes := 0, 0
		var id string
		for _, data := range [][]byte{first, second, first} {
			if !validObject(data) {
				return
			}
			c, err := m.take(data)
			if err != nil {
				require.NotEqual(t, KindNone, AsError(err).Kind)
				return
			}
			require.True(t, c.Usage == nil || validObject(c.Usage), "%s", c.Usage)
			if c.Data == nil {
				continue
			}
			require.True(t, validObject(c.Data), "%s", c.Data)
			require.NotContains(t, string(c.Data), "\n")
			parsed := gjson.ParseBytes(c.Data)
			if id == "" {
				id = parsed.Get("id").Raw
			}
			require.Equal(t, id, parsed.Get("id").Raw)
			require.Equal(t, "chat.completion.chunk", parsed.Get("object").Str)
			require.Len(t, parsed.Get("choices").Array(), 1)
			if parsed.Get("choices.0.delta.role").Str == "assistant" {
				roles++
			}
			if parsed.Get("choices.0.finish_reason").Type == gjson.String {
				finishes++
			}
			require.Equal(t, 1, roles)
			require.LessOrEqual(t, finishes, 1)
		}
	})
}
