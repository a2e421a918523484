package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

const inFront = "breaker: {enabled: false}\ncache: {mode: front}\n"

// body sends a request with these members beside a question, and reads what came to its end. Short answers only: a long
// JSON body has left before the work after it is known.
func (l *lab) body(question, members string, headers ...string) reply {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), callerLimit)
	defer cancel()
	res, err := l.send(ctx, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]%s}`, question, members), headers...)
	require.NoError(l.t, err)
	defer func() { _ = res.Body.Close() }()
	out := reply{status: res.StatusCode, header: res.Header}
	if strings.Contains(res.Header.Get("Content-Type"), "event-stream") {
		out.events(res.Body)
	} else {
		body, err := io.ReadAll(res.Body)
		require.NoError(l.t, err)
		out.take(body)
	}
	require.NoError(l.t, l.app.after.wait(l.t.Context()))
	return out
}

// fresh is a question that nobody has asked before, in whatever database.
func fresh() string {
	return fmt.Sprintf("How do bridges of type %d carry heavy loads?", time.Now().UnixNano()%1e9)
}

// places are where the cache may be.
func eachStore(t *testing.T, test func(t *testing.T, p Places)) {
	t.Run("memory", func(t *testing.T) { test(t, Places{}) })
	t.Run("postgres", func(t *testing.T) { test(t, Places{DatabaseURL: database(t)}) })
}

// lookFirst opens Holdfast with upstreams that say their names, at a place of the cache.
func lookFirst(t *testing.T, more string, p Places, names ...string) *lab {
	l := &lab{t: t, log: &locked{}}
	for _, name := range names {
		l.up = append(l.up, providertest.Start(t, providertest.OpenAI, providertest.Says("as ", name, " says")))
	}
	l.start(yamlOf(more, l.up), Options{Places: p})
	return l
}

func TestFrontAtTheWire(t *testing.T) {
	eachStore(t, func(t *testing.T, p Places) {
		l, q := lookFirst(t, inFront, p, "a"), fresh()
		require.Equal(t, "model", l.body(q, "").meta.Tier)
		for _, members := range []string{"", `,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`, `,"model":"a"`, `,"model":"auto","metadata":{"x":"y"}`} {
			got := l.body(strings.ToLower(q), members)
			require.Equal(t, "cache", got.meta.Tier, members)
			require.Equal(t, "as a says", got.text)
			require.Equal(t, "stop", got.finish)
			require.Empty(t, got.meta.Attempts)
			require.Empty(t, got.meta.Candidate)
			require.Equal(t, "canonical", got.meta.Cache.Rule)
			require.Equal(t, "0", got.header.Get("Holdfast-Attempts"))
			require.Equal(t, "cache", got.header.Get("Holdfast-Tier"))
			require.Regexp(t, `^canonical; age=\d+$`, got.header.Get("Holdfast-Cache"))
			require.Empty(t, got.header.Get("Holdfast-Candidate"))
			require.Equal(t, strings.Contains(members, "stream"), got.done)
		}
		require.Equal(t, 1, l.up[0].Calls())
		require.NotContains(t, l.log.String(), `"level":"WARN"`, "a front hit is nothing to notice")
		require.Contains(t, l.log.String(), `"cache.front":true`)

		require.Equal(t, "model", l.body(q, "", "Cache-Control", "no-cache").meta.Tier)
		other := fresh() + "!"
		require.Equal(t, "model", l.body(other, "", "Cache-Control", "no-store").meta.Tier)
		require.Equal(t, "model", l.body(other, "").meta.Tier)
		require.Equal(t, "cache", l.body(other, "", "Cache-Control", "no-store").meta.Tier, "what was stored before may be given")
	})
}

// A front answer is what the model would have said: whatever may be heard in an answer keeps it apart. The last tier
// goes on without.
func TestFrontKeepsShapesApart(t *testing.T) {
	eachStore(t, func(t *testing.T, p Places) {
		l, q := lookFirst(t, inFront, p, "a", "b"), fresh()
		const base = `,"temperature":0.2,"top_p":0.5,"seed":7,"max_tokens":100,"max_completion_tokens":90,"presence_penalty":0.1,"frequency_penalty":0.2,` +
			`"parallel_tool_calls":true,"enable_thinking":false,"stop":"end","verbosity":"low","logit_bias":{"1":2}`
		require.Equal(t, "model", l.body(q, base).meta.Tier)
		require.Equal(t, "cache", l.body(q, base).meta.Tier)
		variants := []string{
			"", base + `,"model":"b"`, base + `,"user":"u"`, base + `,"response_format":{"type":"json_object"}`, base + `,"a_field_of_a_server":1`, base + `,"moderation":"x"`,
			base + `,"tools":[{"type":"function","function":{"name":"f"}}]`, base + `,"reasoning_effort":"none"`,
		}
		for name := range gjson.Parse("{" + base[1:] + "}").Map() {
			variants = append(variants, regexp.MustCompile(`,"`+name+`":(\{.*?\}|[^,]*)`).ReplaceAllString(base, ""))
		}
		for _, other := range [][2]string{
			{`"temperature":0.2`, `"temperature":0.3`},
			{`"top_p":0.5`, `"top_p":0.6`},
			{`"seed":7`, `"seed":8`},
			{`"max_tokens":100`, `"max_tokens":101`},
			{`"max_completion_tokens":90`, `"max_completion_tokens":91`},
			{`"presence_penalty":0.1`, `"presence_penalty":0.2`},
			{`"frequency_penalty":0.2`, `"frequency_penalty":0.3`},
			{`"parallel_tool_calls":true`, `"parallel_tool_calls":false`},
		} {
			require.Contains(t, base, other[0])
			variants = append(variants, strings.Replace(base, other[0], other[1], 1))
		}
		for i, members := range variants {
			require.NotEqual(t, base, members)
			require.Equal(t, "model", l.body(q, members).meta.Tier, "variant %d %s", i, members)
		}
		for _, members := range variants {
			require.Equal(t, "cache", l.body(q, members).meta.Tier, members)
		}
		for _, u := range l.up {
			u.Play(down())
		}
		got := l.body(q, `,"temperature":1.9`)
		require.Equal(t, "cache", got.meta.Tier)
		require.Equal(t, []string{"a:server_error", "b:server_error"}, got.outcomes()[:2])
		require.Contains(t, l.log.String(), `"cache.front":false`)
	})
}

// Whose answer it is decides, not how he came to be asked.
func TestFrontGivesTheAnswersOfWhoeverIsFirst(t *testing.T) {
	const byTask = inFront + "rules: [{name: r, when: 'task == \"small\"', use: [b]}]\n"
	l, q := lookFirst(t, byTask, Places{}, "a", "b"), fresh()
	l.up[0].Play(down())
	require.Equal(t, []string{"a:server_error", "b:ok"}, l.body(q, "").outcomes())
	l.up[0].Play(providertest.Says("as ", "a", " says"))
	got := l.body(q, "")
	require.Equal(t, "model", got.meta.Tier, "b stood in for a; that isn't what a says")
	require.Equal(t, "as a says", l.body(q, "").text)
	for _, b := range []string{`,"model":"b"`, `,"metadata":{"task":"small"}`} {
		got := l.body(q, b)
		require.Equal(t, "cache", got.meta.Tier)
		require.Equal(t, "as b says", got.text)
	}
	require.Equal(t, 1, l.up[1].Calls())
}

// Who may spend nothing more gets nothing from the front either.
func TestFrontStandsBehindCaps(t *testing.T) {
	l, q := lookFirst(t, inFront, Places{}, "a"), fresh()
	require.Equal(t, "model", l.body(q, "").meta.Tier)
	require.Equal(t, "cache", l.body(q, "").meta.Tier)
	capped := &lab{t: t, log: &locked{}, up: l.up}
	capped.start(yamlOf(inFront+"caps: [{tenant: anonymous, usd_per_day: 0}]\n", l.up), Options{})
	require.Equal(t, http.StatusTooManyRequests, capped.body(q, "").status)
}

func TestFrontFollowsTheFile(t *testing.T) {
	up := []*providertest.Upstream{providertest.Start(t, providertest.OpenAI, providertest.Says("Weight ", "goes down."))}
	r, q := roll(t, yamlOf("cache: {mode: fallback}\n", up), Options{}), fresh()
	tier := func() string { return r.body(q, "").meta.Tier }
	require.Equal(t, []string{"model", "model"}, []string{tier(), tier()})
	r.take(yamlOf("cache: {mode: front}\n", up))
	require.Equal(t, []string{"model", "cache", "cache"}, []string{tier(), tier(), tier()})
	r.take(yamlOf("cache: {mode: front, corpus: v2}\n", up))
	require.Equal(t, []string{"model", "cache"}, []string{tier(), tier()})
	r.take(yamlOf("cache: {mode: fallback}\n", up))
	require.Equal(t, "model", tier())
}

// A long answer comes back as it was, in chunks that any reader of lines takes.
func TestALongAnswerIsReplayedInPieces(t *testing.T) {
	text := strings.Repeat("Arches <press>; 桥梁承重 👩‍👩‍👧‍👦 \"so\".\n", 500)
	l, q := open(t, inFront, []providertest.Behaviour{providertest.Says(text[:len(text)/2], text[len(text)/2:])}), fresh()
	require.Equal(t, "model", l.body(q, `,"stream":true`).meta.Tier)
	got := l.ask(false, q)
	require.Equal(t, "cache", got.meta.Tier)
	require.Equal(t, sha256.Sum256([]byte(text)), sha256.Sum256([]byte(got.text)), "%d of %d bytes", len(got.text), len(text))
	res, err := l.send(t.Context(), fmt.Sprintf(`{"stream":true,"messages":[{"role":"user","content":%q}]}`, q))
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, "cache", res.Header.Get("Holdfast-Tier"))
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	lines := strings.Split(string(raw), "\n")
	require.Greater(t, len(lines), 20)
	for _, line := range lines {
		require.Less(t, len(line), 8<<10)
	}
	got = reply{}
	got.events(strings.NewReader(string(raw)))
	require.Equal(t, sha256.Sum256([]byte(text)), sha256.Sum256([]byte(got.text)), "%d of %d bytes", len(got.text), len(text))
	require.True(t, got.done)
}

// A store that nobody answers at costs a request its bound once, then nothing; and no call is refused for it.
func TestFrontOfAStoreThatIsAway(t *testing.T) {
	for name, address := range map[string]string{"refused": "127.0.0.1:1", "silent": silent(t)} {
		t.Run(name, func(t *testing.T) {
			places := Places{DatabaseURL: "postgres://u:pw-secret@" + address + "/x?sslmode=disable"}
			l := lookFirst(t, inFront, places, "a")
			var took []time.Duration
			for range 10 {
				start := time.Now()
				got := l.ask(false, fresh())
				took = append(took, time.Since(start))
				require.Equal(t, []string{"a:ok"}, got.outcomes())
			}
			slices.Sort(took)
			require.Less(t, took[len(took)/2], 150*time.Millisecond, "most wait for nothing")
			require.Less(t, took[len(took)-1], callerLimit/5)
			require.NoError(t, l.app.after.wait(t.Context()))
			require.Equal(t, 1, strings.Count(l.log.String(), `"msg":"cache store is away","for":"front"`))
			require.NotContains(t, l.log.String(), "pw-secret")
		})
	}
}
