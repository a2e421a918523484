package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/api"
	"holdfast/internal/cache"
	"holdfast/internal/providers"
	"holdfast/internal/providers/providertest"
	"holdfast/internal/routing"
)

// decoded is the request that the API makes of a body: it goes to routing, which this stands in for.
type decoded struct{ req *routing.Request }

func (d *decoded) Prepare(context.Context)                           {}
func (d *decoded) Models(string) []routing.Listing                   { return nil }
func (d *decoded) Status(context.Context, string) (s routing.Status) { return s }
func (d *decoded) Answer(_ context.Context, r *routing.Request) *routing.Answer {
	d.req = r
	return routing.NewAnswer(routing.Trace{}, nothing{})
}

type nothing struct{}

func (nothing) Next() (c providers.Chunk, err error) { return c, io.EOF }
func (nothing) Close()                               {}

// asked is the question of a request with the given members.
func asked(t *testing.T, members string) cache.Question {
	t.Helper()
	d := &decoded{}
	w := httptest.NewRecorder()
	api.New(api.Settings{Anonymous: true}, api.Deps{Router: d}).ServeHTTP(w,
		httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader("{"+members+"}")))
	require.NotNil(t, d.req, w.Body.String())
	return question(d.req)
}

const plainQuestion = "How do bridges carry heavy loads?"

func messages(list ...string) string {
	return `"messages":[` + strings.Join(append(list, `{"role":"user","content":"`+plainQuestion+`"}`), ",") + `]`
}

func afterCalls(results ...string) string {
	return messages(append([]string{
		`{"role":"user","content":"look"}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"2","type":"function","function":{"name":"f","arguments":"{\"x\":2}"}}]}`,
	}, results...)...)
}

// Requests whose answers may differ are different questions: what was kept of one never answers the other.
func TestQuestionsApart(t *testing.T) {
	image := func(url string) string { return `{"type":"image_url","image_url":{"url":"` + url + `"}}` }
	words := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	user := func(parts ...string) string {
		return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
	}
	plain := messages()
	tests := []struct{ name, one, other string }{
		{"a format", plain, plain + `,"response_format":{"type":"json_object"}`},
		{"a format of a server's own", plain, plain + `,"guided_json":{"type":"object"}`},
		{"a field that nobody knows", plain, plain + `,"answer_as":"pirate"`},
		{"words that are forbidden", plain, plain + `,"logit_bias":{"50256":-100}`},
		{"verbosity", plain, plain + `,"verbosity":"low"`},
		{"search", plain, plain + `,"web_search_options":{}`},
		{"stop", plain, plain + `,"stop":["bridge"]`},
		{"tools", plain, plain + `,"tools":[{"type":"function","function":{"name":"f"}}]`},
		{"a tool's choice", plain + `,"tool_choice":"none"`, plain + `,"tool_choice":"auto"`},
		{"a name", plain, strings.Replace(plain, `"role":"user"`, `"role":"user","name":"alice"`, 1)},
		{"a name of an earlier turn", messages(`{"role":"user","content":"I am here","name":"alice"}`), messages(`{"role":"user","content":"I am here","name":"bob"}`)},
		{"names of examples", messages(`{"role":"system","content":"hi","name":"example_user"}`), messages(`{"role":"system","content":"hi","name":"example_assistant"}`)},
		{"a system message", plain, messages(`{"role":"system","content":"Be brief."}`)},
		{
			"a system message in another place",
			messages(`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`),
			messages(`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`, `{"role":"system","content":"Be brief."}`),
		},
		{"who said it", messages(`{"role":"user","content":"a"}`), messages(`{"role":"assistant","content":"a"}`)},
		{"where one turn ends", messages(`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`), messages(`{"role":"user","content":"a\nb"}`)},
		{"the turns' order", messages(`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`), messages(`{"role":"assistant","content":"b"}`, `{"role":"user","content":"a"}`)},
		{
			"whose result it is",
			afterCalls(`{"role":"tool","tool_call_id":"1","content":"yes"}`, `{"role":"tool","tool_call_id":"2","content":"no"}`),
			afterCalls(`{"role":"tool","tool_call_id":"2","content":"yes"}`, `{"role":"tool","tool_call_id":"1","content":"no"}`),
		},
		{
			"a call in words",
			messages(`{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			messages(`{"role":"assistant","content":"a\n{}"}`),
		},
		{
			"a call in words and signs",
			messages(`{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			messages(`{"role":"assistant","content":"a\u0000f\u0000{}"}`),
		},
		{
			"a call of the old kind",
			messages(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"x\":1}"}}`),
			messages(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"x\":2}"}}`),
		},
		{"an image", plain, messages(user(image("https://x/1")))},
		{"images' order", messages(user(image("https://x/1"), image("https://x/2"))), messages(user(image("https://x/2"), image("https://x/1")))},
		{"an image's place among the words", messages(user(words("a"), image("https://x/1"), words("b"))), messages(user(words("a"), words("b"), image("https://x/1")))},
		{
			"whose image it is",
			messages(user(words("a"), image("https://x/1")), `{"role":"assistant","content":"b"}`, `{"role":"user","content":"c"}`),
			messages(`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`, user(words("c"), image("https://x/1"))),
		},
		{"an image and a text that looks like it", messages(user(words("0 https://x/1"))), messages(user(image("https://x/1")))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			one, other := asked(t, test.one), asked(t, test.other)
			require.NotEqual(t, one, other)
			c := cache.New(cache.Settings{}, cache.NewMemory(10), cache.NewBuiltin(), slog.New(slog.DiscardHandler))
			require.NoError(t, c.Store(t.Context(), one, "By tension and compression."))
			_, found, err := c.Lookup(t.Context(), one)
			require.NoError(t, err)
			require.True(t, found, "the question itself")
			hit, found, err := c.Lookup(t.Context(), other)
			require.NoError(t, err)
			require.False(t, found, "%+v", hit)
		})
	}
}

// What changes nothing of a good answer changes nothing of the question.
func TestQuestionsTheSame(t *testing.T) {
	plain := asked(t, messages())
	for _, more := range []string{
		`"model":"gray"`, `"stream":true`, `"temperature":0.2,"top_p":1,"seed":7`, `"max_tokens":100`, `"n":1`,
		`"metadata":{"task":"x"}`, `"reasoning_effort":"low"`, `"prompt_cache_key":"k"`, `"response_format":null`,
	} {
		require.Equal(t, plain, asked(t, messages()+","+more), more)
	}
	tools := `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"`
	require.Equal(t, asked(t, messages()+tools), asked(t, ` "tool_choice": "auto", "tools": [ {"type": "function","function":{"name":"f"}} ],`+messages()),
		"spaces and the fields' order")
	require.Equal(t, plain, asked(t, strings.Replace(messages(), `"role":"user"`, `"role":"user","name":null`, 1)))
	parts := asked(t, `"messages":[{"role":"user","content":[{"type":"text","text":"`+plainQuestion+`"}]}]`)
	require.Equal(t, plain, parts)
}

// Who gives an answer is part of its shape, by each of his names.
func TestShapesApart(t *testing.T) {
	req := &routing.Request{Request: &providers.Request{Raw: json.RawMessage(`{"seed":1,"user":"u"}`)}}
	seen := map[string]bool{}
	for _, s := range [][]string{
		shape(req, "id", "provider", "model"), shape(req, "other", "provider", "model"),
		shape(req, "id", "other", "model"), shape(req, "id", "provider", "other"),
	} {
		require.Contains(t, s, `{"seed":1}`)
		seen[strings.Join(s, " ")] = true
	}
	require.Len(t, seen, 4)
}

func TestNoQuestion(t *testing.T) {
	for _, m := range []string{
		`"messages":[{"role":"system","content":"a"}]`,
		`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`,
	} {
		q := asked(t, m)
		require.True(t, q.NoCache && q.NoStore)
	}
}

type panicking struct{ cache.Service }

func (panicking) Lookup(context.Context, cache.Question) (h cache.Hit, found bool, err error) {
	panic("PROMPT-word")
}

// A cache that panics is a miss: the fixed message is still to come.
func TestLookupPanics(t *testing.T) {
	log := &locked{}
	l := lastResort{panicking{}, slog.New(slog.NewJSONHandler(log, nil))}
	raw := json.RawMessage(`{}`)
	require.Nil(t, l.Lookup(t.Context(), &routing.Request{Request: &providers.Request{Raw: raw}}))
	require.Contains(t, log.String(), "stack")
	require.NotContains(t, log.String(), "PROMPT-word")
}

// Where similar questions are accepted, who gets such an answer reads so and sees the question, in JSON and as a stream;
// what is found by its own words needs no label.
func TestASimilarAnswerIsLabelled(t *testing.T) {
	const earlier = "怎么在网上选车牌号？"
	for _, c := range []struct{ accept, asked, rule, text, question string }{
		{"similar", "网上怎么选车牌号", "similar", "（以下是此前对一个相似问题“" + earlier + "”的回答，未必完全符合您的问题。）\n\n先注册。", earlier},
		{"similar", "请问如何在网上选车牌号", "canonical", "先注册。", ""},
		{"similar", earlier, "exact", "先注册。", ""},
		{"strict", "网上怎么选车牌号", "similar", "先注册。", earlier},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(c.accept, " ", c.rule, " stream=", stream), func(t *testing.T) {
				l := open(t, "cache: {accept: "+c.accept+"}\n", []providertest.Behaviour{providertest.Says("先注册。")})
				require.Equal(t, "model", l.ask(false, earlier).meta.Tier)
				require.NoError(t, l.app.after.wait(t.Context()))
				l.up[0].Play(down())
				got := l.ask(stream, c.asked)
				require.Equal(t, "cache", got.meta.Tier)
				require.Equal(t, c.text, got.text)
				require.Equal(t, c.rule, got.meta.Cache.Rule)
				require.Equal(t, c.question, got.meta.Cache.Question)
				require.Equal(t, c.rule == "similar", got.meta.Cache.Similarity < 1)
				require.Zero(t, got.meta.Cache.Age)
				require.True(t, strings.HasPrefix(got.header.Get("Holdfast-Cache"), c.rule+"; "), got.header)
			})
		}
	}
}

func TestLabelInEnglish(t *testing.T) {
	hit := cache.Hit{Rule: "similar", Text: "By piers.", Question: "How do bridges stand?", Labelled: true}
	require.Equal(t, "(This answers an earlier, similar question: “How do bridges stand?”. It may not fit yours exactly.)\n\nBy piers.", labelled(hit, "en"))
	hit.Labelled = false
	require.Equal(t, "By piers.", labelled(hit, "en"))
}
