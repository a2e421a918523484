package cache

import (
	"regexp"
	"strings"
	"sync"
)

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
	add(4, "", `(?:^|\D)(?:86[ .-]?)?1[3-9]\d[ .,/·—–_-]?\d{4}[ .,/·—–_-]?\d{4}(?:\D|$)`)
	add(7, "+", `\+\d{1,3}[ .-]?\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,4}`)
	add(10, "", `(?:^|[^\d.])\(?[2-9]\d{2}\)?[ .-]\d{3}[ .-]\d{4}(?:\D|$)`)
	add(10, "", `(?:^|\D)0\d{2,3}[ -]\d{7,8}(?:\D|$)`)
	add(9, "", `(?:^|\D)\d{3}-\d{2}-\d{4}(?:\D|$)`)
	add(17, "", `(?:^|\D)[1-9]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?:[^\dA-Za-z]|$)`)
	add(4, "", `\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b`)
	add(8, "", `\b[EG]\d{8}\b`)
	add(0, "pass pwd pw", `(?i)\b(?:password|passwd|passcode|passphrase|pwd|pw|pass)(?:'s|\b.{0,24}\bis\b)?["'\s:=,]{1,4}(?:[a-z!@#$%]{2,}\d|\d+[a-z]|\d{4,})`)
	add(0, "password= passwd= pwd= secret= token= key= session cookie sid=", `(?i)(?:password|passwd|pwd|secret|token|key|session_?id|sid)=[^\s&?]{3,}`)
	add(3, "otp cvv cvc code 验证码", `(?i)(?:\b(?:otp|cvv|cvc|one-time code|the code|your code|verification code)\b|验证码)(?:\W{0,3}(?:is|是|为))?\W{0,3}\d{3}[ -]?\d{0,5}`)
	add(9, "ssn social", `(?i)(?:ssn|social security)\D{0,14}\d{3}[ -]?\d{2}[ -]?\d{4}`)
	add(6, "passport license licence", `(?i)(?:passport|licen[sc]e)\D{0,16}\d{6,}`)
	add(1, "dob", `(?i)\bdob\b\W{0,3}\d`)
	add(0, "curl mysql psql", `(?i)(?:curl\b.*\s-u\s*\S+:\S|(?:mysql|mariadb)\b.*\s-p\S)`)
	add(0, "phrase 助记词", `(?i)(?:(?:seed|recovery|mnemonic) phrase|助记词)(?: is)?\s*[:：]\s*(?:[a-z]+ ){8}`)
	add(0, "gmail qq 163 126 outlook hotmail sina foxmail icloud yahoo", `(?i)[a-z0-9_]\s*(?:@|#|艾特)\s*(?:gmail|qq|163|126|outlook|hotmail|sina|foxmail|icloud|yahoo)`)
	add(5, "qq", `(?i)qq\D{0,4}[1-9]\d{5,11}(?:\D|$)`)
	add(0, "微信", `微信号?[ :：是为]*[A-Za-z][A-Za-z0-9_-]*[0-9_][A-Za-z0-9_-]*`)
	add(0, "密码 口令", `(?:密码|口令)[^\s，。？！]{0,5}?(?:[A-Za-z]{2,}\d{2,}|\d{2,}[A-Za-z]{2,})`)
	add(4, "后四位 尾号", `(?:后四位|尾号)\D{0,3}\d{4}`)
	add(1, "我家 家在 我住", `(?:我家?|家)(?:住|在)[^，。？！\s]{1,20}(?:路|街|巷|道)\d+号`)
	add(1, "live address", `(?i)\b(?:(?:i|we) live (?:at|on|in)|my address\W{1,3}(?:is )?|our address\W{1,3}(?:is )?)\s*\d`)
	add(1, "", `[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-Z][ ·.]?[A-Z0-9]{5,6}(?:[^A-Za-z0-9]|$)`)
	return out
})
