package providers

import (
	"io"
	"strings"
	"unicode/utf8"
)

// dashScopeReader reads DashScope's answer.
type dashScopeReader struct {
	docs  *documents
	tools toolIndex
	grown *grown // nil unless each event repeats the whole text
}

func newDashScopeStream(body io.ReadCloser, call Call, c *client) Stream {
	r := &dashScopeReader{docs: newDocuments(body)}
	if call.Options.Cumulative && !call.Options.NoStream {
		r.grown = &grown{arguments: map[int]string{}}
	}
	return &nativeStream{body: body, client: c, read: r.next, ahead: ahead{more: r.docs.buffered}, maker: newChunkMaker(call.Model)}
}

// next reads one document. That a body of one document is whole is as good as a finish reason.
func (r *dashScopeReader) next() (nativeStep, error) {
	doc, err := r.docs.next()
	if err != nil {
		return nativeStep{}, err
	}
	if doc.name == "error" {
		return nativeStep{}, classify(doc.status, nil, doc.data)
	}
	st, err := r.step(doc.data)
	if err == nil && doc.whole && st.Finish == "" {
		st.Finish = "stop"
	}
	return st, err
}

// step reads one result: {"output": {"choices": [{"message", "finish_reason"}]} or {"text", "finish_reason"}, "usage"}.
func (r *dashScopeReader) step(data []byte) (nativeStep, error) {
	output := field(data, "output")
	if code := field(data, "code"); said(code) || output == nil {
		return nativeStep{}, dashScopeError(data, code)
	}
	var st nativeStep
	st.usage = dashScopeUsage(field(data, "usage"))
	choice, message := output, output
	text := field(output, "text")
	if choices := elements(field(output, "choices")); len(choices) > 0 {
		choice, message = choices[0], field(choices[0], "message")
		text = field(message, "content")
		st.logprobs = field(choice, "logprobs")
	}
	st.Text = contentText(text)
	st.Reasoning = unquote(field(message, "reasoning_content"))
	finish, bad := finishOf(field(choice, "finish_reason"))
	if bad != KindNone {
		return nativeStep{}, &Error{Kind: bad, Code: finish}
	}
	st.Finish = finish
	if r.grown != nil {
		r.grown.take(&st)
	}
	for _, c := range elements(field(message, "tool_calls")) {
		if piece, ok := r.piece(c); ok {
			st.Calls = append(st.Calls, piece)
		}
	}
	return st, nil
}

// dashScopeError is the error in a 200; one without a code is an object that isn't the protocol.
func dashScopeError(data, code []byte) error {
	if said(code) || field(data, "error") != nil || field(data, "message") != nil {
		status, _ := number(field(data, "status_code"))
		return classify(int(status), nil, data)
	}
	return &Error{Kind: KindMalformed, Code: "no_output"}
}

// contentText is content as a string, or as the multimodal path's array of {"text": …}.
func contentText(content []byte) string {
	if isString(content) {
		return unquote(content)
	}
	var b strings.Builder
	for _, part := range elements(content) {
		b.WriteString(unquote(field(part, "text")))
	}
	return b.String()
}

// piece reads an entry of tool_calls; false for one that adds nothing.
func (r *dashScopeReader) piece(entry []byte) (callDelta, bool) {
	id := unquote(field(entry, "id"))
	function := field(entry, "function")
	index, fresh := r.tools.of(toolKey{count(entry, "index"), id})
	piece := callDelta{Index: index, Arguments: unquote(field(function, "arguments"))}
	if r.grown != nil {
		piece.Arguments = r.grown.more(index, piece.Arguments)
	}
	if fresh {
		if piece.ID = id; id == "" {
			piece.ID = newID("call_")
		}
		piece.Name = unquote(field(function, "name"))
	}
	return piece, fresh || piece.Arguments != ""
}

func dashScopeUsage(u []byte) *usage {
	if u == nil {
		return nil
	}
	return &usage{
		Prompt: count(u, "input_tokens"), Completion: count(u, "output_tokens"), Total: count(u, "total_tokens"),
		Cached:    count(field(u, "prompt_tokens_details"), "cached_tokens"),
		Reasoning: count(field(u, "output_tokens_details"), "reasoning_tokens"),
	}
}

// grown makes increments of texts that are repeated whole in each event.
type grown struct {
	text, reasoning string
	arguments       map[int]string
}

// take leaves in st what is new in its text and reasoning.
func (g *grown) take(st *nativeStep) {
	last := st.Finish != ""
	st.Text = increment(&g.text, st.Text, last)
	st.Reasoning = increment(&g.reasoning, st.Reasoning, last)
}

// more is what is new in the arguments of a tool call.
func (g *grown) more(index int, now string) string {
	before := g.arguments[index]
	out := increment(&before, now, true)
	g.arguments[index] = before
	return out
}

// increment is what now has beyond before, which is moved on. What was said can't be taken back: where now rewrites
// it, only what is longer counts, in characters. Half a character at the end, which shows as U+FFFD, waits for its
// other half unless this is the last text.
func increment(before *string, now string, last bool) string {
	if !last {
		now = strings.TrimRight(now, "\ufffd")
	}
	if more, ok := strings.CutPrefix(now, *before); ok {
		*before = now
		return more
	}
	skip := utf8.RuneCountInString(*before)
	for i := range now {
		if skip == 0 {
			*before = now
			return now[i:]
		}
		skip--
	}
	return ""
}
