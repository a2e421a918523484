package cache

import (
	"strings"
	"unicode/utf8"
)

// phraseTable says what Chinese phrases become.
type phraseTable struct {
	replaced map[string][]string
	longest  map[string]int // phrase, in characters, by its first character
}

func newPhraseTable() *phraseTable {
	return &phraseTable{replaced: map[string][]string{}, longest: map[string]int{}}
}

func (t *phraseTable) add(phrase, to string) {
	t.replaced[phrase] = characters(to)[0]
	r, _ := utf8.DecodeRuneInString(phrase)
	t.longest[string(r)] = max(t.longest[string(r)], utf8.RuneCountInString(phrase))
}

func (t *phraseTable) has(phrase string) bool { return t.replaced[phrase] != nil }

// replace writes the longest known phrase at each place as what it becomes.
func (t *phraseTable) replace(tokens []string) []string {
	out := make([]string, 0, len(tokens))
	for i := 0; i < len(tokens); {
		n, to := t.match(tokens[i:])
		if n == 0 {
			n, to = 1, tokens[i:i+1]
		}
		out = append(out, to...)
		i += n
	}
	return out
}

// match gives the length of the longest phrase at the start of tokens, 0 for none, and what it becomes.
func (t *phraseTable) match(tokens []string) (int, []string) {
	for n := min(t.longest[tokens[0]], len(tokens)); n > 0; n-- {
		if to, ok := t.replaced[strings.Join(tokens[:n], "")]; ok {
			return n, to
		}
	}
	return 0, nil
}
