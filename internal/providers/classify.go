package providers

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// classify says what a provider's error is: its HTTP status (0 or 200 for one inside a stream), its headers (nil for
// none) and its body, JSON of any of the known shapes or text. An error inside a 200 takes the status its body names.
func classify(status int, header http.Header, body []byte) *Error {
	if status/100 == 2 {
		status = 0
	}
	f := readFault(body)
	f.amazon(header.Get("X-Amzn-Errortype"))
	shown := status
	if shown == 0 {
		shown = f.status
	}
	return &Error{
		Kind:       f.kind(status),
		Status:     shown,
		RetryAfter: retryAfter(status, header, &f),
		Code:       cleanCode(f.code),
		Param:      cleanParam(f.param),
		Message:    cleanMessage(f.message),
	}
}

// kind judges by content, then by status. What a generic type says counts only where there is no status.
func (f *fault) kind(status int) Kind {
	if status == 0 || vague(status) && f.status != 0 && f.status != 400 && f.status != 422 {
		status = f.status
	}
	if status == http.StatusRequestEntityTooLarge {
		return KindContextTooLong
	}
	text := strings.ToLower(f.text)
	if k := f.kindOfQuota(status, text); k != KindNone {
		return k
	}
	if k := f.kindOfCodes(status, text); k != KindNone {
		return k
	}
	if k := kindOfText(status, unquoted(text)); k != KindNone {
		return k
	}
	if status != 0 {
		return kindOfStatus(status)
	}
	return f.kindOfType()
}

// vague are statuses behind which relays hide the real one.
func vague(status int) bool { return status == 400 || status == 500 || status == 502 }

// kindOfQuota tells a daily cap from a window of time, which share status and code.
func (f *fault) kindOfQuota(status int, text string) Kind {
	for _, id := range f.quotaIDs {
		if strings.Contains(id, "PerDay") {
			return KindQuota
		}
		if strings.Contains(id, "PerMinute") || strings.Contains(id, "PerHour") {
			return KindRateLimited
		}
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	daily := strings.Contains(text, "per day") || strings.Contains(text, "per-day") || strings.Contains(text, "daily limit") ||
		strings.Contains(text, "daily quota")
	for _, w := range words {
		daily = daily || w == "rpd" || w == "tpd" || w == "ipd"
	}
	if daily && (status == 429 || f.status == 429 || strings.Contains(text, "limit") || strings.Contains(text, "quota")) {
		return KindQuota
	}
	return KindNone
}

// kindOfCodes looks codes and types up, each as a whole and by its parts, the last first:
// InternalError.Algo.DataInspectionFailed.
func (f *fault) kindOfCodes(status int, text string) Kind {
	if f.moderated {
		return KindContentPolicy
	}
	for _, code := range f.codes {
		parts := strings.Split(code, ".")
		for i := len(parts) - 1; i >= -1; i-- {
			key := normal(code)
			if i >= 0 {
				key = normal(parts[i])
			}
			k := kindOfCode(key)
			switch {
			case k == KindNone:
			case key == "allocationquota" && strings.Contains(text, "free"):
				return KindQuota
			case k == KindAuth && status == 403: // also what a balance or a filter says
				return cmp.Or(only(kindOfText(status, text), KindQuota, KindContentPolicy), k)
			default:
				return k
			}
		}
	}
	return KindNone
}

// only is k if it is one of those named.
func only(k Kind, named ...Kind) Kind {
	if slices.Contains(named, k) {
		return k
	}
	return KindNone
}

// normal is a code in lower case, letters and digits alone: RateLimitExceeded is rate_limit_exceeded.
func normal(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, code)
}

// kindOfText looks for the words that providers use where their codes say nothing. 401 needs no words.
func kindOfText(status int, text string) Kind {
	if status == 401 || text == "" {
		return KindNone
	}
	for _, rule := range textKinds() {
		if rule.kind == KindOverloaded && status == 400 {
			continue
		}
		for _, words := range rule.words {
			if strings.Contains(text, words) {
				return rule.kind
			}
		}
	}
	model := strings.Contains(text, "model") || strings.Contains(text, "deployment")
	if model && status < 500 && (strings.Contains(text, "not found") || strings.Contains(text, "not exist")) {
		return KindModelMissing
	}
	return KindNone
}

// unquoted takes out what stands in quotes: it may be the caller's own words, and must not decide.
func unquoted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		opens := c == '"' || c == '`' || c == '\'' && (i == 0 || strings.IndexByte(" ([:,=", text[i-1]) >= 0)
		if opens {
			if n := strings.IndexByte(text[i+1:], c); n >= 0 {
				i += n + 1
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// kindOfStatus is what a status means where the content names no kind.
func kindOfStatus(status int) Kind {
	switch {
	case status == 401 || status == 403:
		return KindAuth
	case status == 402:
		return KindQuota
	case status == 404:
		return KindModelMissing
	case status == 408 || status == 504:
		return KindTimeout
	case status == 413:
		return KindContextTooLong
	case status == 429:
		return KindRateLimited
	case status == 503 || status == 529:
		return KindOverloaded
	case status >= 400 && status < 500:
		return KindBadRequest
	case status >= 300 && status < 400: // a redirect, which is not followed
		return KindMalformed
	}
	return KindServerError
}

// kindOfType reads the generic types, for an error that has no status.
func (f *fault) kindOfType() Kind {
	for _, code := range f.codes {
		switch normal(code) {
		case "invalidrequesterror", "badrequesterror", "badrequest", "invalidparameter", "invalidargument", "validationerror",
			"validationexception", "invalidrequest", "invalidvalue", "invalidparametererror":
			return KindBadRequest
		}
	}
	return KindServerError
}

// isMarkup says that a body is a page, not an answer.
func isMarkup(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n\ufeff"), []byte("<"))
}
