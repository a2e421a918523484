package cache

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sample in testdata judges what is served; it isn't to be tuned to. Identical texts are left out.
func TestPrecisionOnPairs(t *testing.T) {
	embedder, log := sharedBuiltin(), slog.New(slog.DiscardHandler)
	type figures struct{ right, wrong, same int }
	got := map[string]*figures{}
	for _, p := range pairs(t) {
		if literal(p.A) == literal(p.B) {
			continue
		}
		memory := NewMemory(1)
		for _, accept := range []string{"strict", acceptSimilar} {
			cache := New(Settings{Accept: accept}, memory, embedder, log)
			store(t, cache, text(p.A))
			f := got[accept+" "+p.Set]
			if f == nil {
				f = &figures{}
				got[accept+" "+p.Set] = f
			}
			if p.Same {
				f.same++
			}
			switch served := rule(t, cache, text(p.B)) != ""; {
			case served && p.Same:
				f.right++
			case served:
				f.wrong++
				t.Logf("wrong: %s | %s", p.A, p.B)
			}
		}
	}
	for name, want := range map[string]struct {
		precision float64
		hits      int // at least, so that the precision means something
	}{
		"strict paws-x-zh":      {0.95, 3},
		"strict checklist-qqp":  {0.99, 30},
		"similar paws-x-zh":     {0.95, 3},
		"similar checklist-qqp": {0.99, 30},
	} {
		t.Run(name, func(t *testing.T) {
			f := got[name]
			t.Logf("right %d, wrong %d, of %d that are the same", f.right, f.wrong, f.same)
			require.GreaterOrEqual(t, f.right+f.wrong, want.hits)
			require.GreaterOrEqual(t, float64(f.right)/float64(f.right+f.wrong), want.precision)
		})
	}
}

type pair struct {
	A, B, Set, Tag string
	Same           bool
}

func pairs(t *testing.T) []pair {
	file, err := os.Open("testdata/pairs.jsonl")
	require.NoError(t, err)
	defer file.Close()
	var out []pair
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var p pair
		require.NoError(t, json.Unmarshal(lines.Bytes(), &p))
		out = append(out, p)
	}
	return out
}

// Trivial variants of a question find it, whatever the question: each of its kind, in any of the sampled texts.
func TestTrivialVariantsAreTheSame(t *testing.T) {
	chinese := map[string]func(string) string{
		"punctuation":  func(s string) string { return strings.TrimRight(s, "。？！?!. ") + "？！" },
		"spaces":       func(s string) string { return "　" + strings.ReplaceAll(s, "，", " ， ") + " " },
		"width":        wide,
		"case":         strings.ToUpper,
		"polite words": func(s string) string { return "你好，请问" + s + "，谢谢！" },
		"traditional":  traditional(),
	}
	english := map[string]func(string) string{
		"punctuation":  func(s string) string { return strings.TrimRight(s, "?. ") },
		"marks":        func(s string) string { return s + " ?!" },
		"spaces":       func(s string) string { return "\t" + strings.ReplaceAll(s, " ", "  ") },
		"width":        wide,
		"case":         strings.ToUpper,
		"apostrophe":   func(s string) string { return strings.ReplaceAll(s, "'", "’") },
		"polite words": func(s string) string { return "Hi, could you please tell me " + s + "? Thanks!" },
	}
	for _, p := range pairs(t) {
		variants := chinese
		if canonical(p.A).lang == langEnglish {
			variants = english
		}
		want := canonical(p.A)
		for name, vary := range variants {
			require.Equal(t, want.key(), canonical(vary(p.A)).key(), "%s: %s", name, vary(p.A))
		}
	}
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
