package providers

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

const (
	plainHost  = "https://api.example.com/v1"
	routerHost = "https://OpenRouter.ai/api/v1"
	googleHost = "https://generativelanguage.googleapis.com:443/v1beta/openai"
)

func TestCleanHistory(t *testing.T) {
	thinks, cannot := Options{}, Options{NoThinking: true}
	allows := func(o Options, names ...string) Options { o.Allow = names; return o }
	// turn is a history of one question and an answer with the given members.
	turn := func(members string) string {
		return `[{"role":"user","content":"q"}, {"role":"assistant",` + members + `} ]`
	}
	const signed = `"content":"a","reasoning_details":[{"type":"reasoning.text","signature":"s"}]`
	const signature = `"extra_content":{"google":{"thought_signature":"s"}}`
	const call = `"id":"c","type":"function","function":{"name":"f","arguments":"{\"extra_content\":1}"}`
	for _, tt := range []struct {
		name       string
		options    Options
		base       string
		have, want string
	}{
		{"reasoning for one who can't think", cannot, plainHost, turn(`"reasoning_content":"hm","content":"a"`), turn(`"content":"a"`)},
		{"the other name for it", cannot, plainHost, turn(`"content":"a","reasoning":"hm"`), turn(`"content":"a"`)},
		{"both, in the middle", cannot, plainHost, turn(`"content":"a","reasoning":"hm","reasoning_content":null,"name":"n"`), turn(`"content":"a","name":"n"`)},
		{"reasoning for one who thinks", thinks, plainHost, turn(`"reasoning_content":"hm","reasoning":"hm","content":"a"`), turn(`"reasoning_content":"hm","reasoning":"hm","content":"a"`)},
		{"reasoning that is allowed", allows(cannot, "reasoning_content"), plainHost, turn(`"reasoning_content":"hm","reasoning":"hm"`), turn(`"reasoning_content":"hm"`)},
		{"signed thoughts", thinks, plainHost, turn(signed), turn(`"content":"a"`)},
		{"signed thoughts towards OpenRouter", thinks, routerHost, turn(signed), turn(signed)},
		{"signed thoughts towards one who looks like it", thinks, "https://openrouter.ai.example.com", turn(signed), turn(`"content":"a"`)},
		{"signed thoughts that are allowed", allows(thinks, "reasoning_details"), plainHost, turn(signed), turn(signed)},
		{"a signature", thinks, plainHost, turn(`"content":"a",` + signature), turn(`"content":"a"`)},
		{
			"signatures of calls", thinks, plainHost,
			turn(`"content":null,"tool_calls":[{` + call + `,` + signature + `}, {` + signature + ` , ` + call + `}]`),
			turn(`"content":null,"tool_calls":[{` + call + `}, { ` + call + `}]`),
		},
		{"signatures towards Gemini", thinks, googleHost, turn(`"tool_calls":[{` + call + `,` + signature + `}],` + signature), turn(`"tool_calls":[{` + call + `,` + signature + `}],` + signature)},
		{"signatures that are allowed", allows(thinks, "extra_content"), plainHost, turn(`"tool_calls":[{` + call + `,` + signature + `}]`), turn(`"tool_calls":[{` + call + `,` + signature + `}]`)},
		{"everything at once", cannot, plainHost, turn(signature + `,"reasoning":"r",` + signed + `,"tool_calls":[{` + signature + `}]`), turn(`"content":"a","tool_calls":[{}]`)},
		{
			"first of all", cannot, plainHost,
			`[{ "reasoning" : "r" , "reasoning_content" : "r" ,"role":"assistant" , "content":"a" }]`, `[{"role":"assistant" , "content":"a" }]`,
		},
		{"only of the assistant", cannot, plainHost, `[{"role":"user","reasoning":"mine"},{"role":"tool","reasoning_details":[]}]`, `[{"role":"user","reasoning":"mine"},{"role":"tool","reasoning_details":[]}]`},
		{"a role with escapes", cannot, plainHost, `[{"role":"assist\u0061nt","reasoning":"r"}]`, `[{"role":"assist\u0061nt"}]`},
		{"words of the content", cannot, plainHost, turn(`"content":"\"reasoning\":1","x":{"reasoning":1}`), turn(`"content":"\"reasoning\":1","x":{"reasoning":1}`)},
		{
			"all other bytes", cannot, plainHost,
			turn(`"name" :"n\u00e9","x_note":12345678901234567890, "reasoning":"r", "content":[ {"type":"text","text":"<b>","reasoning":1} ],"y":1.10`),
			turn(`"name" :"n\u00e9","x_note":12345678901234567890, "content":[ {"type":"text","text":"<b>","reasoning":1} ],"y":1.10`),
		},
		{"no array", cannot, plainHost, `{"role":"assistant","reasoning":"r"}`, `{"role":"assistant","reasoning":"r"}`},
		{"no messages", cannot, plainHost, `["reasoning",1,[{"role":"assistant","reasoning":"r"}]]`, `["reasoning",1,[{"role":"assistant","reasoning":"r"}]]`},
		{"no list of calls", cannot, plainHost, turn(`"tool_calls":{"extra_content":1},"reasoning":1`), turn(`"tool_calls":{"extra_content":1}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(tt.have)), tt.have)
			call := Call{Request: &Request{Raw: []byte(`{"messages":` + tt.have + `}`)}, Model: "m", Options: tt.options}
			want := `{"messages":` + tt.want + `,"model":"m","stream":true,"stream_options":{"include_usage":true}}`
			require.Equal(t, want, string(openAIBody(call, ThinkingByNone, tt.base)))
		})
	}
}

// At the wire: the candidate's own base URL decides, and the shared request stays as it was.
func TestHistoryAtTheWire(t *testing.T) {
	const raw = `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning_content":"hm","reasoning_details":[1]},{"role":"user","content":"r"}]}`
	for name, tt := range map[string]struct {
		options Options
		want    string
	}{
		"thinks":      {Options{}, `{"role":"assistant","content":"a","reasoning_content":"hm"}`},
		"can't think": {Options{NoThinking: true}, `{"role":"assistant","content":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			u := providertest.Start(t, providertest.OpenAI)
			tr := newTransport()
			t.Cleanup(tr.CloseIdleConnections)
			p, err := New(Settings{Name: "mine", Dialect: "openai", BaseURL: routerHost, Transport: tr})
			require.NoError(t, err)
			call := nativeCallOf(raw)
			call.BaseURL, call.Options = u.URL, tt.options
			h, _ := nativeAsk(t, p, call)
			require.ErrorIs(t, h.err, io.EOF)
			require.Contains(t, string(u.Seen().Body), `"q"},`+tt.want+`,{"role"`)
			require.Equal(t, raw, string(call.Request.Raw))
		})
	}
}

// Whatever the messages are, what is left is JSON that has lost nothing but foreign members.
func FuzzCleanHistory(f *testing.F) {
	f.Add([]byte(`[{"reasoning":1,"role":"assistant","tool_calls":[{"extra_content":{},"id":"c"}],"reasoning_details":[]}]`))
	f.Add([]byte(`[{"role":"assistant","reasoning":1},{"role":"assistant","a":{"b":[]},"reasoning":{"c":"]}"}}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		got := cleanHistory(raw, Options{NoThinking: true}, plainHost)
		require.True(t, json.Valid(got), "%s", got)
		require.Equal(t, string(got), string(cleanHistory(got, Options{NoThinking: true}, plainHost)), "cleaned twice")
		require.Equal(t, string(raw), string(cleanHistory(raw, Options{Allow: foreign(Options{NoThinking: true}, "")}, plainHost)))
	})
}

// longHistory is 200 messages of 1 KB, the answers with the given members.
func longHistory(members string) []byte {
	text := strings.Repeat("some words \\n ", 75)
	pair := `{"role":"user","content":"` + text + `"},{"role":"assistant","content":"` + text + `"` + members + `},`
	return []byte("[" + strings.Repeat(pair, 100) + `{"role":"user","content":"q"}]`)
}

func TestCleanHistoryOfOthersCostsNothing(t *testing.T) {
	messages := longHistory("")
	require.Zero(t, testing.AllocsPerRun(10, func() { cleanHistory(messages, Options{NoThinking: true}, plainHost) }))
	require.Same(t, &messages[0], &cleanHistory(messages, Options{NoThinking: true}, plainHost)[0])
}

// BenchmarkCleanHistory is what a history of 200 KB costs: one that has nothing foreign, and one in which every
// answer has; walk is the least that any other reading of it would cost.
func BenchmarkCleanHistory(b *testing.B) {
	plain, thoughts := longHistory(""), longHistory(`,"reasoning_content":"hm","reasoning_details":[{"type":"x"}]`)
	for _, bench := range []struct {
		name string
		run  func()
	}{
		{"nothing foreign", func() { cleanHistory(plain, Options{NoThinking: true}, plainHost) }},
		{"foreign", func() { cleanHistory(thoughts, Options{NoThinking: true}, plainHost) }},
		{"walk", func() { valueEnd(plain, 0) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				bench.run()
			}
		})
	}
}

func TestHistoryIsCutOnlyWhereForeign(t *testing.T) {
	messages := longHistory(`,"reasoning_content":"hm","reasoning_details":[{"type":"x"}]`)
	got := cleanHistory(messages, Options{NoThinking: true}, plainHost)
	require.True(t, bytes.Equal(longHistory(""), got))
}
