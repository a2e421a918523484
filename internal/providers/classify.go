package providers

import "net/http"

// classify says what a provider's error is: its HTTP status (0 or 200 for one inside a stream), its headers (nil for
// none) and its body, JSON of any of the known shapes or text. An error inside a 200 takes the status its body names.
func classify(status int, header http.Header, body []byte) *Error {
	return &Error{Kind: kindOfStatus(status), Status: status}
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
