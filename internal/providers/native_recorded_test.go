package providers

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

func nativeFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return b
}

// nativeRecording is a recorded stream and what it says. Its name begins with its dialect.
type nativeRecording struct {
	name       string
	cumulative bool
	text       string
	reasoning  int // characters
	tools      []string
	finish     string
	usage      [2]int64
}

func nativeRecordings() []nativeRecording {
	return []nativeRecording{
		{name: "dashscope/01-text.sse", text: "OK", finish: "stop", usage: [2]int64{16, 1}},
		{name: "dashscope/02-text.sse", text: "Hello! The answer to 2+2 is 4.", finish: "stop", usage: [2]int64{28, 13}},
		{
			name: "dashscope/03-tools.sse", finish: "tool_calls", usage: [2]int64{252, 20},
			tools: []string{`call_355b7a9ccc024c71a743ab get_current_weather_test {"city": "Beijing"}`},
		},
		{name: "dashscope/04-text-cumulative.sse", cumulative: true, text: "1, 2, 3, 4, 5.", finish: "stop", usage: [2]int64{19, 14}},
		{name: "dashscope/05-text.sse", text: "1, 2, 3, 4, 5.", finish: "stop", usage: [2]int64{19, 14}},
		{
			name: "ollama/01-text.ndjson", finish: "stop", usage: [2]int64{16, 51},
			text: "Okay, here's a joke about OpenTelemetry:\n\nWhy did the OpenTelemetry team break up? \n\nBecause they couldn't " +
				"stop arguing about the *trace path*! \n\n---\n\nWould you like to hear another one? 😊",
		},
		{
			name: "ollama/02-text.ndjson", finish: "stop", usage: [2]int64{17, 71},
			text: "A joke about OpenTelemetry! Here's one:\n\nWhy did the OpenTelemetry Span go to therapy?\n\nBecause it was feeling " +
				"\"distributed\" and wanted to get to the \"root cause\" of its problems!\n\n(Sorry, I know it's a bit of a \"stretch\"... " +
				"OpenTelemetry jokes are still in the early stages of development!)",
		},
		{
			name: "ollama/03-text.ndjson", finish: "stop", usage: [2]int64{17, 50},
			text: "Why did the OpenTelemetry agent go to therapy?\n\nBecause it was feeling traced out and needed some instrumentation in " +
				"its life!\n\n(Sorry, I know it's a bit of a stretch, but I hope it brought a smile to your face!)",
		},
		{name: "anthropic/01-text.sse", text: "2", finish: "stop", usage: [2]int64{20, 5}},
		{name: "anthropic/02-text.sse", text: "1\n2\n3", finish: "stop", usage: [2]int64{15, 9}},
		{
			name: "anthropic/03-reasoning.sse", reasoning: 150, finish: "stop", usage: [2]int64{50, 93},
			text: "2 + 2 = 4\n\nThis is a basic addition problem: when you combine two groups of 2, you get a total of 4.",
		},
		{name: "gemini/01-text.sse", text: "It's 40 C in Florence, Italy. \n", finish: "stop", usage: [2]int64{148, 12}},
		{name: "gemini/02-text.sse", text: "The temperature in Paris is 30°C.\n", finish: "stop", usage: [2]int64{79, 12}},
	}
}

func (r nativeRecording) dialect() providertest.Dialect {
	name, _, _ := strings.Cut(r.name, "/")
	return providertest.Dialect(name)
}

func (r nativeRecording) read(body io.Reader) Stream {
	return nativeStreamOf(r.dialect(), body, Options{Cumulative: r.cumulative})
}

// nativeStreamOf reads a body as a provider of the dialect does.
func nativeStreamOf(d providertest.Dialect, body io.Reader, o Options) Stream {
	rc, c := io.NopCloser(body), &client{}
	switch d {
	case providertest.Ollama:
		return newOllamaStream(rc, "m", c)
	case providertest.Anthropic:
		return newAnthropicStream(rc, "m", c)
	case providertest.Gemini:
		return newGeminiStream(rc, "m", c)
	}
	return newDashScopeStream(rc, Call{Model: "m", Options: o}, c)
}

// whole is how many bytes hold no terminal marker.
func (r nativeRecording) whole(body []byte) int {
	marker := map[providertest.Dialect]string{
		providertest.DashScope: `"finish_reason":"` + r.finish, providertest.Ollama: `"done":true`,
		providertest.Anthropic: `"message_stop"`, providertest.Gemini: `"finishReason"`,
	}[r.dialect()]
	at := bytes.LastIndex(body, []byte(marker))
	return at + bytes.LastIndexByte(body[at:], '}')
}

func TestNativeRecordingsAtTheWire(t *testing.T) {
	for _, r := range nativeRecordings() {
		for _, piece := range []int{0, 1, 7} {
			t.Run(r.name, func(t *testing.T) {
				p, _ := nativeTest(t, r.dialect(), providertest.Behaviour{Body: string(nativeFile(t, r.name)), Piece: piece})
				call := nativeCall(t, nativeHi)
				call.Options.Cumulative = r.cumulative
				h, chunks := nativeAsk(t, p, call)
				require.ErrorIs(t, h.err, io.EOF)
				require.Equal(t, r.text, h.text)
				require.Len(t, []rune(h.reasoning), r.reasoning)
				require.Equal(t, r.finish, h.finish)
				counted := [2]int64{gjson.Get(h.usage, "prompt_tokens").Int(), gjson.Get(h.usage, "completion_tokens").Int()}
				require.Equal(t, r.usage, counted)
				require.Equal(t, r.tools, toolCalls(chunks))
				requireStrict(t, chunks)
			})
		}
	}
}

// Short recordings are cut at every byte, by an end and by a reset in turn.
func TestNativeRecordingsCutAnywhereAreTruncated(t *testing.T) {
	for _, r := range nativeRecordings() {
		body := nativeFile(t, r.name)
		stride := 1 + len(body)/3000*20
		for n := rand.IntN(stride); n < r.whole(body); n += stride {
			var in io.Reader = bytes.NewReader(body[:n])
			if n/stride%2 == 1 {
				in = io.MultiReader(in, failing{&Error{Kind: KindTruncated}})
			}
			h := listen(r.read(in))
			if AsError(h.err).Kind != KindTruncated || h.finish != "" || !strings.HasPrefix(r.text, h.text) {
				t.Fatalf("%s cut at %d: %q, finish %q, %v", r.name, n, h.text, h.finish, h.err)
			}
		}
	}
}

// failing is a reader that gives nothing but an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestNativeRecordingsCutAtTheWire(t *testing.T) {
	for _, r := range nativeRecordings() {
		t.Run(r.name, func(t *testing.T) {
			body := nativeFile(t, r.name)
			p, u := nativeTest(t, r.dialect())
			for range 12 {
				n := rand.IntN(r.whole(body)-1) + 1
				for _, end := range []providertest.End{providertest.EndCut, providertest.EndEOF} {
					u.Play(providertest.Behaviour{Body: string(body[:n]), End: end})
					call := nativeCall(t, nativeHi)
					call.Options.Cumulative = r.cumulative
					h, _ := nativeAsk(t, p, call)
					require.Equal(t, KindTruncated, AsError(h.err).Kind, "cut at %d: %v", n, h.err)
				}
			}
		})
	}
}
