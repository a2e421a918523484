package providers

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// fault is what an error body says, whatever its shape.
type fault struct {
	status    int      // an HTTP status that the body names, 0 for none
	code      string   // the provider's own code, or its type where it has none
	weak      bool     // a better code may take the place of this one
	codes     []string // everything that may name a kind: codes, types, reasons
	message   string   // for the caller
	text      string   // message and more, to look for words
	param     string
	quotaIDs  []string      // Gemini's
	retry     time.Duration // Gemini's
	moderated bool          // OpenRouter's reasons of a moderation
}

// maxFaultText is as much of an error's text as is looked at.
const maxFaultText = 4 << 10

// readFault reads an error body. A page has nothing to say.
func readFault(body []byte) fault {
	var f fault
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if !valid(body) {
		body = eventData(body)
	}
	if isArray(body) && valid(body) {
		w := walk(body)
		body, _ = w.element()
	}
	switch {
	case validObject(body):
		f.readObject(body, 0)
	case !isMarkup(body):
		f.message = string(body[:min(len(body), maxFaultText)])
		f.text = f.message
	}
	f.text = f.text[:min(len(f.text), maxFaultText)]
	return f
}

// eventData is the data of the first event, for an error that came as a stream; else body itself.
func eventData(body []byte) []byte {
	ev, err := newSSE(bytes.NewReader(body)).next()
	if err != nil || !valid(ev.data) {
		return body
	}
	return ev.data
}

// readObject reads one object of an error body, and the ones inside it.
func (f *fault) readObject(object []byte, depth int) {
	for w := walk(object); ; {
		key, value, ok := w.member()
		if !ok {
			break
		}
		if value = present(value); value == nil {
			continue
		}
		switch name := string(key); name {
		case "error", "detail", "message", "Message", "msg", "error_msg", "errorMessage", "detailMessage", "status_msg":
			f.readText(name, value, depth)
		case "code", "type", "status", "status_code", "error_type", "error_code", "reason", "__type", "http_status":
			f.readCode(name, value)
		case "param":
			f.param = unquote(value)
		case "metadata":
			f.readMetadata(value)
		case "details":
			f.readDetails(value)
		case "innererror": // more of the same error: only its code counts
			f.add(unquote(field(value, "code")))
		case "response", "base_resp", "errors":
			f.nested(value, depth)
		}
	}
}

// readText takes a text, or the object or JSON that stands in its place.
func (f *fault) readText(name string, value []byte, depth int) {
	if !isString(value) {
		f.nested(value, depth)
		if f.message == "" && name != "error" {
			f.message = string(value[:min(len(value), maxFaultText)])
		}
		return
	}
	text := unquote(value)
	if inner := []byte(strings.TrimSpace(text)); validObject(inner) {
		f.nested(inner, depth)
		return
	}
	if f.message == "" || name == "message" {
		f.message = text
	}
	f.text += text + "\n"
	f.readPrefix(text)
}

// nested reads an object inside an error, or the objects of an array.
func (f *fault) nested(value []byte, depth int) {
	if depth < 4 && isObject(value) {
		f.readObject(value, depth+1)
	}
	for w := walk(value); depth < 4 && isArray(value); {
		element, ok := w.element()
		if !ok {
			return
		}
		f.nested(element, depth+1)
	}
}

// readPrefix reads DashScope's "<400> InternalError.Algo.DataInspectionFailed: …".
func (f *fault) readPrefix(text string) {
	if !strings.HasPrefix(text, "<") {
		return
	}
	number, rest, ok := strings.Cut(text[1:], "> ")
	if n, err := strconv.Atoi(number); ok && err == nil {
		f.setStatus(n)
		code, _, _ := strings.Cut(rest, ":")
		f.add(code)
	}
}

func (f *fault) readCode(name string, value []byte) {
	text := strings.Trim(string(value), `"`)
	n, numeric := number(value)
	if numeric {
		f.setStatus(int(n))
	}
	f.add(text)
	weak := text == "error" || numeric && n < 600 // says nothing that the status doesn't
	if f.code == "" || f.weak || name == "code" && !weak {
		f.code, f.weak = text, weak
	}
}

func (f *fault) setStatus(n int) {
	if n >= 400 && n < 600 && f.status == 0 {
		f.status = n
	}
}

// add takes one more code; AWS writes theirs with a namespace before and a URL behind.
func (f *fault) add(code string) {
	code = code[strings.LastIndexByte(code, '#')+1:]
	code, _, _ = strings.Cut(code, ":")
	if code = strings.TrimSpace(code); code != "" && len(code) <= 128 {
		f.codes = append(f.codes, code)
	}
}

// amazon takes the type of an error that AWS writes into a header; it is the code where the body has none.
func (f *fault) amazon(kind string) {
	before := len(f.codes)
	if f.add(kind); f.code == "" && len(f.codes) > before {
		f.code = f.codes[before]
	}
}

// readMetadata reads OpenRouter's: why it moderated, and what the provider behind it said.
func (f *fault) readMetadata(value []byte) {
	f.moderated = f.moderated || isArray(field(value, "reasons"))
	if raw := unquote(field(value, "raw")); raw != "" {
		f.text += raw + "\n"
	}
}

// readDetails reads Google's list of details.
func (f *fault) readDetails(value []byte) {
	for w := walk(value); ; {
		d, ok := w.element()
		if !ok || !isArray(value) {
			return
		}
		f.add(unquote(field(d, "reason")))
		if delay, err := time.ParseDuration(unquote(field(d, "retryDelay"))); err == nil {
			f.retry = delay
		}
		for v := walk(field(d, "violations")); ; {
			violation, ok := v.element()
			if !ok {
				break
			}
			f.quotaIDs = append(f.quotaIDs, unquote(field(violation, "quotaId")))
		}
	}
}

// maxRetryAfter bounds what a provider may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter is how long the provider asks to wait, 0 where it doesn't say. It says so on other statuses too, 200
// among them, where it means nothing.
func retryAfter(status int, header http.Header, f *fault) time.Duration {
	if status == 0 {
		status = f.status
	}
	if status != 429 && status != 503 && status != 529 {
		return 0
	}
	waits := []time.Duration{
		seconds(header.Get("Retry-After-Ms"), time.Millisecond),
		seconds(header.Get("Retry-After"), time.Second),
		untilDate(header),
		f.retry,
	}
	for _, d := range waits {
		if d > 0 {
			return min(d, maxRetryAfter)
		}
	}
	return 0
}

func seconds(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
}

// untilDate reads a date, by the server's own clock where it tells it.
func untilDate(header http.Header) time.Duration {
	at, err := http.ParseTime(header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return at.Sub(now)
}
