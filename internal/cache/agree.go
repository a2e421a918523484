package cache

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Agreement is how far two answers to one question say the same. It counts words and knows nothing of truth: two long
// answers may agree here and contradict each other in one of them.
type Agreement struct {
	Overlap float64 // the words that both have, as a share of all: 0 to 1
	Agree   bool
	How     string // what decided: text (the same words), words (Overlap), number, negation (a short answer's)
}

const (
	leastOverlap = 0.6
	shortAnswer  = 24 // words; in a short answer one word changes everything
)

// Compare says whether two answers agree: they are the same but for case, width, punctuation and markup, or share six
// words of ten (Dice's coefficient; pairs of characters for Han). In a short one, the numbers and the negations have to
// be the same as well, and where both begin with yes or no, that.
func Compare(a, b string) Agreement {
	wa, wb := answerWords(a), answerWords(b)
	if slices.Equal(wa, wb) {
		return Agreement{1, true, "text"}
	}
	out := Agreement{Overlap: overlap(wa, wb)}
	switch short := min(len(wa), len(wb)) <= shortAnswer; {
	case out.Overlap < leastOverlap:
		out.How = "words"
	case short && !slices.Equal(numbersIn(wa), numbersIn(wb)):
		out.How = "number"
	case verdict(wa)*verdict(wb) < 0, short && negations(wa) != negations(wb):
		out.How = "negation"
	default:
		out.Agree, out.How = true, "words"
	}
	return out
}

// answerWords are a text's words, numbers and single Han characters, without markup.
func answerWords(text string) []string {
	return slices.DeleteFunc(tokenize(simplify(fold(text))), func(t string) bool {
		r, _ := utf8.DecodeRuneInString(t)
		return t == pause || strings.ContainsRune("*#_`|~>", r)
	})
}

// overlap is Dice's coefficient of two lists of words.
func overlap(a, b []string) float64 {
	fa, fb := pairHan(a), pairHan(b)
	return 2 * float64(common(fa, fb)) / float64(max(len(fa)+len(fb), 1))
}

// pairHan makes pairs of Han characters that stand together: one alone is in any text.
func pairHan(words []string) []string {
	han := func(i int) bool {
		if i < 0 || i >= len(words) {
			return false
		}
		r, _ := utf8.DecodeRuneInString(words[i])
		return isHan(r)
	}
	out := make([]string, 0, len(words))
	for i, w := range words {
		switch {
		case han(i) && han(i+1):
			out = append(out, w+words[i+1])
		case !han(i) || !han(i-1):
			out = append(out, w)
		}
	}
	return out
}

func numbersIn(words []string) []string {
	seen := map[string]bool{}
	for _, w := range words {
		if r, _ := utf8.DecodeRuneInString(w); unicode.IsDigit(r) {
			seen[w] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// verdict is what an answer begins with: 1 for yes, -1 for no, 0 for neither.
func verdict(words []string) int {
	v := verdicts()
	for _, w := range words[:min(len(words), 1)] {
		switch {
		case v.yes[w]:
			return 1
		case v.no[w]:
			return -1
		}
	}
	return 0
}

func negations(words []string) (n int) {
	for _, w := range words {
		if verdicts().not[w] || strings.HasSuffix(w, "n't") {
			n++
		}
	}
	return n
}

type verdictWords struct{ yes, no, not map[string]bool }

var verdicts = sync.OnceValue(func() *verdictWords {
	return &verdictWords{
		yes: set("yes yeah yep 是 对 可 能 会 有"), no: set("no nope not 不 没 否"),
		not: set("not no never cannot nor neither without 不 没 无 非 未 别 勿"),
	}
})
