package providers

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	maxMessage = 1 << 10
	maxCode    = 64
	removed    = "[removed]"
)

// patterns find what must not leave: keys and their masked forms, tokens, ids of accounts and people. They are
// compiled at the first error, not at the start of the process.
//
//nolint:gochecknoglobals // a constant, made late
var patterns = sync.OnceValue(func() (p struct{ always, digits, labelled *regexp.Regexp }) {
	p.always = regexp.MustCompile(strings.Join([]string{
		`\b(?:sk|gsk|xai|nvapi|hf)[-_][A-Za-z0-9][A-Za-z0-9_\-*.]{4,}`,
		`\bAIza[A-Za-z0-9_\-]{10,}`,
		`\b(?:AKIA|ASIA)[A-Z0-9]{12,}`,
		`\b(?i:bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}`,
		`\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+`,
		`[^\s"'<>]*\*{3,}[^\s"'<>]*`,
		`\barn:aws[^\s"',]*`,
		`\b[0-9]{12}\b`,
		`\b[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+\.[A-Za-z]{2,}\b`,
		`\b(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b`,
		`\b[0-9a-f]{32,}\b`,
		`https?://[^\s/"']*@[^\s"']*`,
	}, "|"))
	// Of these only such as have a digit: user_messages is a word.
	p.digits = regexp.MustCompile(`\b(?:pk|rk|ak|org|proj|user|acct|team|key)[-_][A-Za-z0-9][A-Za-z0-9_\-.]{4,}`)
	// Whatever stands behind these words, which stay.
	p.labelled = regexp.MustCompile("(?i)\\b((?:api[ _-]?key|key provided|organi[sz]ation|account|" +
		"(?:tenant|workspace|project|team|user)[ _-]?id)(?:[ _-]?id)?\\s*[:=]\\s*[\"'`]?)[^\\s\"'`,;)]{3,}")
	return p
})

// cleanMessage is a provider's text as a caller may see it: without keys and ids, without control characters, 1 KB
// at most.
func cleanMessage(s string) string {
	s = s[:min(len(s), maxFaultText)]
	s = strings.ToValidUTF8(s, "")
	p := patterns()
	s = p.always.ReplaceAllString(s, removed)
	s = p.digits.ReplaceAllStringFunc(s, func(id string) string {
		if strings.ContainsAny(id, "0123456789") {
			return removed
		}
		return id
	})
	s = p.labelled.ReplaceAllString(s, "${1}"+removed)
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(cut(s, maxMessage))
}

// cut shortens s to at most n bytes, between runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cleanCode is a provider's code as the log may have it: short, one word. Anything else is dropped.
func cleanCode(s string) string {
	if len(s) > maxCode || cleanMessage(s) != s {
		return ""
	}
	for _, r := range s {
		if !isWord(r) && !strings.ContainsRune(".:-#/", r) {
			return ""
		}
	}
	return s
}

// cleanParam is the name or path of a field: messages[0].content.
func cleanParam(s string) string {
	if len(s) > 2*maxCode || cleanMessage(s) != s {
		return ""
	}
	for _, r := range s {
		if !isWord(r) && !strings.ContainsRune(".:-[]$/ ", r) {
			return ""
		}
	}
	return s
}

func isWord(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
