package cache

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxAnswer is the size of the largest answer that is kept, in bytes.
const maxAnswer = 32 << 10

// askable says whether a question may have an answer in the cache at all. What isn't stored isn't looked up either.
func askable(q Question) bool {
	if strings.TrimSpace(q.Text) == "" || len(q.Text) > maxQuestion {
		return false
	}
	return storableText(q.Text) && !timely(q.Text) && !sensitive(q.Text)
}

// storable says whether the answer to an askable question may be kept.
func storable(q Question, answer string) bool {
	if q.NoStore || strings.TrimSpace(answer) == "" || len(answer) > maxAnswer || !storableText(answer) {
		return false
	}
	if sensitive(answer) || refusal(answer) {
		return false
	}
	for _, t := range q.Turns {
		if sensitive(t.Text) {
			return false
		}
	}
	return true
}

// storableText: Postgres keeps no other text.
func storableText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// sensitive says whether a text looks as if it held a secret or personal data. It rather errs than keeps one.
func sensitive(text string) bool {
	if personal(text) {
		return true
	}
	text = digitsOf(norm.NFKC.String(strings.Map(seen, text)))
	if longToken(text) || longSecret(text) || personalNumber(text) {
		return true
	}
	lower, digits := strings.ToLower(text), longestNumber(text)
	for _, p := range secretPatterns() {
		if digits >= p.digits && (len(p.needs) == 0 || slices.ContainsFunc(p.needs, func(s string) bool { return strings.Contains(lower, s) })) &&
			p.MatchString(text) {
			return true
		}
	}
	return false
}

// seen drops what nobody sees between the digits of a number.
func seen(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Me, unicode.Variation_Selector) {
		return -1
	}
	return r
}

// digitsOf writes long runs of Chinese digits as digits: a number that is read out, in groups or not.
func digitsOf(text string) string {
	const least = 7
	runes := []rune(text)
	for start := 0; start < len(runes); start++ {
		end, n := start, 0
		for end < len(runes) && (digitOf(runes[end]) != 0 || n > 0 && strings.ContainsRune(" -", runes[end])) {
			if digitOf(runes[end]) != 0 {
				n++
			}
			end++
		}
		if n >= least {
			for i := start; i < end; i++ {
				runes[i] = cmp.Or(digitOf(runes[i]), runes[i])
			}
		}
		start = max(start, end-1)
	}
	return string(runes)
}

// digitOf is the digit that a Chinese numeral is read as, 0 for none.
func digitOf(r rune) rune {
	for _, numerals := range []string{"零一二三四五六七八九", "〇壹贰叁肆伍陆柒捌玖", "零幺两三四五六七八九"} {
		if i := strings.IndexRune(numerals, r); i >= 0 {
			return '0' + rune(i/utf8.RuneLen(r))
		}
	}
	return 0
}

// longestNumber counts the digits of the longest number, with whatever may group them.
func longestNumber(text string) int {
	longest, n := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			n++
			longest = max(longest, n)
		case !strings.ContainsRune(" -.()", rune(c)):
			n = 0
		}
	}
	return longest
}

// longToken finds what only machines write: 32 letters and digits, or more, in one run.
func longToken(text string) bool {
	letters, digits := 0, 0
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && unicode.IsLetter(r) || r == '_' || r == '-':
			letters++
		case '0' <= r && r <= '9':
			digits++
		default:
			letters, digits = 0, 0
		}
		if letters+digits >= 32 && letters > 0 && digits > 3 {
			return true
		}
	}
	return false
}

// longSecret finds random text of 40 signs, or more, as keys are written in base64.
func longSecret(text string) bool {
	var upper, lower, digits, n int
	for _, r := range text {
		switch {
		case 'A' <= r && r <= 'Z':
			upper++
		case 'a' <= r && r <= 'z':
			lower++
		case '0' <= r && r <= '9':
			digits++
		case r != '/' && r != '+' && r != '=':
			upper, lower, digits, n = 0, 0, 0, 0
			continue
		}
		if n++; n >= 40 && upper > 4 && lower > 4 && digits > 0 {
			return true
		}
	}
	return false
}

// personalNumber finds the number of a card, an identity card or a mobile phone, whatever stands between its digits:
// single spaces, or single hyphens.
func personalNumber(text string) bool {
	var digits []byte
	var gap, separator rune
	for _, r := range text + "." {
		switch {
		case '0' <= r && r <= '9':
			digits, gap = append(digits, byte(r-'0')), 0
			continue
		case (r == ' ' || r == '-') && gap == 0 && len(digits) > 0 && (separator == 0 || separator == r):
			gap, separator = r, r
			continue
		}
		if ofPerson(digits, r == 'x' || r == 'X') {
			return true
		}
		digits, gap, separator = digits[:0], 0, 0
	}
	return false
}

// ofPerson says whether digits, and an X behind them, are the number of a card, an identity card or a mobile phone.
func ofPerson(digits []byte, x bool) bool {
	n := len(digits)
	date := func(at, year int) bool { // year, month, day
		month, day := 10*digits[at+year]+digits[at+year+1], 10*digits[at+year+2]+digits[at+year+3]
		return 1 <= month && month <= 12 && 1 <= day && day <= 31
	}
	switch {
	case n == 11 && digits[0] == 1:
		return digits[1] >= 3
	case n >= 10 && n <= 12:
		return digits[0] == 0 && digits[1] > 0 // with the area or network before it
	case n == 18, n == 17 && x:
		if century := 10*digits[6] + digits[7]; digits[0] > 0 && 18 <= century && century <= 20 && date(6, 4) {
			return true
		}
	case n == 15 && digits[0] > 0 && date(6, 2):
		return true
	}
	return n >= 13 && n <= 19 && luhn(digits)
}

func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		v := int(d)
		if (len(digits)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}
