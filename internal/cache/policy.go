package cache

import (
	"regexp"
	"slices"
	"strings"
	"sync"
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
	text = digitsOf(norm.NFKC.String(text))
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

// digitsOf writes long runs of Chinese digits as digits: a number that is read out.
func digitsOf(text string) string {
	const numerals, least = "零一二三四五六七八九", 7
	runes := []rune(text)
	for start := 0; start < len(runes); start++ {
		end := start
		for end < len(runes) && strings.ContainsRune(numerals+"〇幺", runes[end]) {
			end++
		}
		if end-start < least {
			start = max(start, end-1)
			continue
		}
		for i := start; i < end; i++ {
			switch r := runes[i]; r {
			case '〇':
				runes[i] = '0'
			case '幺':
				runes[i] = '1'
			default:
				runes[i] = '0' + rune(strings.IndexRune(numerals, r)/utf8.RuneLen(r))
			}
		}
		start = end
	}
	return string(runes)
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
	add(0, "pass pwd secret token key 密码 口令 密钥",
		`(?i)(?:password|passwd|pwd|secret|token|api[ _-]?key|密码|口令|密钥)["']?\s*[:=：]\s*["']?[^\s"',;)}，。；]{6,}`)
	add(4, "密码 验证码 校验码 口令", `(?:密码|验证码|校验码|口令)[^\d\n]{0,4}\d{4,}`)
	add(0, "authorization", `(?i)authorization["']?\s*:\s*["']?(?:basic|bearer|token)\s+\S{8,}`)
	add(0, "ssh-", `ssh-(?:rsa|ed25519|dss) AAAA`)
	add(0, "ya29. sg.", `\b(?:ya29|SG)\.[A-Za-z0-9_-]{16,}`)
	add(0, "at", `(?i)[a-z0-9]\s*(?:\(at\)|\[at\])\s*[a-z0-9-]+\s*(?:\(dot\)|\[dot\]|\.)\s*[a-z]{2,}`)
	add(0, "at", `(?i)[a-z0-9]\sat\s[a-z0-9-]+\sdot\s[a-z]{2,}`)
	add(0, "室 栋 幢 单元 楼", `(?:路|街|大道|巷|弄|村)\s*\d+\s*(?:号|弄|巷).{0,12}(?:室|栋|幢|单元|楼)`)
	add(0, "住", `(?:我家?|家)住(?:在|址)?[^，。？！\s]{1,20}(?:路|街|巷|弄|号|栋|幢|室|单元|小区|村|镇)`)
	add(1, "street avenue road lane drive boulevard apt", `(?i)\b\d{1,5}[a-z]? (?:[a-z]+ ){1,3}(?:street|avenue|road|lane|drive|boulevard),? (?:apt|apartment|unit|suite|#)`)
	add(0, "pass pwd pin secret token key 密码 口令 密钥 验证码",
		`(?i)(?:password|passwd|passcode|\bpwd|\bpin|secret|token|api[ _-]?key|密码|口令|密钥|验证码)["']?\s*(?:is|was|[:=：]|是|为)\s*["']?[^\s"']*\d`)
	add(0, "@", `[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+\.\p{L}{2,}`)
	add(11, "", `(?:^|\D)(?:86[ .-]?)?1[3-9]\d[ .-]?\d{4}[ .-]?\d{4}(?:\D|$)`)
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
	case n == 11:
		return digits[0] == 1 && digits[1] >= 3
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
