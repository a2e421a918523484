package providers

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// watched gives a body in pieces, and counts the reads that break a stream's word not to read.
type watched struct {
	body     []byte
	piece    func() int
	promised bool
	broken   int
}

func (w *watched) Read(p []byte) (int, error) {
	if w.promised {
		w.broken++
	}
	if len(w.body) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), max(w.piece(), 1))], w.body)
	w.body = w.body[n:]
	return n, nil
}

// asked asks a stream before each chunk whether more is buffered, and notes the answers. What brought nothing it
// leaves out, as callers do.
type asked struct {
	Stream
	from      *watched
	yes, none int
}

func (a *asked) Next() (Chunk, error) {
	for {
		a.from.promised = a.Stream.(Buffering).Buffered()
		promised := a.from.promised
		c, err := a.Stream.Next()
		a.from.promised = false
		if promised {
			a.yes++
		}
		if err != nil || c.Data != nil || c.Usage != nil {
			return c, err
		}
		a.none++
	}
}

func dialectStream(d providertest.Dialect, body io.Reader) Stream {
	switch d {
	case providertest.OpenAI:
		return newOpenAIStream(io.NopCloser(body), "m", &client{})
	case providertest.Bedrock:
		return bedrockStreamOf(body, "m")
	}
	return nativeStreamOf(d, body, Options{})
}

// bursts are bodies with everything between chunks that brings none.
func bursts() map[string]struct {
	dialect providertest.Dialect
	body    string
} {
	type burst = struct {
		dialect providertest.Dialect
		body    string
	}
	words := func(word func(string) string, between, end string) string {
		out := word("a")
		for _, w := range strings.Split("b c d e f g h", " ") {
			out += between + word(w)
		}
		return out + end
	}
	openAI := words(func(w string) string { return data(chunkOf(`{"content":"`+w+`"}`, "null")) },
		": ping\n\ndata: null\n\n"+data(`{"id":"x","choices":[]}`)+"event: ping\n\ndata:\n\n", data(chunkOf(`{}`, `"stop"`))+"data: [DONE]\n\n")
	return map[string]burst{
		"openai":         {providertest.OpenAI, openAI},
		"openai, CR LF":  {providertest.OpenAI, strings.ReplaceAll(openAI, "\n", "\r\n")},
		"openai, CR":     {providertest.OpenAI, strings.ReplaceAll(openAI, "\n", "\r")},
		"openai, marked": {providertest.OpenAI, "\xef\xbb\xbf" + openAI},
		"an error line":  {providertest.OpenAI, strings.ReplaceAll(openAI, "data: [DONE]\n\n", "error: {\"message\":\"late\"}\n")},
		"ollama": {providertest.Ollama, words(func(w string) string {
			return `{"message":{"content":"` + w + `"},"done":false}` + "\n"
		}, "\n \r\n\xef\xbb\xbf\n{\"message\":{\"content\":\"\"},\"done\":false}\n", `{"done":true,"done_reason":"stop"}`+"\n")},
		"anthropic": {providertest.Anthropic, words(func(w string) string {
			return events(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + w + `"}}`)
		}, events(`{"type":"ping"}`)+": x\n\n", events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`))},
		"dashscope": {providertest.DashScope, words(func(w string) string {
			return "id:1\nevent:result\n:HTTP_STATUS/200\ndata:{\"output\":{\"text\":\"" + w + "\",\"finish_reason\":\"null\"}}\n\n"
		}, "data:{\"output\":{\"text\":\"\"}}\n\n", "data:{\"output\":{\"text\":\"\",\"finish_reason\":\"stop\"}}\n\n")},
		"gemini": {providertest.Gemini, words(func(w string) string {
			return geminiEvents(`{"candidates":[{"content":{"parts":[{"text":"` + w + `"}]}}]}`)
		}, geminiEvents(`{"candidates":[]}`), geminiEvents(`{"candidates":[{"finishReason":"STOP"}]}`))},
		"bedrock": {providertest.Bedrock, words(func(w string) string {
			return bedrockFrames(`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"` + w + `"}}`)
		}, bedrockFrames(`novel {}`), bedrockFrames(`messageStop {"stopReason":"end_turn"}`, `metadata {}`))},
	}
}

// A stream that says more is buffered doesn't read for it, however its body comes; what it gives is the same.
func TestBufferedIsNeverWrong(t *testing.T) {
	for name, b := range bursts() {
		t.Run(name, func(t *testing.T) {
			for round := range 200 {
				w := &watched{body: []byte(b.body), piece: func() int { return 1 + rand.IntN(2+round*round) }}
				a := &asked{Stream: dialectStream(b.dialect, w), from: w}
				h := listen(a)
				require.ErrorIs(t, h.err, io.EOF)
				require.Equal(t, "abcdefgh", h.text)
				require.Equal(t, "stop", h.finish)
				require.Zero(t, w.broken)
			}
		})
	}
}

// A burst is known as one; at single bytes nothing is ever buffered.
func TestBufferedKnowsABurst(t *testing.T) {
	for name, b := range bursts() {
		t.Run(name, func(t *testing.T) {
			for piece, least := range map[int]int{1 << 20: 7, 1: 0} {
				w := &watched{body: []byte(b.body), piece: func() int { return piece }}
				a := &asked{Stream: dialectStream(b.dialect, w), from: w}
				require.ErrorIs(t, listen(a).err, io.EOF)
				require.GreaterOrEqual(t, a.yes, least)
				if least == 0 {
					require.Zero(t, a.yes)
				}
			}
		})
	}
}

// What an event without a chunk leaves in memory is given back at once, for whoever holds a chunk meanwhile.
func TestANothingIsGivenRatherThanWaitedBehind(t *testing.T) {
	in, out := io.Pipe()
	s := newOpenAIStream(in, "m", &client{})
	go func() {
		_, _ = io.WriteString(out, data(chunkOf(`{"content":"a"}`, "null"))+data(`{"id":"x","choices":[]}`)+": half an ev")
	}()
	c, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, SignalContent, c.Signal)
	require.True(t, s.Buffered())
	c, err = s.Next() // nobody writes any more: waiting would be for ever
	require.NoError(t, err)
	require.Equal(t, Chunk{}, c)
	require.False(t, s.Buffered())
	require.NoError(t, s.Close())
}

func FuzzBuffered(f *testing.F) {
	dialects := append(nativeDialects(), providertest.OpenAI)
	for i, d := range dialects {
		for _, b := range bursts() {
			if b.dialect == d {
				f.Add(uint8(i), []byte(b.body), uint16(300))
			}
		}
	}
	f.Fuzz(func(t *testing.T, dialect uint8, body []byte, piece uint16) {
		d := dialects[int(dialect)%len(dialects)]
		w := &watched{body: body, piece: func() int { return int(piece) }}
		h := listen(&asked{Stream: dialectStream(d, w), from: w})
		require.Zero(t, w.broken)
		plain := listen(dialectStream(d, bytes.NewReader(body)))
		require.Equal(t, plain.text, h.text)
		require.Equal(t, plain.finish, h.finish)
		require.Equal(t, errors.Is(plain.err, io.EOF), errors.Is(h.err, io.EOF))
	})
}
