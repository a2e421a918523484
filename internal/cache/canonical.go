package cache

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Language classes; a scope holds one.
const (
	langChinese = "zh"
	langEnglish = "en" // and whatever else is written in Latin letters
	langOther   = "xx"
)

// form is the canonical form of a text: what is left when everything that doesn't change the question is gone.
type form struct {
	lang   string
	tokens []string // in order: words, numbers, symbols, single Han characters; question words are folded into classes
	whole  []string // the same before that was taken out
	moved  string   // the question word that may stand anywhere in the sentence, taken out of tokens; "" for none
}

// canonical gives the form of a text. It doesn't depend on case, width, punctuation, spaces, polite words or, in
// Chinese, on traditional characters.
func canonical(text string) form {
	folded := fold(text)
	switch lang := language(folded); lang {
	case langChinese:
		return chinese(tokenize(simplify(folded)))
	case langEnglish:
		return form{lang: lang, tokens: english(tokenize(folded))}
	default:
		return form{lang: lang, tokens: withoutPauses(tokenize(folded))}
	}
}

// key is the form as one string; two texts of one language with one key ask the same.
func (f form) key() string {
	return f.moved + "\x1e" + strings.Join(f.tokens, "\x1f")
}

// single says whether the text is one word: too little to tell what was meant.
func (f form) single() bool {
	if len(f.tokens) > 2 || f.moved != "" {
		return false
	}
	return len(f.tokens) <= 1 || isHan([]rune(f.tokens[0])[0]) && isHan([]rune(f.tokens[1])[0])
}

// fold removes differences of encoding: NFKC, lower case, one apostrophe, nothing invisible. Private-use runes are
// ours, so none may come in. Superscripts and the like are marked first, as NFKC would make 10² out of 102.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case r == '’' || r == 'ʼ':
			r = '\''
		case r == '−':
			r = '-'
		case unicode.Is(unicode.No, r):
			b.WriteByte('^')
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector):
			continue
		}
		b.WriteRune(r)
	}
	// Upper case in between joins letters that have it in common: ı and i, ς and σ.
	return strings.ToLower(strings.ToUpper(norm.NFKC.String(b.String())))
}

// language gives the class of a folded text by its scripts.
func language(folded string) string {
	lang := langEnglish
	for _, r := range folded {
		switch {
		case r < 0x250: // ASCII and Latin
		case unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			return langOther
		case isHan(r):
			lang = langChinese
		case unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) && lang == langEnglish:
			lang = langOther
		}
	}
	return lang
}

// pause is the token of punctuation between clauses. It only shows where a polite phrase ends, then it goes.
const pause = ""

// tokenize splits a folded text. Punctuation and spaces only separate; signs that carry meaning (+ % # …) are tokens.
func tokenize(folded string) []string {
	runes := []rune(folded)
	tokens := make([]string, 0, len(runes)/2+1)
	for i := 0; i < len(runes); {
		end := tokenEnd(runes, i)
		switch {
		case end > i:
			tokens = append(tokens, string(runes[i:end]))
			i = end
			continue
		case strings.ContainsRune(",.!?;。\n", runes[i]) && len(tokens) > 0 && tokens[len(tokens)-1] != pause:
			tokens = append(tokens, pause)
		}
		i++
	}
	return tokens
}

// tokenEnd is where the token that starts at i ends; i itself if none starts there.
func tokenEnd(runes []rune, i int) int {
	switch r := runes[i]; {
	case isHan(r):
		return i + 1
	case unicode.IsDigit(r) || r == '.' && digitAt(runes, i+1) && !wordAt(runes, i-1):
		return numberEnd(runes, i)
	case wordAt(runes, i):
		return wordEnd(runes, i)
	case unicode.Is(unicode.Pd, r):
		if minusAt(runes, i) {
			return i + 1
		}
	case r == '~':
		if digitAt(runes, i+1) {
			return i + 1
		}
	case unicode.IsSymbol(r) || strings.ContainsRune(`%#@&*/\‰§`, r):
		return i + 1
	}
	return i
}

// numberEnd takes in separators between digits: 3.5, 3:00, 1,000 (a comma only before three digits).
func numberEnd(runes []rune, i int) int {
	for i++; i < len(runes); i++ {
		switch r := runes[i]; {
		case unicode.IsDigit(r):
		case (r == '.' || r == ':') && digitAt(runes, i+1) && digitAt(runes, i-1):
		case r == ',' && digitAt(runes, i-1) && groupAt(runes, i+1):
		default:
			return i
		}
	}
	return i
}

func wordEnd(runes []rune, i int) int {
	for i++; i < len(runes); i++ {
		if !wordAt(runes, i) && (runes[i] != '\'' || !wordAt(runes, i+1)) {
			break
		}
	}
	return i
}

// minusAt tells a minus sign and a range (-5, 10-20, 零下-5) from the hyphen of a name (gpt-4).
func minusAt(runes []rune, i int) bool {
	return digitAt(runes, i+1) && (!wordAt(runes, i-1) || !wordAt(runes, i-2))
}

func groupAt(runes []rune, i int) bool {
	return digitAt(runes, i) && digitAt(runes, i+1) && digitAt(runes, i+2) && !digitAt(runes, i+3)
}

func digitAt(runes []rune, i int) bool {
	return i >= 0 && i < len(runes) && unicode.IsDigit(runes[i])
}

// wordAt says whether a letter of a word is at i. Han characters are no letters here: each is a token of its own.
func wordAt(runes []rune, i int) bool {
	return i >= 0 && i < len(runes) && !isHan(runes[i]) && unicode.In(runes[i], unicode.L, unicode.M)
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

// trimPhrases takes phrases off both ends, again and again, but never everything, and then all pauses.
func trimPhrases(tokens []string, leading, trailing [][]string) []string {
	for {
		before := len(tokens)
		for len(tokens) > 0 && tokens[len(tokens)-1] == pause {
			tokens = tokens[:len(tokens)-1]
		}
		for _, p := range leading {
			if len(tokens) > len(p) && slices.Equal(tokens[:len(p)], p) {
				tokens = tokens[len(p):]
				break // the longest goes first again
			}
		}
		for _, p := range trailing {
			if len(tokens) > len(p) && slices.Equal(tokens[len(tokens)-len(p):], p) {
				tokens = tokens[:len(tokens)-len(p)]
			}
		}
		if len(tokens) == before {
			return withoutPauses(tokens)
		}
	}
}

// withoutPauses drops pauses, but for that behind a negation: 不，可以吃吗 isn't 不可以吃吗.
func withoutPauses(tokens []string) []string {
	out := make([]string, 0, len(tokens))
	for i, t := range tokens {
		switch {
		case t != pause:
			out = append(out, t)
		case i > 0 && i+1 < len(tokens) && strings.Contains("不没别", tokens[i-1]) && tokens[i-1] != pause:
			out = append(out, ",")
		}
	}
	return out
}
