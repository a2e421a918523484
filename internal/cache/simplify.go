package cache

import (
	_ "embed"
	"strings"
	"sync"
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
	return strings.Map(func(r rune) rune {
		if r < 0x3400 {
			return r
		}
		if s, ok := table[r]; ok {
			return s
		}
		return r
	}, text)
}
