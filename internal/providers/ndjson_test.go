package providers

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// readLines gives all lines of a body and the error that ended it.
func readLines(r io.Reader) (lines []string, err error) {
	n := newNDJSON(r)
	for {
		line, err := n.next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func TestNDJSON(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 2<<20) + `"}`
	tests := []struct {
		name, body string
		lines      []string
		kind       Kind
	}{
		{"lines", "{}\n{\"a\":1}\n", []string{"{}", `{"a":1}`}, KindNone},
		{"CRLF, blanks, a mark", "\ufeff{}\r\n\n \t\n{\"a\":1}\r\n", []string{"{}", `{"a":1}`}, KindNone},
		{"unterminated but whole", "{}\n{\"a\":1}", []string{"{}", `{"a":1}`}, KindNone},
		{"unterminated and cut", "{}\n{\"a\":", []string{"{}"}, KindTruncated},
		{"never JSON", "<html>", nil, KindMalformed},
		{"a line that isn't JSON is for the caller to judge", "oops\n", []string{"oops"}, KindNone},
		{"nothing", "", nil, KindNone},
		{"100 KB and 2 MB", strings.Repeat("[", 100<<10) + "\n" + long + "\n{}\n", []string{strings.Repeat("[", 100<<10), long, "{}"}, KindNone},
		{"above the cap", strings.Repeat("x", maxEvent+1) + "\n{}\n", nil, KindMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines, err := readLines(strings.NewReader(tt.body))
			require.Len(t, lines, len(tt.lines))
			for i, want := range tt.lines {
				require.Equal(t, want, lines[i], "line %d", i)
			}
			if tt.kind == KindNone {
				require.Equal(t, io.EOF, err)
				return
			}
			require.Equal(t, tt.kind, AsError(err).Kind)
		})
	}
}

func TestNDJSONPassesOnWhyReadingFailed(t *testing.T) {
	cause := &Error{Kind: KindTimeout}
	for body, want := range map[string][]string{"{}\n{\"a\"": {"{}"}, "{}\n{\"a\":1}": {"{}", `{"a":1}`}, "": nil} {
		lines, err := readLines(io.MultiReader(strings.NewReader(body), iotest.ErrReader(cause)))
		require.Equal(t, want, lines)
		require.Equal(t, cause, err)
	}
}

// FuzzNDJSON checks that how the bytes arrive changes nothing, that what is given are lines of the body, and that
// nothing after the last LF gets lost without an error.
func FuzzNDJSON(f *testing.F) {
	for _, s := range []string{"{}\n{}\n", "\r\n{\"a\":1}", "{\"a\":", "x\ny\n", "\xef\xbb\xbf{}\n", "null", "{}\n\xff\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := readLines(bytes.NewReader(body))
		byBytes, sameErr := readLines(iotest.OneByteReader(bytes.NewReader(body)))
		require.Equal(t, lines, byBytes)
		require.Equal(t, err, sameErr)
		rest := body
		for _, line := range lines {
			at := bytes.Index(rest, []byte(line))
			require.GreaterOrEqual(t, at, 0)
			rest = rest[at+len(line):]
		}
		last := bytes.TrimSpace(bytes.TrimPrefix(body[bytes.LastIndexByte(body, '\n')+1:], []byte("\xef\xbb\xbf")))
		if len(last) > 0 && errors.Is(err, io.EOF) {
			require.Equal(t, string(last), lines[len(lines)-1])
		}
	})
}

// FuzzOllamaStream checks that no body makes a stream that strict clients can't read, nor one that passes for whole
// without its marker.
func FuzzOllamaStream(f *testing.F) {
	f.Add([]byte(`{"message":{"content":"a","thinking":"b"},"done":false}` + "\n" + `{"done":true,"done_reason":"stop","eval_count":1}` + "\n"))
	f.Add([]byte(`{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":true,"done_reason":"stop"}`))
	f.Add([]byte(`{"error":"x"}`))
	f.Add([]byte(`{"response":"a","done":false}` + "\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		requireSound(t, newOllamaStream(io.NopCloser(bytes.NewReader(body)), "m", &client{}), bytes.Contains(body, []byte("done")))
	})
}

// FuzzDashScopeStream does the same for DashScope.
func FuzzDashScopeStream(f *testing.F) {
	f.Add([]byte("id:1\nevent:result\n:HTTP_STATUS/200\ndata:{\"output\":{\"text\":\"a\",\"finish_reason\":\"stop\"}}\n\n"), true)
	f.Add([]byte("data:{\"output\":{\"choices\":[{\"message\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\"}}]},\"finish_reason\":\"null\"}]}}\n\n"), false)
	f.Add([]byte("event:error\n:HTTP_STATUS/400\ndata:{\"code\":\"x\"}\n\n"), false)
	f.Add([]byte(`{"output":{"text":"a"}}`), false)
	f.Fuzz(func(t *testing.T, body []byte, cumulative bool) {
		call := Call{Model: "m", Options: Options{Cumulative: cumulative}}
		requireSound(t, newDashScopeStream(io.NopCloser(bytes.NewReader(body)), call, &client{}), bytes.Contains(body, []byte("output")))
	})
}

// requireSound asserts what holds for every stream, whatever came in. couldEnd says whether the body has the word
// without which there is no terminal marker.
func requireSound(t *testing.T, s Stream, couldEnd bool) {
	rec := &recorder{Stream: s}
	h := listen(rec)
	requireStrict(t, rec.chunks)
	if errors.Is(h.err, io.EOF) {
		require.NotEmpty(t, h.finish)
		require.True(t, couldEnd)
		return
	}
	require.NotEqual(t, KindNone, AsError(h.err).Kind)
}
