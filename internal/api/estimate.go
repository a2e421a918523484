package api

import (
	"unicode"
	"unicode/utf8"
)

// estimate counts text towards a number of tokens: three narrow characters are one, a wide one (CJK and beyond) is
// one. It errs on the high side for English, so that a window isn't overrun. What isn't text is fixed.
type estimate struct{ narrow, wide, fixed int }

const (
	tokensPerMessage = 4
	tokensPerImage   = 500
	firstWide        = 0x2E80 // CJK radicals; kana, Han, Hangul, full-width forms and emoji follow
	firstEastern     = 0x1100 // Hangul's letters; no Han, kana or Hangul before it
)

func (e *estimate) tokens() int { return e.narrowTokens() + e.wide + e.fixed }

func (e *estimate) narrowTokens() int { return (e.narrow + 2) / 3 }

// countText adds text, plain or as written in JSON: there \u4f60 is one character.
func countText[T string | []byte](e *estimate, s T) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\\':
			i += e.escape(string(s[i:min(i+6, len(s))]))
		case c < utf8.RuneSelf:
			e.narrow++
			i++
		default:
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			e.add(r)
			i += n
		}
	}
}

// escape counts what starts with a backslash and gives its length.
func (e *estimate) escape(s string) int {
	if len(s) < 6 || s[1] != 'u' {
		e.narrow++
		return 1
	}
	var r rune
	for _, c := range []byte(s[2:]) {
		d := hexDigit(c)
		if d < 0 {
			e.narrow++
			return 1
		}
		r = r<<4 | d
	}
	e.add(r)
	return len(s)
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

func (e *estimate) add(r rune) {
	if r >= firstWide {
		e.wide++
	} else {
		e.narrow++
	}
}

// language says in which language to answer a text when no model does: "zh" if it is Chinese, else "en". Kana or
// Hangul make it another language; a Chinese word quoted in an English sentence doesn't make it Chinese.
func language(text string) string {
	han, words, inWord := 0, 0, false
	for _, r := range text {
		switch {
		case r >= firstEastern && unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			return "en"
		case r >= firstEastern && unicode.Is(unicode.Han, r):
			han++
			inWord = false
		case !unicode.IsLetter(r):
			inWord = false
		case !inWord:
			words++
			inWord = true
		}
	}
	if han > 0 && han >= words {
		return "zh"
	}
	return "en"
}
