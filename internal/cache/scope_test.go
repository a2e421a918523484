package cache

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every field of the scope is a wall, and no field can be mistaken for another: in memory and in Postgres, where all
// that was stored before lies about.
func TestNoHitCrossesAScope(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { crossesNoScope(t, NewMemory(0), "") })
	})
	t.Run("memory, all in one", func(t *testing.T) {
		store, n := NewMemory(100000), 0
		rapid.Check(t, func(t *rapid.T) {
			n++
			crossesNoScope(t, store, fmt.Sprint(n))
		})
	})
	t.Run("postgres", func(t *testing.T) {
		store, n := openPostgres(t, database(t)), 0
		defer store.Close()
		rapid.Check(t, func(t *rapid.T) {
			n++
			crossesNoScope(t, store, fmt.Sprint(n))
		})
	})
}

// sameQuestion are three ways to ask, one for each rule; the last one asks the same in another language.
var sameQuestion = []string{"怎么在网上选车牌号？", "怎样在网上选车牌号", "网上怎么选车牌号", "How do I choose a licence plate online?"}

// crossesNoScope stores and looks up in scopes that may differ in any field. The run keeps scopes of other runs out.
func crossesNoScope(t *rapid.T, store Store, run string) {
	s1, q1 := drawScope(t, "stored", run)
	s2, q2 := drawScope(t, "asked", run)
	s2.Accept = acceptSimilar
	q1.Text, q2.Text = sameQuestion[0], rapid.SampledFrom(sameQuestion).Draw(t, "text")
	log := slog.New(slog.DiscardHandler)
	require.NoError(t, New(s1, store, sharedBuiltin(), log).Store(context.Background(), q1, "answer"))
	hit, found, err := New(s2, store, sharedBuiltin(), log).Lookup(context.Background(), q2)
	require.NoError(t, err)
	switch {
	case scopeShown(s1, q1) != scopeShown(s2, q2), q2.Text == sameQuestion[3]:
		require.False(t, found)
	case q2.Text != sameQuestion[2] || len(q2.Attachments) == 0 && len(q2.Format) == 0:
		require.True(t, found)
		require.Equal(t, "answer", hit.Text)
	default:
		require.False(t, found, "similar is only what stands alone")
	}
}

func drawScope(t *rapid.T, name, run string) (Settings, Question) {
	field := rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00b"})
	raw := rapid.SampledFrom([]string{"", `{"a":1}`, `{"a":2}`, `[]`})
	s := Settings{Shared: rapid.Bool().Draw(t, name+" shared"), Corpus: field.Draw(t, name+" corpus"), Generation: run + field.Draw(t, name+" generation")}
	return s, Question{
		Tenant: field.Draw(t, name+" tenant"), User: field.Draw(t, name+" user"), System: field.Draw(t, name+" system"),
		Tools: []byte(raw.Draw(t, name+" tools")), Format: []byte(raw.Draw(t, name+" format")),
		Attachments: rapid.SliceOfN(field, 0, 2).Draw(t, name+" attachments"),
	}
}

// scopeShown tells scopes apart as a reader would.
func scopeShown(s Settings, q Question) string {
	if s.Shared {
		q.User = ""
	}
	return fmt.Sprintf("%q %q %q %q %q %q %q %q", q.Tenant, q.User, q.System, q.Tools, q.Format, q.Attachments, s.Corpus, s.Generation)
}

// How far from its own words a question may be found: it depends on what stands before it and what it points to.
func TestContextDependentQuestions(t *testing.T) {
	turns := func(n int, language string) (out []Turn) {
		words := map[string][2]string{"en": {"How do bridges stand?", "On piers."}, "zh": {"桥是怎么立住的？", "靠桥墩。"}}[language]
		for i := range n {
			out = append(out, Turn{[]string{"user", "assistant"}[i%2], words[i%2]})
		}
		return out
	}
	for _, c := range []struct {
		name, text         string
		turns              []Turn
		canonical, similar bool
	}{
		{"en alone", "How do piers carry heavy loads?", nil, true, true},
		{"en one word", "Piers?", nil, false, false},
		{"en one word with an article", "the piers", nil, false, false},
		{"en two turns", "How do piers carry heavy loads?", turns(2, "en"), true, false},
		{"en three turns", "How do piers carry heavy loads?", turns(3, "en"), true, false},
		{"en four turns", "How do piers carry heavy loads?", turns(4, "en"), false, false},
		{"en it", "How does it carry heavy loads?", nil, true, false},
		{"en this", "Explain this in short words", nil, true, false},
		{"en that", "What does that mean in bridges?", nil, true, false},
		{"en they", "Where do they come from at last?", nil, true, false},
		{"en above", "Summarize the text above", nil, true, false},
		{"en continue", "Please continue with the story", nil, true, false},
		{"en go on", "go on with the list", nil, true, false},
		{"en what about", "What about steel bridges?", nil, true, false},
		{"en another", "Give me another example", nil, true, false},
		{"en the second one", "Tell me of the second one", nil, true, false},
		{"zh alone", "桥墩怎么承受重量？", nil, true, true},
		{"zh one word", "桥墩", nil, false, false},
		{"zh two turns", "桥墩怎么承受重量？", turns(2, "zh"), true, false},
		{"zh three turns", "桥墩怎么承受重量？", turns(3, "zh"), true, false},
		{"zh four turns", "桥墩怎么承受重量？", turns(4, "zh"), false, false},
		{"zh 这个", "这个怎么承受重量", nil, true, false},
		{"zh 那", "那北京呢怎么样", nil, true, false},
		{"zh 它", "它怎么承受重量", nil, true, false},
		{"zh 他", "他为什么来北京", nil, true, false},
		{"zh 上面", "上面的内容翻译成英语", nil, true, false},
		{"zh 继续", "继续写下去吧", nil, true, false},
		{"zh 继續", "請繼續寫下去", nil, true, false},
		{"zh 为什么呢", "为什么呢", nil, false, false},
		{"zh 还有", "还有别的办法吗", nil, true, false},
		{"zh 换一个", "换一个例子说明", nil, true, false},
		{"zh 第二个", "第二个是什么意思", nil, true, false},
		{"zh 然后", "然后怎么办理手续", nil, true, false},
		{"zh 举例", "举个例子说明一下", nil, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := keyOf(Settings{}, Question{Text: c.text, Turns: c.turns})
			require.Equal(t, c.canonical, k.Canonical != (Hash{}), "canonical")
			require.Equal(t, c.similar, k.similar, "similar")
			if len(c.turns) > 0 {
				other := keyOf(Settings{}, Question{Text: c.text, Turns: c.turns[1:]})
				alone := keyOf(Settings{}, Question{Text: c.text})
				require.NotEqual(t, k.Exact, other.Exact)
				require.NotEqual(t, k.Exact, alone.Exact)
				require.NotEqual(t, k.Canonical, alone.Canonical)
			}
		})
	}
}

// What the canonical form would make the same is found by its very text only, where its signs or capitals matter.
func TestTextsWhoseSignsMatter(t *testing.T) {
	for _, text := range []string{
		"what does [a] mean in regex", "what does the ! operator do in Python", "what does the ? operator do", "what does :: mean in C", "what does !important do",
		"what does ls -l do", "what does git push --force do", "what does __init__ do in python", "how long is a 6\" sub", "how long is a 6' sub", "what is 5! in math",
		"What is 10 - 5 worth", "summarize https://youtu.be/dQw4w9WgXcQ", "看www.example.com/Xy是什么", "“；”怎么用", "怎么用「，」", "where is .bashrc read",
		"How does IT work in a bank?", "What is the WHO doing?", "How many MB in 1 Gb", "10mW等于多少W", "1Mb等于多少MB", "a 5″ screen",
	} {
		require.True(t, code(text), text)
	}
	for _, text := range []string{
		"What's up, doc?", "Is it safe - really?", "well... so what", "Hello , is it safe ?", "who are you ?! tell me", "WHO IS IT", "10 MB是多少KB", "你好，请问怎么走？", "it costs $5",
		"“你好”是什么意思", "我说：“好！”", "a well-known e-mail", "from 5 - as they say", "C# and C++", "IT是什么",
	} {
		require.False(t, code(text), text)
	}
}
