package cache

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
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
	if longToken(text) || cardNumber(text) || wordLists().personal.in(plain(text)) {
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

// secretPattern is a pattern that needs not be tried on a text without one of some strings, in lower case, or
// without a number of so many digits: trying is slow.
type secretPattern struct {
	*regexp.Regexp
	needs  []string
	digits int
}

var secretPatterns = sync.OnceValue(func() []secretPattern {
	var out []secretPattern
	add := func(digits int, needs, pattern string) {
		out = append(out, secretPattern{regexp.MustCompile(pattern), strings.Fields(needs), digits})
	}
	add(0, "-----begin", `-----BEGIN [A-Z ]*PRIVATE KEY`)
	add(0, "sk- pk- rk- sk_ pk_ rk_", `\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`)
	add(0, "akia asia ltai akid", `\b(?:AKIA|ASIA|LTAI|AKID)[A-Za-z0-9]{12,}`)
	add(0, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xox hf_ aiza dop_v1_ npm_",
		`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|hf_|AIza|dop_v1_|npm_)[A-Za-z0-9_-]{16,}`)
	add(0, "eyj", `\beyJ[A-Za-z0-9_-]+\.eyJ`)
	add(0, "bearer", `(?i)\bbearer\s+[a-z0-9._~+/-]{16,}`)
	add(0, "://", `\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@]+:[^\s/@]+@`)
	add(0, "pass pwd pin secret token key 密码 口令 密钥 验证码",
		`(?i)(?:password|passwd|passcode|\bpwd|\bpin|secret|token|api[ _-]?key|密码|口令|密钥|验证码)["']?\s*(?:is|was|[:=：]|是|为)\s*["']?[^\s"']*\d`)
	add(0, "@", `[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z]{2,}`)
	add(11, "", `(?:^|\D)1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?:\D|$)`)
	add(7, "+", `\+\d{1,3}[ .-]?\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,4}`)
	add(10, "", `(?:^|[^\d.])\(?[2-9]\d{2}\)?[ .-]\d{3}[ .-]\d{4}(?:\D|$)`)
	add(10, "", `(?:^|\D)0\d{2,3}[ -]\d{7,8}(?:\D|$)`)
	add(9, "", `(?:^|\D)\d{3}-\d{2}-\d{4}(?:\D|$)`)
	add(17, "", `(?:^|\D)[1-9]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?:[^\dA-Za-z]|$)`)
	add(4, "", `\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b`)
	add(8, "", `\b[EG]\d{8}\b`)
	return out
})

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

// cardNumber finds 13 to 19 digits, single spaces or hyphens between them, whose check digit is right.
func cardNumber(text string) bool {
	var digits []byte
	gap := false
	for _, r := range text + "." {
		switch {
		case '0' <= r && r <= '9':
			digits, gap = append(digits, byte(r-'0')), false
		case (r == ' ' || r == '-') && !gap && len(digits) > 0:
			gap = true
		default:
			if n := len(digits); n >= 13 && n <= 19 && luhn(digits) {
				return true
			}
			digits, gap = digits[:0], false
		}
	}
	return false
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
