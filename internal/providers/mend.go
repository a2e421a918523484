package providers

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// mender turns a provider's chunks into chunks that strict clients read. A chunk that is right already stays as it
// is; any other is written anew from its parts, members that it doesn't know included.
type mender struct {
	asked string // the model that was asked for, for a provider that names none

	id, created, model []byte // raw JSON, the same in all chunks
	begun              bool   // the first chunk is out, and with it the role
	calls              callTable
	progress           progress
	called             bool // a tool call has begun

	out     []byte
	compact bytes.Buffer
}

// take turns one event's JSON object into a chunk. Data and Usage nil: nothing that travels. An *Error is what the
// object says went wrong.
func (m *mender) take(data []byte) (Chunk, error) {
	data = m.oneLine(data)
	v := look(data)
	if m.failed(&v) {
		return Chunk{}, classify(0, nil, data)
	}
	c := Chunk{Usage: mendUsage(v.usage)}
	if v.choice.raw == nil {
		return c, nil
	}
	finish, bad := finishOf(v.choice.finish)
	if bad != KindNone {
		return Chunk{}, &Error{Kind: bad, Code: cleanCode(finish)}
	}
	m.substitute(&v.choice)
	return m.chunk(data, &v, c, finish), nil
}

// failed says that the object is an error. One beside an answer that ended for lack of room or by a filter isn't:
// that answer is known to be incomplete.
func (m *mender) failed(v *view) bool {
	if v.fault != nil {
		finish, _ := finishOf(v.choice.finish)
		return finish != "length" && finish != "content_filter"
	}
	return string(v.object) == `"error"` || v.said && v.choices == nil && v.usage == nil && v.object == nil
}

// substitute finds the delta: where there is none, or an empty one before anything was said, a message stands in for
// it, or the bare text of a completion.
func (m *mender) substitute(c *choiceView) {
	c.d = lookDelta(c.delta)
	if m.progress.signal == SignalNone && c.d.empty() && isObject(c.message) {
		c.d, c.delta = lookDelta(c.message), nil
	}
	if c.text != nil && c.d.content == nil {
		c.d.content, c.delta = c.text, nil
	}
}

// chunk gives the chunk of a choice: the same bytes if they are right.
func (m *mender) chunk(data []byte, v *view, c Chunk, finish string) Chunk {
	if m.id == nil {
		m.fix(v)
	}
	d := &v.choice.d
	callsRight := m.calls.take(d.calls)
	c.Signal = m.signal(d)
	if m.progress.finish != "" { // a second one is dropped, with all that says nothing
		finish = ""
		if c.Signal == SignalNone {
			return c
		}
	}
	c.Finish = finish
	if callsRight && m.right(v, finish) && utf8.Valid(data) {
		c.Data = data
	} else {
		c.Data = m.rebuild(data, v, finish)
	}
	m.begun = true
	m.called = m.called || len(m.calls.pieces) > 0
	m.progress.note(c)
	return c
}

func (m *mender) signal(d *deltaView) Signal {
	text, thought := d.content, d.reasoning
	if isArray(text) || isObject(text) {
		s, r := partsText(text)
		if s != "" {
			return SignalContent
		}
		text = nil
		if r != "" {
			return SignalReasoning
		}
	}
	switch {
	case said(text), said(d.refusal), len(m.calls.pieces) > 0, isObject(d.function), isObject(d.audio):
		return SignalContent
	case said(thought):
		return SignalReasoning
	}
	return SignalNone
}

// right says that the chunk, tool calls aside, is one that a strict client reads after those before it.
func (m *mender) right(v *view, finish string) bool {
	c := &v.choice
	d := &c.d
	sameStream := bytes.Equal(v.id, m.id) && bytes.Equal(v.created, m.created) && bytes.Equal(v.model, m.model) &&
		string(v.object) == `"chat.completion.chunk"`
	oneChoice := !v.others && string(c.index) == "0" && c.delta != nil && c.message == nil && c.text == nil && c.usage == nil
	finishRight := c.finishKey && (c.finish == nil && finish == "" || quotes(c.finish, finish) && finish != "")
	role := string(d.role) == `"assistant"` && !m.begun || !d.roleKey && m.begun
	content := (d.content == nil || isString(d.content)) && !d.alias
	return sameStream && oneChoice && finishRight && role && content && v.usage == nil && !v.faultKey
}

// fix settles what all chunks of the stream have in common.
func (m *mender) fix(v *view) {
	m.id = bytes.Clone(v.id)
	if !said(v.id) {
		m.id = appendString(nil, newID("chatcmpl-"))
	}
	m.model = bytes.Clone(v.model)
	if !said(v.model) {
		m.model = appendString(nil, m.asked)
	}
	m.created = bytes.Clone(v.created)
	if !isInteger(v.created) || string(v.created) == "0" {
		n, ok := number(v.created)
		if !ok || n <= 0 {
			n = time.Now().Unix()
		}
		m.created = strconv.AppendInt(nil, n, 10)
	}
}

// finishing is the chunk with the finish reason that the provider left out.
func (m *mender) finishing() Chunk {
	finish := "stop"
	if m.called {
		finish = "tool_calls"
	}
	if m.id == nil {
		m.fix(&view{})
	}
	m.calls.take(nil)
	c := Chunk{Finish: finish}
	c.Data = m.rebuild(nil, &view{}, finish)
	m.progress.note(c)
	return c
}

// rebuild writes a chunk from its parts.
func (m *mender) rebuild(data []byte, v *view, finish string) []byte {
	b := append(m.out[:0], `{"id":`...)
	b = append(b, m.id...)
	b = append(append(b, `,"object":"chat.completion.chunk","created":`...), m.created...)
	b = append(append(b, `,"model":`...), m.model...)
	b = appendOthers(b, data, topMembers)
	b = append(b, `,"choices":[{"index":0,"delta":{`...)
	b = m.appendDelta(b, &v.choice.d)
	b = append(b, '}')
	b = appendOthers(b, v.choice.raw, choiceMembers)
	b = append(b, `,"finish_reason":`...)
	if finish == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, finish)
	}
	m.out = append(b, "}]}"...)
	if !utf8.Valid(m.out) {
		m.out = bytes.ToValidUTF8(m.out, []byte("\ufffd"))
	}
	return m.out
}

func (m *mender) appendDelta(b []byte, d *deltaView) []byte {
	start := len(b)
	if !m.begun {
		b = append(b, `,"role":"assistant"`...)
	}
	content, thought := d.content, d.reasoning
	switch {
	case isArray(content) || isObject(content):
		text, more := partsText(content)
		b = appendString(append(b, `,"content":`...), text)
		if more != "" && !said(thought) {
			b = appendString(append(b, `,"reasoning_content":`...), more)
		}
	case isString(content):
		b = append(append(b, `,"content":`...), content...)
	}
	if said(thought) {
		b = append(append(b, `,"reasoning_content":`...), thought...)
	}
	if len(m.calls.pieces) > 0 {
		b = m.calls.appendPieces(append(b, `,"tool_calls":`...))
	}
	b = appendOthers(b, d.raw, deltaMembers)
	if len(b) > start { // the first comma
		b = append(b[:start], b[start+1:]...)
	}
	return b
}

// The members that rebuild writes itself; all others are copied.
func topMembers(key []byte) bool {
	switch string(key) {
	case "id", "object", "created", "model", "choices", "usage", "error":
		return true
	}
	return false
}

func choiceMembers(key []byte) bool {
	switch string(key) {
	case "index", "delta", "message", "text", "finish_reason", "usage":
		return true
	}
	return false
}

func deltaMembers(key []byte) bool {
	switch string(key) {
	case "role", "content", "reasoning_content", "reasoning", "thinking", "tool_calls":
		return true
	}
	return false
}

// appendOthers copies the members of an object that known doesn't name.
func appendOthers(b, object []byte, known func([]byte) bool) []byte {
	for w := walk(object); ; {
		key, value, ok := w.member()
		if !ok {
			return b
		}
		if !known(key) {
			b = appendRaw(b, key, value)
		}
	}
}

// oneLine takes line ends out of JSON: they would break the event it becomes.
func (m *mender) oneLine(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	m.compact.Reset()
	if json.Compact(&m.compact, data) != nil {
		return data
	}
	return m.compact.Bytes()
}

// partsText joins the text and the thinking of a content that came as parts.
func partsText(content []byte) (text, thinking string) {
	if isObject(content) {
		return partText(content)
	}
	var t, r strings.Builder
	for w := walk(content); ; {
		part, ok := w.element()
		if !ok {
			return t.String(), r.String()
		}
		a, b := partText(part)
		t.WriteString(a)
		r.WriteString(b)
	}
}

// partText is the text or the thinking of one part; thinking may be parts itself.
func partText(part []byte) (text, thinking string) {
	if isString(part) {
		return unquote(part), ""
	}
	if inner := field(part, "thinking"); inner != nil {
		if isString(inner) {
			return "", unquote(inner)
		}
		text, thinking = partsText(inner)
		return "", text + thinking
	}
	return unquote(field(part, "text")), ""
}

// finishOf is OpenAI's word for a finish reason, "" for none. Those that mean a failure come with its kind.
func finishOf(raw []byte) (string, Kind) {
	if n, ok := number(raw); ok && !isString(raw) {
		return finishNumber(n), KindNone
	}
	switch s := string(bytes.Trim(raw, `"`)); s {
	case "", "null":
		return "", KindNone
	case "stop", "length", "tool_calls", "content_filter", "function_call":
		return s, KindNone
	case "STOP", "eos", "eos_token", "end_turn", "stop_sequence":
		return "stop", KindNone
	case "MAX_TOKENS", "max_tokens", "model_length", "model_context_window_exceeded":
		return "length", KindNone
	case "tool_use":
		return "tool_calls", KindNone
	case "SAFETY", "sensitive", "refusal", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII":
		return "content_filter", KindNone
	case "insufficient_system_resource":
		return s, KindOverloaded
	case "error", "abort", "network_error":
		return s, KindServerError
	default:
		return unquote(raw), KindNone
	}
}

// finishNumber reads Gemini's enumeration.
func finishNumber(n int64) string {
	switch n {
	case 0:
		return ""
	case 2:
		return "length"
	case 3, 4, 7, 8, 9:
		return "content_filter"
	}
	return "stop"
}
