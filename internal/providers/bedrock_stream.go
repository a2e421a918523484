package providers

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strings"
)

// bedrockReader reads the answer of ConverseStream, frame by frame, or the one body of Converse.
type bedrockReader struct {
	body   *sseReader   // looks at the first byte
	frames *frameReader // nil until then
	whole  bool         // the body was one object, and is read
	signed bool         // thoughts may be Claude's, whose signature goes to the caller
	blocks map[int]*bedrockBlock
	calls  int
	begun  bool // something of a message came
	spoke  bool // and something of an answer
}

// bedrockBlock is a block of content under way.
type bedrockBlock struct {
	call      int  // our index of a tool call, negative for any other block
	pieces    bool // some of its arguments came
	thought   strings.Builder
	signature string
}

func newBedrockStream(body io.ReadCloser, model string, c *client) Stream {
	signed := modelVersion(model, "claude") > 0 || strings.HasPrefix(model, "arn:")
	r := &bedrockReader{body: newSSE(body), signed: signed, blocks: map[int]*bedrockBlock{}}
	return &nativeStream{body: body, client: c, read: r.next, ahead: ahead{more: r.buffered}, maker: newChunkMaker(model)}
}

func (r *bedrockReader) next() (nativeStep, error) {
	if r.whole {
		return nativeStep{}, io.EOF
	}
	if r.frames == nil {
		switch first, err := r.body.first(); {
		case err != nil:
			return nativeStep{}, err
		case first == '{':
			return r.one()
		case first == '<':
			return nativeStep{}, &Error{Kind: KindMalformed, Code: "html"}
		case first > maxEvent>>24: // of the length of a frame
			return nativeStep{}, undecodable(false)
		}
		r.frames = newFrameReader(r.body.raw())
	}
	f, err := r.frames.next()
	switch {
	case err != nil:
		return nativeStep{}, err
	case f.kind == "exception" || f.kind == "error":
		return nativeStep{}, bedrockError(f)
	case f.kind != "event" || !validObject(f.data):
		return nativeStep{}, undecodable(false)
	}
	var st nativeStep
	err = r.event(&st, f.name, f.data)
	r.spoke = r.spoke || st.signal() != SignalNone
	return st, err
}

func (r *bedrockReader) buffered() bool { return r.frames != nil && r.frames.buffered() }

// event reads one event. Those of unknown names say nothing.
func (r *bedrockReader) event(st *nativeStep, name string, data []byte) error {
	index := max(count(data, "contentBlockIndex"), 0)
	switch name {
	case "messageStart":
		r.begun = true
	case "contentBlockStart":
		r.begun = true
		r.open(st, index, field(field(data, "start"), "toolUse"))
	case "contentBlockDelta":
		r.begun = true
		return r.delta(st, index, field(data, "delta"))
	case "contentBlockStop":
		r.shut(st, index)
	case "messageStop":
		return r.finish(st, unquote(field(data, "stopReason")))
	case "metadata":
		st.usage = bedrockUsage(field(data, "usage"))
	}
	return nil
}

// block is the block of an index; one of text begins without an event.
func (r *bedrockReader) block(index int) *bedrockBlock {
	b := r.blocks[index]
	if b == nil {
		b = &bedrockBlock{call: -1}
		r.blocks[index] = b
	}
	return b
}

// open begins a call of a tool, if use is one. What the provider runs itself is no call for the caller.
func (r *bedrockReader) open(st *nativeStep, index int, use []byte) {
	delete(r.blocks, index)
	b := r.block(index)
	if use == nil || unquote(field(use, "type")) == "server_tool_use" {
		return
	}
	b.call = r.calls
	r.calls++
	id := cmp.Or(unquote(field(use, "toolUseId")), newID("call_"))
	st.Calls = append(st.Calls, callDelta{Index: b.call, ID: id, Name: unquote(field(use, "name"))})
}

// delta reads the next piece of a block.
func (r *bedrockReader) delta(st *nativeStep, index int, piece []byte) error {
	b := r.block(index)
	st.Text = unquote(field(piece, "text"))
	if thought := field(piece, "reasoningContent"); thought != nil {
		st.Reasoning = unquote(field(thought, "text"))
		b.thought.WriteString(st.Reasoning)
		b.signature += unquote(field(thought, "signature"))
		if b.thought.Len() > maxEvent {
			return tooLarge()
		}
	}
	if more := unquote(field(field(piece, "toolUse"), "input")); b.call >= 0 && more != "" {
		b.pieces = true
		st.Calls = append(st.Calls, callDelta{Index: b.call, Arguments: more})
	}
	return nil
}

// shut ends a block: arguments that never came are given, and a signed thought, for the caller to send back.
func (r *bedrockReader) shut(st *nativeStep, index int) {
	b := r.block(index)
	delete(r.blocks, index)
	if b.call >= 0 && !b.pieces {
		st.Calls = append(st.Calls, callDelta{Index: b.call, Arguments: "{}"})
	}
	if b.signature != "" && r.signed {
		st.Extra = appendThought(st.Extra, "reasoning.text", "text", b.thought.String(), b.signature)
	}
}

// finish ends the answer. Of one that the window had no room for, not even for its first word, nothing came.
func (r *bedrockReader) finish(st *nativeStep, reason string) error {
	switch {
	case !r.begun:
		return &Error{Kind: KindMalformed, Code: "only_message_stop"}
	case reason == "malformed_tool_use":
		return &Error{Kind: KindToolFailed, Code: reason}
	case reason == "malformed_model_output":
		return &Error{Kind: KindMalformed, Code: reason}
	case reason == "model_context_window_exceeded" && !r.spoke && st.signal() == SignalNone:
		return &Error{Kind: KindContextTooLong, Code: reason}
	}
	st.Finish = bedrockFinish(reason)
	return nil
}

// bedrockFinish is OpenAI's word for a stop reason.
func bedrockFinish(reason string) string {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "guardrail_intervened", "content_filtered":
		return "content_filter"
	}
	return "stop"
}

// one reads a body that is one object: an answer of Converse, or an error inside a 200.
func (r *bedrockReader) one() (nativeStep, error) {
	data, err := r.body.rest()
	if err != nil {
		return nativeStep{}, err
	}
	if !validObject(data) {
		return nativeStep{}, undecodable(true)
	}
	r.whole = true
	message := field(field(data, "output"), "message")
	if message == nil {
		return nativeStep{}, bedrockRefusal(data)
	}
	st := nativeStep{usage: bedrockUsage(field(data, "usage"))}
	r.begun = true
	for i, content := range elements(field(message, "content")) {
		r.content(&st, i, content)
	}
	return st, r.finish(&st, unquote(field(data, "stopReason")))
}

// content reads a whole block.
func (r *bedrockReader) content(st *nativeStep, index int, content []byte) {
	st.Text += unquote(field(content, "text"))
	for _, cited := range elements(field(field(content, "citationsContent"), "content")) {
		st.Text += unquote(field(cited, "text"))
	}
	use := field(content, "toolUse")
	r.open(st, index, use)
	b := r.block(index)
	if input := field(use, "input"); b.call >= 0 && isObject(input) {
		b.pieces = true
		st.Calls = append(st.Calls, callDelta{Index: b.call, Arguments: string(input)})
	}
	thought := field(field(content, "reasoningContent"), "reasoningText")
	b.thought.WriteString(unquote(field(thought, "text")))
	b.signature = unquote(field(thought, "signature"))
	st.Reasoning += b.thought.String()
	r.shut(st, index)
}

// bedrockRefusal is a JSON body that is no answer.
func bedrockRefusal(data []byte) *Error {
	for _, name := range []string{"message", "Message", "__type", "error"} {
		if field(data, name) != nil {
			return classify(exceptionStatus(unquote(field(data, "__type"))), nil, data)
		}
	}
	return &Error{Kind: KindMalformed, Code: "no_output"}
}

// bedrockError is an exception inside a 200, with the status that it has outside.
func bedrockError(f frame) *Error {
	data := bytes.TrimSpace(f.data)
	if f.text != "" {
		data = encode(map[string]string{"message": f.text})
	}
	return classify(exceptionStatus(f.name), http.Header{"X-Amzn-Errortype": {f.name}}, data)
}

// exceptionStatus is the HTTP status of one of Bedrock's exceptions, 0 for an unknown one. A stream spells their names
// otherwise than a header does.
func exceptionStatus(name string) int {
	name = name[strings.LastIndexByte(name, '#')+1:]
	switch strings.TrimSuffix(normal(name), "exception") {
	case "validation", "servicequotaexceeded":
		return 400
	case "accessdenied", "unrecognizedclient", "expiredtoken", "invalidsignature":
		return 403
	case "resourcenotfound":
		return 404
	case "modeltimeout":
		return 408
	case "modelerror", "modelstreamerror":
		return 424
	case "throttling", "modelnotready":
		return 429
	case "internalserver":
		return 500
	case "serviceunavailable":
		return 503
	}
	return 0
}

// bedrockUsage is nil where nothing was counted. Input that was read from the cache or written to it is counted apart
// from the rest.
func bedrockUsage(u []byte) *usage {
	input, output := count(u, "inputTokens"), count(u, "outputTokens")
	if input < 0 && output < 0 {
		return nil
	}
	read, written := count(u, "cacheReadInputTokens"), count(u, "cacheWriteInputTokens")
	return &usage{
		Prompt: together(input, read, written), Completion: output,
		Cached: read, Written: written, Reasoning: -1,
	}
}
