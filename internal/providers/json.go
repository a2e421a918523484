package providers

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// What follows walks JSON in place and allocates nothing. It trusts its input to be valid: ask valid first.

// valid says whether b is one JSON value. gjson is the faster judge but recurses without a bound, so that long
// input goes to encoding/json, which has one.
func valid(b []byte) bool {
	if len(b) > 64<<10 {
		return json.Valid(b)
	}
	return gjson.ValidBytes(b)
}

// validObject says whether b is one JSON object.
func validObject(b []byte) bool {
	i := skipSpace(b, 0)
	return i < len(b) && b[i] == '{' && valid(b)
}

// walker gives the members of an object or the elements of an array, one after another.
type walker struct {
	b []byte
	i int
}

// walk starts at the first member or element of b; a value that is neither object nor array has none.
func walk(b []byte) walker {
	i := skipSpace(b, 0)
	if i >= len(b) || (b[i] != '{' && b[i] != '[') {
		return walker{}
	}
	return walker{b: b, i: i + 1}
}

// member gives the next member: its key without quotes, escapes left in, and its value.
func (w *walker) member() (key, value []byte, ok bool) {
	start, ok := w.start()
	if !ok {
		return nil, nil, false
	}
	end := stringEnd(w.b, start)
	key = w.b[start+1 : end-1]
	from := skipSpace(w.b, end)   // the colon
	from = skipSpace(w.b, from+1) // the value
	w.i = valueEnd(w.b, from)
	return key, w.b[from:w.i], true
}

// element gives the next element of an array.
func (w *walker) element() (value []byte, ok bool) {
	start, ok := w.start()
	if !ok {
		return nil, false
	}
	w.i = valueEnd(w.b, start)
	return w.b[start:w.i], true
}

// start finds the next member or element, false at the closing bracket.
func (w *walker) start() (int, bool) {
	i := skipSpace(w.b, w.i)
	if i < len(w.b) && w.b[i] == ',' {
		i = skipSpace(w.b, i+1)
	}
	return i, i < len(w.b) && w.b[i] != '}' && w.b[i] != ']'
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the index after the string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// valueEnd is the index after the value that begins at i.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
	}
	for i < len(b) && strings.IndexByte(",}] \t\r\n", b[i]) < 0 {
		i++
	}
	return i
}

func nestedEnd(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// field is the value of one member of an object, nil if it is absent or null.
func field(object []byte, name string) []byte {
	for w := walk(object); ; {
		key, value, ok := w.member()
		if !ok {
			return nil
		}
		if string(key) == name {
			return present(value)
		}
	}
}

// present makes null what absent is.
func present(value []byte) []byte {
	if string(value) == "null" {
		return nil
	}
	return value
}

func isString(v []byte) bool { return len(v) > 1 && v[0] == '"' }
func isObject(v []byte) bool { return len(v) > 1 && v[0] == '{' }
func isArray(v []byte) bool  { return len(v) > 1 && v[0] == '[' }

// said is true for a string that isn't empty.
func said(v []byte) bool { return isString(v) && len(v) > 2 }

// isInteger is true for digits alone.
func isInteger(v []byte) bool {
	for _, c := range v {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(v) > 0
}

// unquote decodes a JSON string; any other value gives "".
func unquote(v []byte) string {
	if !isString(v) {
		return ""
	}
	inner := v[1 : len(v)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// number reads a number, also one written as a string, cutting off what follows the point; false for anything else.
func number(v []byte) (int64, bool) {
	if isInteger(v) && len(v) < 19 {
		var n int64
		for _, c := range v {
			n = 10*n + int64(c-'0')
		}
		return n, true
	}
	if len(v) == 0 || strings.IndexByte(`-0123456789"`, v[0]) < 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.Trim(string(v), `"`), 64)
	if err != nil || math.Abs(f) > 1<<53 || math.IsNaN(f) {
		return 0, false
	}
	return int64(f), true
}
