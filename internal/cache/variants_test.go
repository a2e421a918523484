package cache

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// chineseVariants are ways to write a Chinese question that don't change it.
func chineseVariants() map[string]func(string) string {
	return map[string]func(string) string{
		"punctuation": func(s string) string { return strings.TrimRight(s, "。？！?!. ") + "？！" },
		"full stop":   func(s string) string { return strings.TrimRight(s, "。？！?!. ") + "。" },
		"dots":        func(s string) string { return strings.TrimRight(s, "。？！?!. ") + "……～" },
		"no punctuation": func(s string) string {
			return strings.NewReplacer("，", " ", "。", " ", "？", " ", "！", " ", "、", " ").Replace(s)
		},
		"half width": func(s string) string {
			return strings.NewReplacer("，", ",", "？", "?", "！", "!", "：", ":").Replace(s)
		},
		"quotes":            quoted,
		"spaces":            func(s string) string { return "　" + strings.ReplaceAll(s, "，", " ， ") + " " },
		"between scripts":   between,
		"width":             wide,
		"case":              strings.ToUpper,
		"请问":                func(s string) string { return "请问" + s },
		"你好，请问 … 谢谢":        func(s string) string { return "你好，请问" + s + "，谢谢！" },
		"麻烦问一下":             func(s string) string { return "麻烦问一下，" + s },
		"麻烦":                func(s string) string { return "麻烦，" + s },
		"请问一下 … 谢谢啦":        func(s string) string { return "请问一下：" + s + "？谢谢啦～" },
		"谢谢 behind a space": func(s string) string { return strings.TrimRight(s, "。？！?!. ") + "，谢谢您" },
		"呢":                 particle("呢"),
		"啊":                 particle("啊"),
		"呀":                 particle("呀"),
		"吧":                 particle("吧"),
		"traditional":       traditional(),
	}
}

func englishVariants() map[string]func(string) string {
	return map[string]func(string) string{
		"no mark":            func(s string) string { return strings.TrimRight(s, "?. ") },
		"marks":              func(s string) string { return s + " ?!" },
		"Chinese marks":      func(s string) string { return strings.TrimRight(s, "?. ") + "？" },
		"dots":               func(s string) string { return strings.TrimRight(s, "?. ") + "..." },
		"quotes":             quoted,
		"spaces":             func(s string) string { return "\t" + strings.ReplaceAll(s, " ", "  ") + "\n" },
		"hard spaces":        func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") },
		"width":              wide,
		"case":               strings.ToUpper,
		"small":              strings.ToLower,
		"apostrophe":         func(s string) string { return strings.ReplaceAll(s, "'", "’") },
		"polite frame":       func(s string) string { return "Hi, could you please tell me " + s + "? Thanks!" },
		"please before":      func(s string) string { return "Please, " + s },
		"please behind":      func(s string) string { return strings.TrimRight(s, "?. ") + ", please?" },
		"thanks":             func(s string) string { return s + " Thanks." },
		"thank you":          func(s string) string { return s + " Thank you very much!" },
		"thanks, in advance": func(s string) string { return s + " Thanks in advance" },
		"hello":              func(s string) string { return "Hello! " + s },
	}
}

func variantsOf(text string) map[string]func(string) string {
	if canonical(text).lang == langEnglish {
		return englishVariants()
	}
	return chineseVariants()
}

// quoted puts a text into quotes, where it has none yet: between two of them a full stop looks like one that is asked about.
func quoted(s string) string {
	if strings.ContainsAny(s, "“”‘’\"「」") {
		return s
	}
	return "“" + s + "”"
}

func particle(p string) func(string) string {
	return func(s string) string {
		s = strings.TrimRight(s, "。？！?!. ”")
		if p == "吧" && strings.HasSuffix(s, "酒") {
			return s // 酒吧 is another thing
		}
		return s + p + "？"
	}
}

// between puts spaces between Han characters and all else.
func between(s string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range s {
		letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
		if before != 0 && letter(r) && letter(before) && isHan(r) != isHan(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// traditional writes simplified characters as one of their traditional forms.
func traditional() func(string) string {
	back := map[rune]rune{}
	for from, to := range simplifiedOf() {
		back[to] = from
	}
	return func(text string) string {
		return strings.Map(func(r rune) rune {
			if from, ok := back[r]; ok {
				return from
			}
			return r
		}, text)
	}
}

// Trivial variants of a question find it, whatever the question: each of its kind, in any of the sampled texts.
func TestTrivialVariantsAreTheSame(t *testing.T) {
	for i, p := range pairs(t) {
		if i%8 > 0 && !strings.HasPrefix(p.Set, "faq") {
			continue // enough of those; the next test draws from all
		}
		for _, text := range []string{p.A, p.B} {
			want := canonical(text)
			if want.single() {
				continue
			}
			for name, vary := range variantsOf(text) {
				require.Equal(t, want.key(), canonical(vary(text)).key(), "%s: %s", name, vary(text))
			}
		}
	}
}

// Several of them at once, through the cache itself.
func TestTrivialVariantsHit(t *testing.T) {
	var texts []string
	for _, p := range pairs(t) {
		for _, text := range []string{p.A, p.B} {
			if k := keyOf(Settings{}, Question{Text: text}); askable(Question{Text: text}) && k.Canonical != (Hash{}) {
				texts = append(texts, text)
			}
		}
	}
	require.Greater(t, len(texts), 4000)
	builtin := sharedBuiltin()
	rapid.Check(t, func(t *rapid.T) {
		stored := rapid.SampledFrom(texts).Draw(t, "question")
		variants := variantsOf(stored)
		names := slices.Sorted(maps.Keys(variants))
		asked := stored
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, func(n string) string { return n }).Draw(t, "variants")
		if slices.Contains(chosen, "no punctuation") { // behind a word like 英语, 谢谢 needs its comma
			chosen = append([]string{"no punctuation"}, chosen...)
		}
		for i, name := range chosen {
			if i > 0 && name == "no punctuation" {
				continue
			}
			asked = variants[name](asked)
		}
		c := New(Settings{}, NewMemory(1), builtin, slog.New(slog.DiscardHandler))
		require.NoError(t, c.Store(context.Background(), text(stored), "an answer"))
		hit, found, err := c.Lookup(context.Background(), text(asked))
		require.NoError(t, err)
		require.True(t, found, "%s | %s", stored, asked)
		require.NotEqual(t, ruleSimilar, hit.Rule)
	})
}
