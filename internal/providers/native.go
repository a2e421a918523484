package providers

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// drainLimit is how long a stream that has said how it ends is read on: its connection is of use again only if its
// body was read to the end, and usage may still come.
const drainLimit = 250 * time.Millisecond

// nativeStep is one message of a native dialect in OpenAI's words.
type nativeStep struct {
	delta
	usage    *usage
	logprobs []byte // OpenAI's object, nil for none
}

func (s *nativeStep) empty() bool {
	return s.signal() == SignalNone && s.Finish == "" && len(s.Extra) == 0
}

// nativeStream makes a stream of chunks from the steps of a native dialect.
type nativeStream struct {
	body   io.Closer
	client *client
	read   func() (nativeStep, error) // io.EOF at the end of the body, or any *Error
	maker  *chunkMaker
	ahead
	progress
	called bool   // a tool
	usage  *usage // not told yet
	ended  error  // why there are no more steps
	drain  *time.Timer
}

func (s *nativeStream) Next() (Chunk, error) {
	for s.ended == nil {
		st, err := s.read()
		if st.usage != nil {
			s.usage = st.usage
		}
		if err != nil {
			s.ended = s.client.scrub(err)
		}
		switch {
		case err != nil:
		case s.finish == "" && (!st.empty() || !s.maker.begun):
			return s.chunk(st)
		case s.spent():
			return Chunk{}, nil
		}
	}
	if s.finish != "" && s.usage != nil {
		c := s.maker.usageChunk(*s.usage)
		s.usage = nil
		return c, nil
	}
	return Chunk{}, s.end(s.ended)
}

func (s *nativeStream) chunk(st nativeStep) (Chunk, error) {
	s.called = s.called || len(st.Calls) > 0
	if st.Finish != "" {
		if s.called && st.Finish == "stop" {
			st.Finish = "tool_calls"
		}
		s.endWithin(drainLimit)
	}
	c := s.maker.chunk(st.delta)
	if st.logprobs != nil {
		c.Data = withLogprobs(c.Data, st.logprobs)
	}
	s.note(c)
	return c, nil
}

// endWithin gives the body that long to end, counted anew at every call.
func (s *nativeStream) endWithin(d time.Duration) {
	if s.drain != nil {
		s.drain.Stop()
	}
	s.drain = time.AfterFunc(d, func() { _ = s.body.Close() })
}

// withLogprobs adds them to the one choice of a chunk of ours, which ends with it.
func withLogprobs(chunk, logprobs []byte) []byte {
	const end = "}]}"
	out := append(slices.Clone(chunk[:len(chunk)-len(end)]), `,"logprobs":`...)
	return append(append(out, logprobs...), end...)
}

func (s *nativeStream) Close() error {
	if s.drain != nil {
		s.drain.Stop()
	}
	return s.body.Close()
}

// toolIndex finds out which tool call a piece belongs to: pieces may lack an index, all but the first lack an id, and
// some providers number every call 0.
type toolIndex []toolKey

// toolKey is how the provider calls one call: its index, negative for none, and its id.
type toolKey struct {
	index int
	id    string
}

// of gives our index of a piece, and whether it begins a call.
func (t *toolIndex) of(piece toolKey) (index int, fresh bool) {
	for i, known := range slices.Backward(*t) {
		sameID := piece.id == "" || known.id == "" || piece.id == known.id
		if sameID && (piece.index < 0 || piece.index == known.index) {
			return i, false
		}
	}
	*t = append(*t, piece)
	return len(*t) - 1, true
}

// fields are the members of a request.
type fields map[string]json.RawMessage

// fieldsOf decodes the top of an object; null is as good as absent.
func fieldsOf(raw []byte) fields {
	f := fields{}
	for w := walk(raw); ; {
		key, value, ok := w.member()
		if !ok {
			return f
		}
		if value = present(value); value != nil {
			f[decodeKey(key)] = value
		}
	}
}

// move renames fields; one that is there under its new name already stays.
func (f fields) move(from, to string) {
	if v, ok := f[from]; ok && f[to] == nil {
		f[to] = v
	}
	delete(f, from)
}

// set adds a value of ours.
func (f fields) set(name string, v any) { f[name] = encode(v) }

// encode is v as JSON; v is always something that has JSON.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// unsupported is the refusal of what a dialect can't carry.
func unsupported(param string) *Error {
	return &Error{
		Kind: KindUnsupported, Param: param, Code: "unsupported",
		Message: fmt.Sprintf("This model's provider does not take %s.", param),
	}
}

// strip takes off what has no place in a native request: what travels elsewhere, what checkNative found to say
// nothing, hints that say nothing of the answer (who asks, how it is delivered, stored or billed), and what is held
// back unless it is allowed. A server that reads keys in any case would take STREAM for stream: such a key goes too, but
// for those of the dialect's own.
func (f fields) strip(allow []string, own ...string) {
	for name := range f {
		if fold(name) != name && !slices.Contains(own, name) || !carried(name) || slices.Contains(heldBack(), name) && !slices.Contains(allow, name) {
			delete(f, name)
		}
	}
}

// carried says whether a field has a place in a native request.
func carried(name string) bool {
	switch name {
	case "model", "messages", "stream", "modalities", "functions", "function_call", "logit_bias", "n",
		"stream_options", "user", "store", "metadata", "safety_identifier", "prediction", "moderation",
		"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options":
		return false
	}
	return true
}

// thinking words the wish for deep thinking as the provider takes it; enable_thinking where nothing else is set.
func (f fields) thinking(way string, call Call) {
	t := call.Request.Thinking
	delete(f, "enable_thinking")
	delete(f, "reasoning_effort")
	switch {
	case t.Mode == ThinkingUnset || way == ThinkingByNone || call.Options.NoThinking:
	case way != ThinkingByEffort:
		f.set("enable_thinking", t.Mode == ThinkingOn)
	case t.Effort != "":
		f.set("reasoning_effort", t.Effort)
	case t.Mode == ThinkingOn:
		f.set("reasoning_effort", "medium")
	default:
		f.set("reasoning_effort", "none")
	}
}

// stopList makes the one string of stop a list.
func (f fields) stopList() {
	if stop := f["stop"]; isString(stop) {
		f.set("stop", []string{unquote(stop)})
	}
}

// drop takes out fields that Check has found to say nothing, or that were read already.
func (f fields) drop(names ...string) {
	for _, name := range names {
		delete(f, name)
	}
}

// float is a field's number; false where there is none.
func (f fields) float(name string) (float64, bool) {
	n, err := strconv.ParseFloat(string(f[name]), 64)
	return n, err == nil
}

// asksFor gives the first of the names whose field is there and says something, "" for none. 0, false and medium are
// what happens anyway, but for a seed.
func (f fields) asksFor(names ...string) string {
	for _, name := range names {
		v := f[name]
		usual := string(v) == "false" || unquote(v) == "medium" || isZero(v) && name != "seed"
		if v != nil && !usual {
			return name
		}
	}
	return ""
}

// toolChoice reads tool_choice: auto, also where it is absent, none, required, or function and the name of one. Any
// other is "".
func (f fields) toolChoice() (mode, name string) {
	choice := f["tool_choice"]
	switch mode := unquote(choice); mode {
	case "auto", "none", "required":
		return mode, ""
	case "any":
		return "required", ""
	}
	if choice == nil {
		return "auto", ""
	}
	if name = unquote(field(field(choice, "function"), "name")); name == "" {
		return "", ""
	}
	return "function", name
}

// isZero is true for the number 0, however it is written.
func isZero(v []byte) bool {
	n, err := strconv.ParseFloat(string(v), 64)
	return err == nil && n == 0
}

// checkNative refuses what no native dialect has: audio, legacy functions, web search, other tools than
// functions, unknown roles and parts.
func checkNative(r *Request) error {
	for name, value := range fieldsOf(r.Raw) {
		if asksMore(name, value) {
			return unsupported(name)
		}
	}
	raws := rawMessages(r)
	for i, m := range r.Messages {
		if part := checkNativeMessage(m, raws[i]); part != "" {
			return unsupported(fmt.Sprintf("messages[%d].%s", i, part))
		}
	}
	return nil
}

// rawMessages are the messages as they came, one for each of r.Messages.
func rawMessages(r *Request) [][]byte {
	raws := elements(field(r.Raw, "messages"))
	return append(raws, make([][]byte, max(0, len(r.Messages)-len(raws)))...)
}

func asksMore(name string, value []byte) bool {
	switch name {
	case "audio", "web_search_options":
		return true
	case "functions":
		return len(elements(value)) > 0
	case "function_call":
		return unquote(value) != "none"
	case "modalities":
		return slices.ContainsFunc(elements(value), func(v []byte) bool { return unquote(v) != "text" })
	case "logit_bias":
		w := walk(value)
		_, _, some := w.member()
		return some
	case "tools":
		return slices.ContainsFunc(elements(value), func(v []byte) bool { return unquote(field(v, "type")) != "function" })
	case "response_format":
		return !slices.Contains([]string{"text", "json_object", "json_schema"}, unquote(field(value, "type")))
	}
	return false
}

// checkNativeMessage names the part of a message that can't be carried, "" for none.
func checkNativeMessage(m Message, raw []byte) string {
	if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role) {
		return "role"
	}
	for _, name := range []string{"function_call", "audio"} {
		if field(raw, name) != nil {
			return name
		}
	}
	for i, p := range m.Parts {
		if p.Type != "text" && p.Type != "image_url" && p.Type != "refusal" {
			return fmt.Sprintf("content[%d].type", i)
		}
	}
	return ""
}

// checkArguments names the first tool call of a message whose arguments are no object, "" for none.
func checkArguments(m Message) string {
	for i, c := range m.ToolCalls {
		if c.Arguments != "" && !validObject([]byte(c.Arguments)) {
			return fmt.Sprintf("tool_calls[%d].function.arguments other than an object", i)
		}
	}
	return ""
}

// checkMessages refuses the first message that judge finds something in, and names it.
func checkMessages(r *Request, judge func(Message) string) error {
	for i, m := range r.Messages {
		if part := judge(m); part != "" {
			return unsupported(fmt.Sprintf("messages[%d].%s", i, part))
		}
	}
	return nil
}

// elements are the elements of a JSON array.
func elements(array []byte) [][]byte {
	var out [][]byte
	if !isArray(array) {
		return nil
	}
	for w := walk(array); ; {
		v, ok := w.element()
		if !ok {
			return out
		}
		out = append(out, v)
	}
}

// nativeRole is a role in the words that every native dialect knows.
func nativeRole(role string) string {
	if role == "developer" {
		return "system"
	}
	return role
}

// speaker is how the name of a user goes along in a dialect that has none; "" without one.
func speaker(m Message) string {
	if m.Name == "" {
		return ""
	}
	return m.Name + ":"
}

// spoken is the text of a message; of an answer that was a refusal, the refusal. raw is the message as it came.
func spoken(m Message, raw []byte) string {
	if m.Text != "" {
		return m.Text
	}
	for _, p := range m.Parts {
		if text := unquote(field(p.Raw, "refusal")); text != "" {
			return text
		}
	}
	return unquote(field(raw, "refusal"))
}

// undecodable is what isn't JSON: truncated where nothing ended it, else not the protocol.
func undecodable(open bool) *Error {
	if open {
		return &Error{Kind: KindTruncated, Err: io.ErrUnexpectedEOF}
	}
	return &Error{Kind: KindMalformed, Code: "undecodable"}
}
