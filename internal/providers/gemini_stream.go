package providers

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"
)

// geminiReader reads Gemini's answer: server-sent events, the JSON array of a server that doesn't know alt=sse, or one
// object.
type geminiReader struct {
	docs   *documents
	stream *nativeStream
	calls  int
	args   geminiArgs // of the last call, while it is open
	// finish is the reason that came, and is told at the end: some models give one in every chunk, and go on.
	finish string
	goes   bool // it did go on behind one
	ended  bool // the finish is told
}

func newGeminiStream(body io.ReadCloser, model string, c *client) Stream {
	r := &geminiReader{docs: newDocuments(body)}
	r.stream = &nativeStream{body: body, client: c, read: r.next, ahead: ahead{more: r.docs.buffered}, maker: newChunkMaker(model)}
	return r.stream
}

// next reads one document. After a finish reason the body has some time to end.
func (r *geminiReader) next() (nativeStep, error) {
	if r.ended {
		return nativeStep{}, io.EOF
	}
	doc, err := r.docs.next()
	if err != nil {
		return r.end(err, r.goes || r.docs.array != nil)
	}
	st, err := r.step(doc)
	if err != nil {
		return r.end(err, r.goes)
	}
	if r.finish != "" && r.docs.array == nil {
		r.stream.endWithin(afterFinish)
	}
	return st, nil
}

// end tells the finish reason that came, or why there is none. Where a finish reason isn't the last word (a model that
// gives one in every chunk, an array that lacks its end) only the proper end of the body is.
func (r *geminiReader) end(err error, strict bool) (nativeStep, error) {
	if r.finish == "" || strict && !errors.Is(err, io.EOF) {
		return nativeStep{}, err
	}
	r.ended = true
	return nativeStep{delta: delta{Finish: r.finish}}, nil
}

// step reads one response: {"candidates": [{"content": {"parts"}, "finishReason"}], "usageMetadata", "promptFeedback"}.
func (r *geminiReader) step(doc document) (nativeStep, error) {
	if doc.name == "error" || field(doc.data, "error") != nil {
		return nativeStep{}, classify(doc.status, nil, doc.data)
	}
	candidates, counts := elements(field(doc.data, "candidates")), field(doc.data, "usageMetadata")
	if err := geminiBlocked(field(doc.data, "promptFeedback")); err != nil {
		return nativeStep{}, err
	}
	if len(candidates) == 0 && counts == nil && !hasMember(doc.data, "candidates") {
		return nativeStep{}, &Error{Kind: KindMalformed, Code: "no_candidates"}
	}
	st := nativeStep{usage: geminiUsage(counts)}
	finish := ""
	for _, c := range candidates {
		if count(c, "index") > 0 {
			continue
		}
		for _, part := range elements(field(field(c, "content"), "parts")) {
			if err := r.part(&st, part); err != nil {
				return st, err
			}
		}
		var bad Kind
		if finish, bad = geminiFinish(field(c, "finishReason")); bad != KindNone {
			return st, &Error{Kind: bad, Code: cleanCode(finish)}
		}
		break
	}
	r.goes = r.goes || r.finish != "" && st.signal() != SignalNone
	if r.finish = cmp.Or(finish, r.finish); r.finish == "" && doc.whole {
		r.finish = "stop"
	}
	if r.finish != "" {
		r.shut(&st)
	}
	return st, nil
}

// part reads one part: a thought, text or a tool call, each perhaps with a signature. What the server ran itself is not
// for the caller.
func (r *geminiReader) part(st *nativeStep, part []byte) error {
	text := unquote(field(part, "text"))
	extra := signatureExtra(unquote(field(part, "thoughtSignature")))
	function := field(part, "functionCall")
	switch {
	case function != nil:
		return r.call(st, function, extra)
	case string(field(part, "thought")) == "true":
		st.Reasoning += text
	default:
		st.Text += text
	}
	if extra != nil {
		st.Extra = extra
	}
	return nil
}

// call reads a tool call, or the next piece of the one that is open: only the first piece has a name.
func (r *geminiReader) call(st *nativeStep, function, extra []byte) error {
	if name := unquote(field(function, "name")); name != "" {
		r.shut(st)
		r.args.begin(field(function, "args"))
		id := cmp.Or(unquote(field(function, "id")), newID("call_"))
		st.Calls = append(st.Calls, callDelta{Index: r.calls, ID: id, Name: name, Extra: extra})
		r.calls++
	}
	if !r.args.open {
		return nil
	}
	if err := r.args.take(field(function, "partialArgs")); err != nil {
		return err
	}
	if string(field(function, "willContinue")) != "true" {
		r.shut(st)
	}
	return nil
}

// shut tells the arguments of the open call, if one is: with its name where that came in the same step.
func (r *geminiReader) shut(st *nativeStep) {
	if !r.args.open {
		return
	}
	r.args.open = false
	index := r.calls - 1
	if last := len(st.Calls) - 1; last >= 0 && st.Calls[last].Index == index {
		st.Calls[last].Arguments = string(r.args.json)
		return
	}
	st.Calls = append(st.Calls, callDelta{Index: index, Arguments: string(r.args.json)})
}

// signatureExtra is a signature as Google's own translation to OpenAI's words has it.
func signatureExtra(signature string) []byte {
	if signature == "" {
		return nil
	}
	return append(appendString([]byte(`"extra_content":{"google":{"thought_signature":`), signature), "}}"...)
}

// geminiBlocked is the error of a prompt that was refused, nil for one that wasn't.
func geminiBlocked(feedback []byte) error {
	reason := field(feedback, "blockReason")
	name := string(bytes.Trim(reason, `"`))
	if name == "" || name == "0" || name == "BLOCK_REASON_UNSPECIFIED" {
		return nil
	}
	message := cmp.Or(unquote(field(feedback, "blockReasonMessage")), "The prompt was blocked: "+name+".")
	return &Error{Kind: KindContentPolicy, Code: cleanCode(name), Message: cleanMessage(message)}
}

// geminiFinish is OpenAI's word for a finish reason, "" for none. Those that mean a failure come with its kind.
func geminiFinish(raw []byte) (string, Kind) {
	name := string(bytes.Trim(raw, `"`))
	if n, ok := number(raw); ok {
		name = geminiFinishName(n)
	}
	switch name {
	case "", "null", "FINISH_REASON_UNSPECIFIED":
		return "", KindNone
	case "STOP":
		return "stop", KindNone
	case "MAX_TOKENS":
		return "length", KindNone
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return "content_filter", KindNone
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return name, KindToolFailed
	case "MISSING_THOUGHT_SIGNATURE":
		return name, KindUnsupported
	}
	if strings.HasPrefix(name, "IMAGE_") {
		return "content_filter", KindNone
	}
	return name, KindServerError // OTHER, and whatever else cut the answer short
}

// geminiFinishName is a number of Gemini's enumeration as its name.
func geminiFinishName(n int64) string {
	names := []string{
		"FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST",
		"PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL",
		"TOO_MANY_TOOL_CALLS",
	}
	if n < 0 || n >= int64(len(names)) {
		return "OTHER"
	}
	return names[n]
}

// geminiUsage counts thoughts as a part of the answer, of which Gemini leaves out what is 0, and what the server's own
// tools gave as a part of the prompt.
func geminiUsage(u []byte) *usage {
	prompt, answer := count(u, "promptTokenCount"), count(u, "candidatesTokenCount")
	thoughts := count(u, "thoughtsTokenCount")
	if prompt < 0 && answer < 0 && thoughts < 0 {
		return nil
	}
	return &usage{
		Prompt:     together(prompt, count(u, "toolUsePromptTokenCount")),
		Completion: max(answer, 0) + max(thoughts, 0),
		Total:      count(u, "totalTokenCount"),
		Cached:     count(u, "cachedContentTokenCount"),
		Reasoning:  thoughts,
	}
}
