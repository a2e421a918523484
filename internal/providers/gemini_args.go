package providers

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// geminiArgs are the arguments of a tool call that come value by value, as Vertex AI sends them if asked to: each with
// its path, long strings in pieces. They are told when they are whole.
type geminiArgs struct {
	open bool
	json []byte
	path string // of a string that goes on, "" for none
}

// begin starts with what came at once.
func (a *geminiArgs) begin(args []byte) {
	*a = geminiArgs{open: true, json: []byte("{}")}
	if isObject(args) {
		a.json = bytes.Clone(args)
	}
}

// take adds the values of partialArgs. What has no place in an object of a sane size is malformed.
func (a *geminiArgs) take(partial []byte) error {
	for _, arg := range elements(partial) {
		path, ok := sjsonPath(unquote(field(arg, "jsonPath")))
		if !ok {
			return &Error{Kind: KindMalformed, Code: "json_path"}
		}
		out, err := sjson.SetRawBytes(a.json, path, a.value(arg, path))
		if err != nil || len(out) > maxEvent {
			return tooLarge()
		}
		a.json, a.path = out, ""
		if string(field(arg, "willContinue")) == "true" {
			a.path = path
		}
	}
	return nil
}

// value is the one that an element of partialArgs brings; of a string that goes on, all of it so far.
func (a *geminiArgs) value(arg []byte, path string) []byte {
	for _, name := range []string{"numberValue", "boolValue"} {
		if v := field(arg, name); v != nil {
			return v
		}
	}
	text := field(arg, "stringValue")
	if text == nil {
		return []byte("null")
	}
	if a.path != path {
		return text
	}
	return appendString(nil, gjson.GetBytes(a.json, path).Str+unquote(text))
}

// maxIndex bounds the lists in arguments: one number must not make a list of millions.
const maxIndex = 4096

// sjsonPath is a path like $.steps[0].name or $['a b'] as sjson takes it; false for what isn't one.
func sjsonPath(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "$")
	var out []string
	for ok && rest != "" {
		var key string
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			key, rest = sjsonKey(rest[1:end]), rest[end:]
		case '[':
			key, rest, ok = strings.Cut(rest[1:], "]")
			if quoted := strings.Trim(key, `'"`); quoted != key {
				key = sjsonKey(quoted)
			} else if n, err := strconv.Atoi(key); err != nil || n < 0 || n > maxIndex {
				ok = false
			}
		default:
			ok = false
		}
		out = append(out, key)
		ok = ok && key != ""
	}
	return strings.Join(out, "."), ok && len(out) > 0 && len(out) < 100
}

// sjsonKey escapes a key for sjson; a number is marked as one, "" stays.
func sjsonKey(key string) string {
	if isInteger([]byte(key)) {
		return ":" + key
	}
	var b strings.Builder
	for _, r := range key {
		if strings.ContainsRune(`\.*?|#@!:{}[]()=<>%`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
