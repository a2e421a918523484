package api

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// collector makes one chat.completion of a stream's chunks. Values stay as they are written in JSON: text is joined
// without decoding it, so that nothing of it can change.
type collector struct {
	top, choice, message, logprobs fieldSet
	calls                          []*toolCallDraft
	function                       fieldSet // the legacy function_call
	model                          string   // in place of the chunks' own; "" isn't
}

// toolCallDraft is a tool call under way.
type toolCallDraft struct {
	index            int
	fields, function fieldSet
}

func newCollector() *collector { return &collector{} }

func (c *collector) add(chunk []byte) {
	eachField(chunk, func(key, value []byte) {
		switch string(key) {
		case "choices":
			eachItem(value, c.addChoice)
		case "holdfast", "object", "usage":
		default:
			c.top.cumulate(key, value)
		}
	})
}

func (c *collector) addChoice(v []byte) {
	eachField(v, func(key, value []byte) {
		switch string(key) {
		case "delta":
			eachField(value, c.addDelta)
		case "logprobs":
			eachField(value, c.logprobs.merge)
		case "index":
		default:
			c.choice.merge(key, value)
		}
	})
}

func (c *collector) addDelta(key, value []byte) {
	switch string(key) {
	case "tool_calls":
		eachItem(value, c.addCall)
	case "function_call":
		eachField(value, c.function.merge)
	default:
		c.message.merge(key, value)
	}
}

// addCall merges a piece of a tool call into the one of its index; a piece without an index belongs to the last,
// unless it has an id of its own.
func (c *collector) addCall(v []byte) {
	var id []byte
	at := -1
	eachField(v, func(key, value []byte) {
		switch string(key) {
		case "index":
			if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 {
				at = n
			}
		case "id":
			id, _ = inner(value)
		}
	})
	call := c.call(at, id)
	eachField(v, func(key, value []byte) {
		switch string(key) {
		case "index":
		case "function":
			eachField(value, call.function.mergeCall)
		default:
			call.fields.merge(key, value)
		}
	})
}

func (c *collector) call(at int, id []byte) *toolCallDraft {
	if at < 0 && len(c.calls) > 0 {
		last := c.calls[len(c.calls)-1]
		if known, _ := inner(last.fields.get("id")); len(id) == 0 || bytes.Equal(known, id) {
			return last
		}
		at = last.index + 1
	}
	at = max(at, 0)
	for i, call := range c.calls {
		if call.index == at {
			return call
		}
		if call.index > at {
			c.calls = append(c.calls[:i:i], append([]*toolCallDraft{{index: at}}, c.calls[i:]...)...)
			return c.calls[i]
		}
	}
	c.calls = append(c.calls, &toolCallDraft{index: at})
	return c.calls[len(c.calls)-1]
}

// render writes the answer in OpenAI's order of fields, what else there is behind them.
func (c *collector) render(usage []byte, meta *metadata) []byte {
	model := c.top.get("model")
	if c.model != "" {
		model, _ = json.Marshal(c.model) // a string always marshals
	}
	o := newObject(c.size() + len(usage))
	o.field("id", orJSON(c.top.get("id"), `""`))
	o.field("object", []byte(`"chat.completion"`))
	o.field("created", orJSON(c.top.get("created"), "0"))
	o.field("model", orJSON(model, `""`))
	o.field("choices", c.choices())
	o.field("usage", usage)
	o.rest(&c.top, "id", "created", "model")
	o.field("holdfast", meta.bytes())
	return o.end()
}

func (c *collector) choices() []byte {
	logprobs := []byte("null")
	if len(c.logprobs.list) > 0 {
		lp := newObject(0)
		lp.rest(&c.logprobs)
		logprobs = lp.end()
	}
	o := newObject(c.size())
	o.buf = append([]byte{'['}, o.buf...)
	o.field("index", []byte("0"))
	o.field("message", c.renderMessage())
	o.field("logprobs", logprobs)
	o.field("finish_reason", orJSON(c.choice.get("finish_reason"), `"stop"`))
	o.rest(&c.choice, "finish_reason")
	return append(o.end(), ']')
}

func (c *collector) renderMessage() []byte {
	content, refusal := c.message.get("content"), c.message.get("refusal")
	silent := len(content) == 0 || string(content) == `""` || string(content) == "null"
	switch {
	case silent && (len(c.calls) > 0 || len(c.function.list) > 0 || len(refusal) > 2 && refusal[0] == '"'):
		content = []byte("null")
	case silent:
		content = []byte(`""`)
	}
	o := newObject(c.size())
	o.field("role", []byte(`"assistant"`))
	o.field("content", content)
	o.field("refusal", orJSON(refusal, "null"))
	o.rest(&c.message, "role", "content", "refusal")
	if len(c.calls) > 0 {
		o.field("tool_calls", c.renderCalls())
	}
	if len(c.function.list) > 0 {
		f := newObject(0)
		f.rest(&c.function)
		o.field("function_call", f.end())
	}
	return o.end()
}

func (c *collector) renderCalls() []byte {
	out := []byte{'['}
	for i, call := range c.calls {
		if i > 0 {
			out = append(out, ',')
		}
		f := newObject(0)
		f.field("name", orJSON(call.function.get("name"), `""`))
		f.field("arguments", orJSON(call.function.get("arguments"), `""`))
		f.rest(&call.function, "name", "arguments")
		o := newObject(0)
		o.field("id", orJSON(call.fields.get("id"), `""`))
		o.field("type", orJSON(call.fields.get("type"), `"function"`))
		o.field("function", f.end())
		o.rest(&call.fields, "id", "type")
		out = append(out, o.end()...)
	}
	return append(out, ']')
}

// size is about how many bytes there are.
func (c *collector) size() int {
	return 512 + c.top.size + c.choice.size + c.message.size + c.logprobs.size
}

func orJSON(v []byte, otherwise string) []byte {
	if len(v) == 0 {
		return []byte(otherwise)
	}
	return v
}
