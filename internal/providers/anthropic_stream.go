package providers

import (
	"cmp"
	"io"
	"strings"
)

// anthropicReader reads the answer of the Messages API: events by their type, whatever they are named, or one message.
type anthropicReader struct {
	docs   *documents
	blocks map[int]*anthropicBlock // by Anthropic's index, which counts text and thoughts too
	calls  int
	id     string // of the message
	begun  bool   // something of a message came
	spoke  bool   // and something of an answer
	stop   string // stop_reason, which comes before the end
	counts anthropicCounts
}

// anthropicBlock is a block of content under way.
type anthropicBlock struct {
	call      int    // our index of a tool call, negative for any other block
	input     []byte // arguments that came whole at the start
	pieces    bool   // arguments came in pieces
	thought   strings.Builder
	signature string
}

func newAnthropicStream(body io.ReadCloser, model string, c *client) Stream {
	r := &anthropicReader{docs: newDocuments(body), blocks: map[int]*anthropicBlock{}, counts: noCounts()}
	return &nativeStream{body: body, client: c, read: r.next, ahead: ahead{more: r.docs.buffered}, maker: newChunkMaker(model)}
}

func (r *anthropicReader) next() (nativeStep, error) {
	doc, err := r.docs.next()
	if err != nil {
		return nativeStep{}, err
	}
	if doc.name == "error" && !validObject(doc.data) {
		return nativeStep{}, classify(doc.status, nil, doc.data)
	}
	kind := cmp.Or(unquote(field(doc.data, "type")), doc.name)
	if kind == "error" || field(doc.data, "error") != nil {
		return nativeStep{}, anthropicError(doc.data)
	}
	var st nativeStep
	switch {
	case kind == "", doc.whole && kind != "message":
		return nativeStep{}, &Error{Kind: KindMalformed, Code: "no_message"}
	case doc.whole:
		r.message(&st, doc.data)
		err = r.finish(&st)
	default:
		err = r.event(&st, kind, doc.data)
	}
	r.spoke = r.spoke || st.signal() != SignalNone
	return st, err
}

// event reads one event of a stream. Those of unknown types say nothing.
func (r *anthropicReader) event(st *nativeStep, kind string, data []byte) error {
	index := max(count(data, "index"), 0)
	switch kind {
	case "message_start":
		return r.begin(st, field(data, "message"))
	case "content_block_start":
		r.begun = true
		r.open(st, index, field(data, "content_block"))
	case "content_block_delta":
		r.begun = true
		return r.delta(st, index, field(data, "delta"))
	case "content_block_stop":
		r.shut(st, index)
	case "message_delta":
		r.stop = cmp.Or(unquote(field(field(data, "delta"), "stop_reason")), r.stop)
		r.counts.take(field(data, "usage"))
	case "message_stop":
		return r.finish(st)
	}
	return nil
}

// begin reads the start of a message, which may hold all of it. Some relays repeat it; where another message begins
// within one that has said something, that one was broken off.
func (r *anthropicReader) begin(st *nativeStep, message []byte) error {
	id := unquote(field(message, "id"))
	switch again := r.begun && id == r.id; {
	case r.spoke && id != r.id:
		return &Error{Kind: KindTruncated, Code: "another_message"}
	case !again:
		r.id = id
		r.message(st, message)
	}
	return nil
}

// message reads a whole one, or what there is of it.
func (r *anthropicReader) message(st *nativeStep, data []byte) {
	r.begun = true
	for i, content := range elements(field(data, "content")) {
		r.open(st, i, content)
		r.shut(st, i)
	}
	r.stop = unquote(field(data, "stop_reason"))
	r.counts.take(field(data, "usage"))
}

// open begins a block. What servers run themselves (web search …) is no call for the caller.
func (r *anthropicReader) open(st *nativeStep, index int, content []byte) {
	b := &anthropicBlock{call: -1}
	r.blocks[index] = b
	switch unquote(field(content, "type")) {
	case "text":
		st.Text += unquote(field(content, "text"))
	case "thinking":
		b.think(st, unquote(field(content, "thinking")))
		b.signature = unquote(field(content, "signature"))
	case "redacted_thinking":
		st.Extra = appendThought(st.Extra, "reasoning.encrypted", "data", unquote(field(content, "data")), "")
	case "tool_use":
		b.call = r.calls
		r.calls++
		if input := field(content, "input"); isObject(input) && string(input) != "{}" {
			b.input = append(b.input, input...)
		}
		id := cmp.Or(unquote(field(content, "id")), newID("call_"))
		st.Calls = append(st.Calls, callDelta{Index: b.call, ID: id, Name: unquote(field(content, "name"))})
	}
}

func (b *anthropicBlock) think(st *nativeStep, thought string) {
	st.Reasoning += thought
	b.thought.WriteString(thought)
}

// delta reads the next piece of a block, which some servers don't begin.
func (r *anthropicReader) delta(st *nativeStep, index int, piece []byte) error {
	b := r.blocks[index]
	if b == nil {
		b = &anthropicBlock{call: -1}
		r.blocks[index] = b
	}
	switch unquote(field(piece, "type")) {
	case "text_delta":
		st.Text = unquote(field(piece, "text"))
	case "thinking_delta":
		b.think(st, unquote(field(piece, "thinking")))
		if b.thought.Len() > maxEvent {
			return tooLarge()
		}
	case "signature_delta":
		b.signature += unquote(field(piece, "signature"))
	case "input_json_delta":
		if more := unquote(field(piece, "partial_json")); b.call >= 0 && more != "" {
			b.pieces = true
			st.Calls = []callDelta{{Index: b.call, Arguments: more}}
		}
	}
	return nil
}

// shut ends a block: arguments that didn't come in pieces are given, and a signed thought, for the caller to send back.
func (r *anthropicReader) shut(st *nativeStep, index int) {
	b := r.blocks[index]
	if b == nil {
		return
	}
	delete(r.blocks, index)
	if b.call >= 0 && !b.pieces {
		st.Calls = append(st.Calls, callDelta{Index: b.call, Arguments: cmp.Or(string(b.input), "{}")})
	}
	if b.signature != "" {
		st.Extra = appendThought(st.Extra, "reasoning.text", "text", b.thought.String(), b.signature)
	}
}

// appendThought adds a thought to the reasoning_details that are the extra members of a step.
func appendThought(extra []byte, kind, name, value, signature string) []byte {
	const start = `"reasoning_details":[`
	if len(extra) == 0 {
		extra = append(extra, start...)
	} else {
		extra = append(extra[:len(extra)-1], ',')
	}
	thought := map[string]string{"type": kind, "format": thoughtFormat, name: value}
	if signature != "" {
		thought["signature"] = signature
	}
	return append(append(extra, encode(thought)...), ']')
}

// finish ends the answer. Of one that the window had no room for, not even for its first word, nothing came.
func (r *anthropicReader) finish(st *nativeStep) error {
	st.usage = r.counts.usage()
	switch {
	case !r.begun:
		return &Error{Kind: KindMalformed, Code: "only_message_stop"}
	case r.stop == "model_context_window_exceeded" && !r.spoke && st.signal() == SignalNone:
		return &Error{Kind: KindContextTooLong, Code: r.stop}
	}
	st.Finish = anthropicFinish(r.stop)
	return nil
}

// anthropicFinish is OpenAI's word for a stop reason. A turn that the server paused is not a whole answer.
func anthropicFinish(reason string) string {
	switch reason {
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return "stop"
}

// anthropicError is an error inside a 200, with the status that its type has outside.
func anthropicError(data []byte) *Error {
	status := 0
	switch unquote(field(field(data, "error"), "type")) {
	case "invalid_request_error":
		status = 400
	case "authentication_error":
		status = 401
	case "billing_error":
		status = 402
	case "permission_error":
		status = 403
	case "not_found_error":
		status = 404
	case "request_too_large":
		status = 413
	case "rate_limit_error":
		status = 429
	case "api_error":
		status = 500
	case "timeout_error":
		status = 504
	case "overloaded_error":
		status = 529
	}
	return classify(status, nil, data)
}

// anthropicCounts are the counts of tokens so far; later ones replace earlier ones. Negative: not said. Input that was
// read from the cache or written to it is counted apart from the rest.
type anthropicCounts struct{ input, read, written, output, thought int }

func noCounts() anthropicCounts { return anthropicCounts{-1, -1, -1, -1, -1} }

func (c *anthropicCounts) take(usage []byte) {
	later := func(n *int, object []byte, name string) {
		if m := count(object, name); m >= 0 {
			*n = m
		}
	}
	later(&c.input, usage, "input_tokens")
	later(&c.read, usage, "cache_read_input_tokens")
	later(&c.written, usage, "cache_creation_input_tokens")
	later(&c.output, usage, "output_tokens")
	later(&c.thought, field(usage, "output_tokens_details"), "thinking_tokens")
}

// usage is nil where nothing was counted.
func (c *anthropicCounts) usage() *usage {
	if *c == noCounts() {
		return nil
	}
	return &usage{
		Prompt:     together(c.input, c.read, c.written),
		Completion: c.output, Cached: c.read, Written: c.written, Reasoning: c.thought,
	}
}
