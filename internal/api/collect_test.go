package api

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"pgregory.net/rapid"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// collected sends chunks through the handler and gives the JSON answer.
func collected(t *testing.T, chunks ...string) gjson.Result {
	t.Helper()
	f := &fake{}
	for _, c := range chunks {
		f.steps = append(f.steps, step{chunk: providers.Chunk{Data: []byte(c), Finish: gjson.Get(c, "choices.0.finish_reason").Str}})
	}
	w := post(f.open(), ask(""))
	require.Equal(t, 200, w.Code, w.Body.String())
	require.True(t, gjson.Valid(w.Body.String()), w.Body.String())
	return gjson.Parse(w.Body.String())
}

func TestJSON(t *testing.T) {
	f := &fake{steps: hello()}
	w := post(f.open(), ask(""))
	require.Equal(t, 200, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, "model", w.Header().Get("Holdfast-Tier"))
	require.Equal(t, "b", w.Header().Get("Holdfast-Candidate"))
	require.Equal(t, "2", w.Header().Get("Holdfast-Attempts"))
	body := w.Body.String()
	requireMeta(t, wholeTrace, gjson.Get(body, "holdfast").Value().(map[string]any))
	rest, err := sjson.Delete(body, "holdfast")
	require.NoError(t, err)
	require.Equal(t, `{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m-1",`+
		`"choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1}}}`, rest)

	got := <-f.finished
	require.Equal(t, routing.HoldComplete, got.req.Hold)
	require.Equal(t, len(body), got.done.Bytes)
	require.True(t, got.done.Complete)
	require.Equal(t, "Hello", got.done.Text)
	require.Equal(t, "stop", got.done.Finish)
	require.Positive(t, f.source.closed)
}

func TestCollectMessage(t *testing.T) {
	for _, c := range []struct {
		name   string
		deltas []string
		want   string // the message
	}{
		{
			"unicode over the seams",
			[]string{`{"content":"你"}`, `{"content":"\u597d \ud83d"}`, `{"content":"\ude00\n\"q\""}`},
			`{"role":"assistant","content":"你好 😀\n\"q\"","refusal":null}`,
		},
		{
			"nulls and blanks",
			[]string{`{"role":"assistant","content":null}`, `{"content":"a"}`, `{"content":null}`, `{"content":""}`, `{"content":"b"}`},
			`{"role":"assistant","content":"ab","refusal":null}`,
		},
		{
			"reasoning",
			[]string{`{"reasoning_content":"hm "}`, `{"reasoning_content":"so"}`, `{"content":"yes"}`},
			`{"role":"assistant","content":"yes","refusal":null,"reasoning_content":"hm so"}`,
		},
		{
			"reasoning only",
			[]string{`{"reasoning":"h"}`, `{"reasoning":"m"}`},
			`{"role":"assistant","content":"","refusal":null,"reasoning":"hm"}`,
		},
		{
			"refusal",
			[]string{`{"refusal":"I "}`, `{"refusal":"can't"}`},
			`{"role":"assistant","content":null,"refusal":"I can't"}`,
		},
		{"tool call in pieces", []string{
			`{"content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}`,
			`{"tool_calls":[{"index":0,"id":"","type":"","function":{"name":"","arguments":":\"\u00e9\"}"}}]}`,
		}, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"a\":\"é\"}"}}]}`},
		{"tool's name in pieces", []string{
			`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"get_","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"name":"time","arguments":"{}"}}]}`,
		}, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_time","arguments":"{}"}}]}`},
		{"two tool calls, mixed", []string{
			`{"tool_calls":[{"index":1,"id":"c2","function":{"name":"g","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"["}},{"index":1,"function":{"arguments":"}"}}]}`,
			`{"content":"","tool_calls":[{"index":0,"function":{"arguments":"]"}}]}`,
		}, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"f","arguments":"[]"}},
			{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]}`},
		{"tool calls without index", []string{
			`{"tool_calls":[{"id":"c1","function":{"name":"f","arguments":"1"}}]}`,
			`{"tool_calls":[{"function":{"arguments":"2"}}]}`,
			`{"tool_calls":[{"id":"c2","function":{"name":"g","arguments":"3"}}]}`,
			`{"tool_calls":[{"id":"c2","function":{"arguments":"4"}}]}`,
		}, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"f","arguments":"12"}},
			{"id":"c2","type":"function","function":{"name":"g","arguments":"34"}}]}`},
		{
			"text beside a tool call",
			[]string{`{"content":"wait"}`, `{"tool_calls":[{"index":0,"id":"c","function":{"name":"f"},"extra":{"sig":"x"}}]}`},
			`{"role":"assistant","content":"wait","refusal":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""},"extra":{"sig":"x"}}]}`,
		},
		{
			"legacy call",
			[]string{`{"function_call":{"name":"f","arguments":"{"}}`, `{"function_call":{"arguments":"}"}}`},
			`{"role":"assistant","content":null,"refusal":null,"function_call":{"name":"f","arguments":"{}"}}`,
		},
		{
			"annotations",
			[]string{`{"content":"a","annotations":[{"u":1}]}`, `{"annotations":[]}`, `{"annotations":[{"u":2},{"u":3}]}`},
			`{"role":"assistant","content":"a","refusal":null,"annotations":[{"u":1},{"u":2},{"u":3}]}`,
		},
		{
			"unknown fields",
			[]string{`{"content":"a","mood":"sad","n":1,"o":{"x":1},"l":[1],"z":null}`, `{"mood":"glad","n":12345678901234567890,"o":{"y":2},"l":[1],"mood2":""}`, `{"n":null,"mood":""}`},
			`{"role":"assistant","content":"a","refusal":null,"mood":"glad","n":12345678901234567890,"o":{"y":2},"l":[1,1],"z":null,"mood2":""}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var chunks []string
			for _, d := range c.deltas {
				chunks = append(chunks, chunkJSON(d, ""))
			}
			got := collected(t, append(chunks, chunkJSON(`{}`, "stop"))...)
			message := got.Get("choices.0.message").Raw
			require.JSONEq(t, c.want, message)
			for _, big := range []string{"12345678901234567890"} {
				require.Equal(t, strings.Contains(c.want, big), strings.Contains(message, big))
			}
		})
	}
}

func TestCollectAnswerFields(t *testing.T) {
	with := func(more, delta, choice, finish string) string {
		c := strings.Replace(chunkJSON(delta, finish), `"index":0,`, `"index":0,`+choice, 1)
		return strings.TrimSuffix(c, "}") + more + "}"
	}
	lp := func(token string) string {
		return `"logprobs":{"content":[{"token":"` + token + `","logprob":-0.1}],"refusal":null},`
	}
	got := collected(t,
		with(`,"system_fingerprint":"fp_1","service_tier":null,"citations":["u1"],"steps":[{"n":1}],"holdfast":{"tier":"cache"}`, `{"role":"assistant"}`, `"logprobs":null,`, ""),
		with(`,"citations":["u1"],"steps":[{"n":2}]`, `{"content":"ha"}`, lp("ha"), ""),
		with(`,"service_tier":"default","citations":["u1","u2"],"usage":null`, `{"content":"ha"}`, lp("ha"), ""),
		with(`,"system_fingerprint":"fp_2"`, `{}`, `"matched_stop":7,`, "length"),
	)
	require.Equal(t, `["ha","ha"]`, got.Get("choices.0.logprobs.content.#.token").Raw)
	require.Equal(t, gjson.Null, got.Get("choices.0.logprobs.refusal").Type)
	require.Equal(t, "length", got.Get("choices.0.finish_reason").Str)
	require.Equal(t, int64(7), got.Get("choices.0.matched_stop").Int())
	require.Equal(t, "fp_2", got.Get("system_fingerprint").Str)
	require.Equal(t, "default", got.Get("service_tier").Str)
	require.Equal(t, `["u1","u2"]`, got.Get("citations").Raw)
	require.Equal(t, `[{"n":1},{"n":2}]`, got.Get("steps").Raw)
	require.Equal(t, "model", got.Get("holdfast.tier").Str)
	require.True(t, got.Get("usage").IsObject())
	require.Equal(t, 1, strings.Count(got.Raw, `"holdfast"`))
	require.Equal(t, 1, strings.Count(got.Raw, `"object"`))
}

// TestJSONThatBreaks cannot happen, as JSON commits at completion; if it does, nothing is passed off as whole.
func TestJSONThatBreaks(t *testing.T) {
	f := &fake{steps: hello()[:1]}
	w := post(f.open(), ask(""))
	e := requireError(t, w, 502)
	require.Equal(t, "stream_truncated", e.Get("code").Str)
	require.Equal(t, "model", gjson.Get(w.Body.String(), "holdfast.tier").Str)
	require.False(t, (<-f.finished).done.Complete)
}

// TestTextIsKept is the property that matters most: however an answer is cut into pieces, its text comes out whole,
// as JSON and as a stream.
func TestTextIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.String()).Draw(t, "pieces")
		reasoning := rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "reasoning")
		f := &fake{steps: []step{data(`{"role":"assistant","content":""}`, "")}}
		add := func(name, text string) {
			quoted, err := json.Marshal(text)
			require.NoError(t, err)
			f.steps = append(f.steps, data(`{"`+name+`":`+string(quoted)+`}`, ""))
		}
		for _, r := range reasoning {
			add("reasoning_content", r)
		}
		for _, p := range pieces {
			add("content", p)
		}
		f.steps = append(f.steps, data(`{}`, "stop"))
		text := strings.Join(pieces, "")

		var body struct {
			Choices []struct {
				Message struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
				}
			}
		}
		require.NoError(t, json.Unmarshal(post(f.open(), ask("")).Body.Bytes(), &body))
		require.Equal(t, text, body.Choices[0].Message.Content)
		require.Equal(t, strings.Join(reasoning, ""), body.Choices[0].Message.Reasoning)
		require.Equal(t, text, (<-f.finished).done.Text)

		e, err := strict(post(f.open(), ask(streaming)).Body.String(), false)
		require.NoError(t, err)
		require.Equal(t, text, e.text)
		require.Equal(t, text, (<-f.finished).done.Text)
	})
}

// FuzzChunks sends two chunks of any JSON through both ways out: what comes out is whole JSON, whatever a provider
// puts into its chunks.
func FuzzChunks(f *testing.F) {
	for _, seed := range [][2]string{
		{chunkJSON(`{"role":"assistant","content":"\ud83d"}`, ""), chunkJSON(`{"content":"\ude00"}`, "stop")},
		{`{"choices":[{"delta":{"tool_calls":[{"index":3,"function":{"arguments":"a"}},{"id":"x"}]}}],"a":[1 , 2 ]}`, `{"a":[ ],"choices":[{"delta":{"tool_calls":[{"index":-1}]}}]}`},
		{`{ }`, `{"choices":[{"delta":null},{"logprobs":{"content":[]}}],"holdfast":1}`},
		{`{"choices":{"delta":{}}}`, `[]`},
		{`{"choices":[{"delta":{"content":{},"refusal":[],"x":"\\"}}]}`, `{"choices":[{"delta":{"content":"a","refusal":["b"],"x":"\""}}]}`},
		{`{"a":1e5,"b":[1],"c":[12]}`, `{"a":true,"b":[12],"c":[1]}`},
		{`{"\"":1,"":{}}`, `{"\"":[],"":""}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !json.Valid(a) || !json.Valid(b) || a[0] != '{' || b[0] != '{' {
			return
		}
		c := newCollector()
		var tl tally
		for _, chunk := range [][]byte{a, b} {
			c.add(chunk)
			tl.add(providers.Chunk{Data: chunk})
			spliced := splice(nil, chunk, describeTrace(&routing.Trace{}), tl.ours)
			require.True(t, json.Valid(spliced), "%s", spliced)
			require.True(t, strings.HasSuffix(string(spliced), "}"))
			event := string(frame(nil, spliced))
			require.NotContains(t, strings.TrimSuffix(event, "\n\n"), "\n")
			require.True(t, json.Valid([]byte(strings.TrimPrefix(event, "data: "))))
		}
		out := c.render([]byte(`{}`), describeTrace(&routing.Trace{}))
		require.True(t, json.Valid(out), "%s", out)
		_, _ = tl.content()
	})
}

// FuzzScan shows that the scanner sees what encoding/json sees, and comes to no harm on anything else.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[1,{"c":"}"}],"d":"\\\"","e":{}}`, `{ "a" : null , "b":true}`, `{`, `{"a"`, `{"a":"`, `"\`, `[1,[2],"]"]`, `[}`, `{"a":}`, `{"":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		type field struct{ key, value string }
		var got []field
		eachField(b, func(key, value []byte) { got = append(got, field{string(key), string(value)}) })
		var items []string
		eachItem(b, func(value []byte) { items = append(items, string(value)) })
		if !json.Valid(b) {
			return
		}
		dec := json.NewDecoder(strings.NewReader(string(b)))
		open, err := dec.Token()
		require.NoError(t, err)
		switch open {
		case json.Delim('{'):
			for _, g := range got {
				key, err := dec.Token()
				require.NoError(t, err)
				var value json.RawMessage
				require.NoError(t, dec.Decode(&value))
				require.Equal(t, string(value), g.value)
				var name string
				require.NoError(t, json.Unmarshal(quoted([]byte(g.key)), &name))
				require.Equal(t, key, name)
			}
			require.False(t, dec.More())
		case json.Delim('['):
			for _, item := range items {
				var value json.RawMessage
				require.NoError(t, dec.Decode(&value))
				require.Equal(t, string(value), item)
			}
			require.False(t, dec.More())
		default:
			require.Empty(t, got)
			require.Empty(t, items)
		}
	})
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"abcdef", 2},
		{"你好，世界", 5},
		{"你好 abc", 4},
		{`\u4f60\u597d`, 2},
		{`\u00e9\u00e9\u00e9`, 1},
		{`\uzzzz`, 2},
		{`\n\n`, 2},
		{`\`, 1},
		{"ñññ", 1},
		{"\xff\xff\xff", 3}, // not UTF-8: replacement characters
		{"😀", 1},
	} {
		var s, b estimate
		countText(&s, c.text)
		countText(&b, []byte(c.text))
		require.Equal(t, c.want, s.tokens(), "%q", c.text)
		require.Equal(t, s, b)
	}
}

func TestTokensOfARequest(t *testing.T) {
	base := decoded(t, ask("")).Tokens
	require.Equal(t, 4+9, base) // 27 letters
	for name, body := range map[string]string{
		"a tool":       ask(`"tools":[{"type":"function","function":{"name":"` + strings.Repeat("f", 100) + `"}}]`),
		"a schema":     ask(`"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`),
		"a message":    `{"messages":[{"role":"user","content":"How do bridges carry loads?"},{"role":"user","content":""}]}`,
		"an image":     `{"messages":[{"role":"user","content":[{"type":"text","text":"How do bridges carry loads?"},{"type":"image_url","image_url":{"url":"http://x"}}]}]}`,
		"a tool call":  `{"messages":[{"role":"user","content":"How do bridges carry loads?"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]}`,
		"a long image": `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:` + strings.Repeat("A", 99999) + `"}}]}]}`,
	} {
		n := decoded(t, body).Tokens
		require.Greater(t, n, base, name)
		require.Less(t, n, 1000, name)
	}
}

// TestNoEasternScriptIsOverlooked shows that what language skips has no Han, kana or Hangul.
func TestNoEasternScriptIsOverlooked(t *testing.T) {
	for r := range rune(firstEastern) {
		require.False(t, unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), "%U", r)
	}
	require.True(t, unicode.In(firstEastern, unicode.Hangul))
}

func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"How do bridges carry heavy loads?":      "en",
		"如何在家里种植番茄？":                             "zh",
		"用 Python 写一个 hello world":               "zh",
		"What does 你好 mean, and how is it said?": "en",
		"東京の天気は？":                                "en",
		"서울 天氣":                                  "en",
		"":                                       "en",
		"12 + 30 = ?":                            "en",
		"Wie geht’s?":                            "en",
	} {
		require.Equal(t, want, language(text), text)
	}
	last := decoded(t, `{"messages":[{"role":"user","content":"你好"},{"role":"assistant","content":"你好"},{"role":"user","content":"hello"},{"role":"tool","content":"再见"}]}`)
	require.Equal(t, "en", last.Language)
	require.Equal(t, "zh", decoded(t, `{"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"番茄"}]}]}`).Language)
	require.Equal(t, "en", decoded(t, `{"messages":[{"role":"system","content":"番茄"}]}`).Language)
}

// TestTheScriptEnds keeps the fake honest: it ends as a router's source does.
func TestTheScriptEnds(t *testing.T) {
	s := &script{ctx: t.Context(), steps: hello()[:1]}
	_, err := s.Next()
	require.NoError(t, err)
	_, err = s.Next()
	require.Equal(t, io.EOF, err)
}
