package cache

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

// Pairs of runes: traditional, simplified. From OpenCC's TSCharacters.txt (Apache-2.0), the first choice of each.
//
//go:embed t2s.txt
var simplifiedPairs string

var simplifiedOf = sync.OnceValue(func() map[rune]rune {
	runes := []rune(simplifiedPairs)
	table := make(map[rune]rune, len(runes)/2)
	for i := 0; i+1 < len(runes); i += 2 {
		table[runes[i]] = runes[i+1]
	}
	return table
})

// simplify writes traditional characters as simplified ones.
func simplify(text string) string {
	table := simplifiedOf()
	var b strings.Builder
	for i, r := range text {
		s, ok := table[r]
		if asked := joins()[s] && strings.HasPrefix(text[i+utf8.RuneLen(r):], "字"); ok && !asked {
			r = s
		}
		b.WriteRune(r)
	}
	return b.String()
}

// joins are the simplified characters that stand for several. Where the character itself is asked about (發字, 髮字) they
// would join what differs.
var joins = sync.OnceValue(func() map[rune]bool {
	seen, out := map[rune]bool{}, map[rune]bool{}
	for _, s := range simplifiedOf() {
		out[s] = seen[s]
		seen[s] = true
	}
	for _, s := range "个别签" { // 這個字, 錯別字, 簽字
		delete(out, s)
	}
	return out
})
