package providers

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// delta is what one step of a native dialect brings, in OpenAI's words.
type delta struct {
	Text, Reasoning, Refusal string
	Calls                    []callDelta
	Finish                   string
	Extra                    []byte // further members, as JSON, a comma between two
}

// callDelta is a tool call, or the next piece of one. ID and Name are set in the first piece of an index only.
type callDelta struct {
	Index               int
	ID, Name, Arguments string
	Extra               []byte // further members, as JSON, a comma between two
}

// usage counts tokens as OpenAI does: Cached and Written, which went into the provider's cache, are part of Prompt,
// Reasoning part of Completion. Negative: not known.
type usage struct {
	Prompt, Completion, Total, Cached, Reasoning int
	Written                                      int // 0 is not known either: few providers have it
}

// chunkMaker makes the chunks of one stream: the same id, created and model in all, the role in the first.
type chunkMaker struct {
	head  []byte
	buf   []byte
	usage []byte
	begun bool
}

func newChunkMaker(model string) *chunkMaker {
	head := fmt.Appendf(nil, `{"id":%q,"object":"chat.completion.chunk","created":%d,"model":`, newID("chatcmpl-"), time.Now().Unix())
	head = appendString(head, model)
	return &chunkMaker{head: append(head, `,"choices":[{"index":0,"delta":{`...)}
}

// newID is an id of our own for what the provider gave none.
func newID(prefix string) string { return prefix + rand.Text() }

// chunk makes one chunk, valid until the next one is made.
func (m *chunkMaker) chunk(d delta) Chunk {
	b := append(m.buf[:0], m.head...)
	if !m.begun {
		m.begun = true
		b = append(b, `"role":"assistant",`...)
	}
	b = appendMember(b, "reasoning_content", d.Reasoning)
	b = appendMember(b, "content", d.Text)
	b = appendMember(b, "refusal", d.Refusal)
	b = appendCalls(b, d.Calls)
	b = append(b, d.Extra...)
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	b = append(b, `},"finish_reason":`...)
	if d.Finish == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, d.Finish)
	}
	m.buf = append(b, "}]}"...)
	return Chunk{Data: m.buf, Signal: d.signal(), Finish: d.Finish}
}

func (d *delta) signal() Signal {
	switch {
	case d.Text != "" || d.Refusal != "" || len(d.Calls) > 0:
		return SignalContent
	case d.Reasoning != "":
		return SignalReasoning
	}
	return SignalNone
}

// appendMember adds a member and a comma, or nothing for an empty value.
func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `":`...)
	return append(appendString(b, value), ',')
}

func appendCalls(b []byte, calls []callDelta) []byte {
	if len(calls) == 0 {
		return b
	}
	b = append(b, `"tool_calls":[`...)
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(c.Index), 10)
		if c.ID != "" {
			b = append(b, `,"id":`...)
			b = append(appendString(b, c.ID), `,"type":"function"`...)
		}
		b = append(b, `,"function":{`...)
		b = appendMember(b, "name", c.Name)
		b = append(b, `"arguments":`...)
		b = append(appendString(b, c.Arguments), '}')
		if len(c.Extra) > 0 {
			b = append(append(b, ','), c.Extra...)
		}
		b = append(b, '}')
	}
	return append(b, "],"...)
}

// appendString adds s as a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
		}
		if esc := escape(c, size); esc != "" {
			b = append(append(b, s[from:i]...), esc...)
			from = i + size
		}
		i += size
	}
	return append(append(b, s[from:]...), '"')
}

// escape is how a JSON string has to write a rune, "" for as it is.
func escape(c rune, size int) string {
	switch {
	case c == '"':
		return `\"`
	case c == '\\':
		return `\\`
	case c == '\n':
		return `\n`
	case c == '\r':
		return `\r`
	case c == '\t':
		return `\t`
	case c < ' ':
		return fmt.Sprintf(`\u%04x`, c)
	case c == utf8.RuneError && size == 1: // no UTF-8
		return "\ufffd"
	}
	return ""
}

// usageChunk makes the chunk that brings only usage. An unknown total is the sum; a count that isn't known is left out,
// and the total with it.
func (m *chunkMaker) usageChunk(u usage) Chunk {
	known := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	switch {
	case u.Prompt < 0 || u.Completion < 0:
		u.Total = -1
	case u.Total <= 0:
		u.Total = u.Prompt + u.Completion
	}
	type promptDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens,omitempty"`
	}
	type completionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	}
	out := struct {
		Prompt     *int               `json:"prompt_tokens,omitempty"`
		Completion *int               `json:"completion_tokens,omitempty"`
		Total      *int               `json:"total_tokens,omitempty"`
		PromptD    *promptDetails     `json:"prompt_tokens_details,omitempty"`
		CompletedD *completionDetails `json:"completion_tokens_details,omitempty"`
	}{Prompt: known(u.Prompt), Completion: known(u.Completion), Total: known(u.Total)}
	if u.Cached >= 0 {
		out.PromptD = &promptDetails{u.Cached, max(u.Written, 0)}
	}
	if u.Reasoning >= 0 {
		out.CompletedD = &completionDetails{u.Reasoning}
	}
	m.usage, _ = json.Marshal(out)
	return Chunk{Usage: m.usage}
}

// progress is what a stream has said so far; it decides how its end counts.
type progress struct {
	signal Signal // the most that came
	finish string
}

func (p *progress) note(c Chunk) {
	p.signal = max(p.signal, c.Signal)
	if p.finish == "" {
		p.finish = c.Finish
	}
}

// end is what Next gives at the end of a stream: io.EOF after a terminal marker, KindEmpty if it said nothing and
// stopped, else cause, or KindTruncated where there is none.
func (p *progress) end(cause error) error {
	switch {
	case p.finish == "stop" && p.signal == SignalNone:
		return &Error{Kind: KindEmpty}
	case p.finish != "":
		return io.EOF
	case cause == nil || errors.Is(cause, io.EOF):
		return &Error{Kind: KindTruncated, Err: io.ErrUnexpectedEOF}
	}
	return AsError(cause)
}
