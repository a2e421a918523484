package providers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// recorded is a recorded stream and what a right reader makes of it.
type recorded struct {
	file, text string
	reasoning  int // characters
	calls      []string
	finish     string
	tokens     string // prompt, completion, total
	kind       Kind   // KindNone: ends well
	terminal   string // the marker before whose last byte it is cut
}

func recordedStreams() []recorded {
	const stop = `"finish_reason":"stop"`
	return []recorded{
		{file: "openai-chat-01-text.sse", text: "Olá!", finish: "stop", tokens: "19 75 94", terminal: stop},
		{file: "openai-chat-02-text.sse", text: "This is a test.", finish: "stop", terminal: stop},
		{file: "openai-chat-06-body-text.json", text: "Why do programmers prefer dark mode? Because light attracts bugs!", finish: "stop", tokens: "10 12 22"},
		{file: "azure-01-text.sse", text: "Oi!", finish: "stop", tokens: "19 149 168", terminal: stop},
		{file: "deepseek-01-text.sse", text: "1, 2, 3.", finish: "stop", tokens: "11 8 19", terminal: stop},
		{file: "deepseek-05-body-reasoning.json", text: "4", reasoning: 42, finish: "stop", tokens: "97 17 114"},
		{file: "dashscope-compat-01-text.sse", text: "tool_ok", finish: "stop", tokens: "1605 2 1607", terminal: stop},
		{file: "llama.cpp-01-text.sse", text: "", finish: "stop", tokens: "196 18 214", terminal: stop},
		{file: "mistral-02-tools.sse", calls: []string{`EscTeQY62 get_weather {"city": "San Francisco"}`}, finish: "tool_calls", tokens: "96 23 119", terminal: `"finish_reason":"tool_calls"`},
		{file: "ollama-v1-01-reasoning-tools.sse", reasoning: 61, calls: []string{`call_5zat23rg weather {"latitude":"48.8575","longitude":"2.3514"}`}, finish: "tool_calls", tokens: "300 45 345", terminal: `"finish_reason":"tool_calls"`},
		{file: "openrouter-02-text.sse", text: "1\n2\n3", finish: "stop", tokens: "15 9 24", terminal: stop},
		{file: "groq-02-reasoning-errorinstream.sse", reasoning: 412, kind: KindToolFailed},
	}
}

func (r recorded) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/openai/" + r.file)
	require.NoError(t, err)
	return b
}

func (r recorded) judge(t testing.TB, got answer) {
	t.Helper()
	if r.kind != KindNone {
		require.Equal(t, r.kind.String(), AsError(got.err).Kind.String())
		require.Len(t, []rune(got.reasoning), r.reasoning)
		return
	}
	require.Equal(t, io.EOF, got.err)
	if r.text != "" || r.calls != nil {
		require.Equal(t, r.text, got.text)
	} else {
		require.NotEmpty(t, got.text)
	}
	require.Len(t, []rune(got.reasoning), r.reasoning)
	require.Equal(t, r.calls, toolCalls(got.chunks))
	require.Equal(t, r.finish, got.finish)
	if r.tokens != "" {
		u := gjson.Parse(got.usage)
		require.Equal(t, r.tokens, fmt.Sprint(u.Get("prompt_tokens"), u.Get("completion_tokens"), u.Get("total_tokens")))
	}
}

func TestRecordedStreams(t *testing.T) {
	for _, r := range recordedStreams() {
		t.Run(r.file, func(t *testing.T) {
			body := r.bytes(t)
			r.judge(t, readAnswer(t, bytes.NewReader(body)))
			r.judge(t, readAnswer(t, iotest.OneByteReader(bytes.NewReader(body))))
			crlf := bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))
			r.judge(t, readAnswer(t, bytes.NewReader(crlf)))
		})
	}
}

// A recording that is cut, wherever, by an end or by a reset, is never passed off as an answer; behind its finish
// reason nothing is missing any more.
func TestRecordedStreamsCutAnywhere(t *testing.T) {
	reset := errors.New("reset")
	for _, r := range recordedStreams() {
		t.Run(r.file, func(t *testing.T) {
			body := r.bytes(t)
			whole := bytes.TrimRight(body, "\r\n")
			enough := len(whole)
			if r.terminal != "" {
				at := bytes.Index(body, []byte(r.terminal))
				require.Positive(t, at)
				enough = at + bytes.IndexByte(body[at:], '\n') // the marker's line, all of it
			}
			for cut := 0; cut < len(whole); cut += 1 + len(whole)/800 {
				for _, end := range []io.Reader{strings.NewReader(""), iotest.ErrReader(reset)} {
					err := endOf(openAIReader(t, io.MultiReader(bytes.NewReader(body[:cut]), end)))
					if cut >= enough && r.kind == KindNone {
						continue
					}
					require.NotEqual(t, io.EOF, err, "cut at %d of %d", cut, len(body))
					kind := AsError(err).Kind
					failing := r.kind != KindNone && (kind == r.kind || kind == KindServerError) // half of an error is one
					require.True(t, kind == KindTruncated || failing, "cut at %d: %v", cut, err)
				}
			}
		})
	}
}

// Chunks of a stream that is right travel as the very bytes that came.
func TestRightStreamsTravelAsBytes(t *testing.T) {
	for _, file := range []string{"openai-chat-01-text.sse", "openai-chat-02-text.sse", "azure-01-text.sse", "llama.cpp-01-text.sse"} {
		body := recorded{file: file}.bytes(t)
		got := readAnswer(t, bytes.NewReader(body))
		require.NotEmpty(t, got.chunks)
		for _, c := range got.chunks {
			require.Contains(t, string(body), "data: "+c+"\n", file)
		}
	}
}
