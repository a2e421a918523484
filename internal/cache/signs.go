package cache

import (
	"slices"
	"strings"
	"unicode"
)

// code says whether case and signs of a text matter, which the canonical form forgets: program text, arithmetic,
// addresses, signs that are asked about, words that another case makes other words of.
func code(text string) bool {
	return strings.ContainsAny(text, "{}<>=\\`|^_[]") || dollar(text) || strings.Contains(text, "();") || strings.Contains(text, "://") || strings.Contains(text, "www.") ||
		!slices.ContainsFunc([]rune(text), unicode.IsLetter) || signs(text) || quotedSigns(text) || caseMatters(text)
}

// dollar says whether a text has a dollar sign that isn't one of money.
func dollar(text string) bool {
	for i, r := range text {
		if r == '$' && (i+1 == len(text) || text[i+1] < '0' || text[i+1] > '9') {
			return true
		}
	}
	return false
}

// signs says whether punctuation of a text is more than that: a word of its own (the ?: operator), the start of one
// (--force, .bashrc) or a unit (6", 5!).
func signs(text string) bool {
	const marks = "!?.:;,'\"()-/&@#%*+~"
	words := strings.Fields(text)
	for i, w := range words {
		switch bare := strings.Trim(w, marks); {
		case bare == "":
			if i > 0 && i+1 < len(words) && (strings.Trim(w, ".,-!?") != "" || named(words[i-1]) || w == "-" && endsInDigit(words[i-1]) && digitAt([]rune(words[i+1]), 0)) {
				return true
			}
		case strings.ContainsRune("-!.:~", rune(w[0])) && startsWithLetter(strings.TrimLeft(w, "-!.:~")):
			return true
		}
	}
	for i := 1; i < len(text); i++ {
		if strings.IndexByte("!'\"", text[i]) >= 0 && endsInDigit(text[:i]) {
			return true
		}
	}
	return strings.ContainsAny(text, "′″")
}

// named says whether the word before a sign shows that it is one by itself: the ? operator.
func named(before string) bool {
	switch strings.ToLower(before) {
	case "the", "a", "an", "does", "do", "is", "of", "with", "use", "using", "and", "or", "between", "sign", "mark", "operator", "character", "symbol":
		return true
	}
	return false
}

func endsInDigit(s string) bool { return s != "" && '0' <= s[len(s)-1] && s[len(s)-1] <= '9' }

func startsWithLetter(s string) bool { return s != "" && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z' }

// quotedSigns says whether a text has nothing but signs between quotes: “；”怎么用.
func quotedSigns(text string) bool {
	signs, within := 0, false // between an opening quote and here, nothing but signs
	for _, r := range text {
		switch {
		case strings.ContainsRune("“‘「『", r), r == '"' && !within:
			signs, within = 0, true
		case strings.ContainsRune("”’」』\"", r):
			if within && signs > 0 {
				return true
			}
			within = false
		case unicode.IsPunct(r):
			signs++
		default:
			within = false
		}
	}
	return false
}

// caseMatters says whether a text has a word that is another one in lower case: IT, Mb. One mostly in capitals shouts.
func caseMatters(text string) bool {
	capitals, letters := 0, 0
	for _, r := range text {
		switch {
		case 'A' <= r && r <= 'Z':
			capitals++
			fallthrough
		case 'a' <= r && r <= 'z':
			letters++
		}
	}
	if capitals == letters || letters > 12 && 2*capitals > letters {
		return false
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "IT", "WHO", "AIDS", "Kb", "kb", "Mb", "Gb", "Tb", "Kbps", "Mbps", "Gbps", "mW", "mV", "mPa", "mHz", "mJ":
			return true
		}
		return false
	})
}
