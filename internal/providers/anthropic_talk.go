package providers

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// anthropicTalk is a conversation in Anthropic's words: the system prompt apart, turns that alternate, thoughts only
// where they are signed and wanted.
type anthropicTalk struct {
	system []block
	turns  turns
	ids    *callIDs
	called []string // the names of the tools that were called
	signed bool     // signed thoughts go back
}

func newAnthropicTalk(r *Request, thinking string) *anthropicTalk {
	t := &anthropicTalk{ids: newCallIDs(), signed: thinking == thinkAdaptive || thinking == thinkEnabled}
	raws := rawMessages(r)
	for i, m := range r.Messages {
		t.add(m, raws[i])
	}
	return t
}

// add takes one message; raw is the message as it came.
func (t *anthropicTalk) add(m Message, raw []byte) {
	switch said := anthropicBlocks(m, raw); m.Role {
	case "system", "developer":
		t.system = append(t.system, said...)
	case "tool":
		t.turns.add("user", t.result(m, said))
	case "assistant":
		if t.signed {
			t.turns.add("assistant", anthropicThoughts(raw)...)
		}
		t.turns.add("assistant", said...)
		for _, c := range m.ToolCalls {
			t.called = append(t.called, c.Name)
			input := json.RawMessage(cmp.Or(c.Arguments, "{}"))
			t.turns.add("assistant", block{"type": "tool_use", "id": t.ids.call(c.ID), "name": c.Name, "input": input})
		}
	default:
		t.turns.add("user", append(anthropicText(speaker(m), nil), said...)...)
	}
}

// result is the answer of a tool.
func (t *anthropicTalk) result(m Message, said []block) block {
	out := block{"type": "tool_result", "tool_use_id": t.ids.result(m.ToolCallID)}
	if len(said) > 0 {
		out["content"] = said
	}
	return out
}

// messages are the turns as they are sent. The last one may not end in white space where the model is to go on with it.
func (t *anthropicTalk) messages() []block {
	out := t.turns.opened(block{"type": "text", "text": goOn})
	if last := out[len(out)-1]; last.role == "assistant" {
		end := last.blocks[len(last.blocks)-1]
		if text, ok := end["text"].(string); ok {
			end["text"] = strings.TrimRight(text, " \t\r\n")
		}
	}
	return out.objects("content")
}

// anthropicBlocks is the content of a message.
func anthropicBlocks(m Message, raw []byte) []block {
	if !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.ImageURL != "" || field(p.Raw, "cache_control") != nil }) {
		return anthropicText(spoken(m, raw), nil)
	}
	var out []block
	for _, p := range m.Parts {
		if p.ImageURL == "" {
			out = append(out, anthropicText(p.Text, p.Raw)...)
			continue
		}
		source := block{"type": "url", "url": p.ImageURL}
		if media, data, ok := imageBytes(p.ImageURL); ok {
			source = block{"type": "base64", "media_type": media, "data": data}
		}
		out = append(out, cached(block{"type": "image", "source": source}, p.Raw))
	}
	return out
}

// anthropicText is a block of text, none for white space, which the API refuses.
func anthropicText(text string, part []byte) []block {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []block{cached(block{"type": "text", "text": text}, part)}
}

// cached adds the mark that a caller put on a part for the prompt cache.
func cached(b block, part []byte) block {
	if mark := field(part, "cache_control"); mark != nil {
		b["cache_control"] = json.RawMessage(mark)
	}
	return b
}

// thoughtFormat marks the reasoning_details of this dialect: thoughts with the signature without which the API takes
// none back.
const thoughtFormat = "anthropic-claude-v1"

// anthropicThoughts are the signed thoughts that a message of the assistant brings back in its reasoning_details.
func anthropicThoughts(raw []byte) []block {
	var out []block
	for _, d := range elements(field(raw, "reasoning_details")) {
		if unquote(field(d, "format")) != thoughtFormat {
			continue
		}
		if data := unquote(field(d, "data")); data != "" {
			out = append(out, block{"type": "redacted_thinking", "data": data})
		}
		if signature := unquote(field(d, "signature")); signature != "" {
			out = append(out, block{"type": "thinking", "thinking": unquote(field(d, "text")), "signature": signature})
		}
	}
	return out
}

// anthropicTools words tools and how to choose among them. A conversation with calls needs them declared even where
// none may be called any more.
func (f fields) anthropicTools(t *anthropicTalk) {
	mode, name := f.toolChoice()
	single := string(f["parallel_tool_calls"]) == "false"
	var tools []block
	for _, tool := range elements(f["tools"]) {
		tools = append(tools, anthropicTool(tool))
	}
	f.drop("tools", "tool_choice", "parallel_tool_calls")
	if tools == nil {
		mode, tools = "none", declared(t.called)
	}
	if tools == nil {
		return
	}
	choice := block{"type": mode}
	switch mode {
	case "required":
		choice["type"] = "any"
	case "function":
		choice = block{"type": "tool", "name": name}
	}
	if single && mode != "none" {
		choice["disable_parallel_tool_use"] = true
	}
	f.set("tools", tools)
	if mode != "auto" || single {
		f.set("tool_choice", choice)
	}
}

func anthropicTool(tool []byte) block {
	function := field(tool, "function")
	out := block{"name": unquote(field(function, "name")), "input_schema": json.RawMessage(`{"type":"object","properties":{}}`)}
	if text := unquote(field(function, "description")); text != "" {
		out["description"] = text
	}
	if schema := field(function, "parameters"); schema != nil {
		out["input_schema"] = json.RawMessage(schema)
	}
	if strict(tool) {
		out["strict"] = true
	}
	return cached(out, tool)
}

// declared are tools of which only the name is known.
func declared(names []string) []block {
	var out []block
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		out = append(out, block{"name": name, "input_schema": block{"type": "object"}})
	}
	return out
}

// closedSchema is a JSON schema whose objects say that they have no other properties than theirs, which the API
// demands. What fits it fits the caller's too. Objects that say something else of it stay as they are.
func closedSchema(schema []byte) []byte {
	if !isObject(schema) {
		return schema
	}
	out := []byte{'{'}
	open := false
	for w := walk(schema); ; {
		key, value, ok := w.member()
		if !ok {
			break
		}
		switch string(key) {
		case "properties", "$defs", "definitions":
			open = open || string(key) == "properties"
			value = closedMembers(value)
		case "items":
			value = closedSchema(value)
		case "anyOf", "allOf", "oneOf", "prefixItems":
			value = closedElements(value)
		case "type":
			open = open || unquote(value) == "object"
		}
		out = append(appendMemberRaw(out, key, value), ',')
	}
	if open && !hasMember(schema, "additionalProperties") {
		out = append(out, `"additionalProperties":false,`...)
	}
	return append([]byte(strings.TrimSuffix(string(out), ",")), '}')
}

// hasMember says whether an object has a member, be it null.
func hasMember(object []byte, name string) bool {
	for w := walk(object); ; {
		key, _, ok := w.member()
		if !ok || string(key) == name {
			return ok
		}
	}
}

// closedMembers closes the schemas that stand under names.
func closedMembers(object []byte) []byte {
	if !isObject(object) {
		return object
	}
	out := []byte{'{'}
	for w := walk(object); ; {
		key, value, ok := w.member()
		if !ok {
			return append([]byte(strings.TrimSuffix(string(out), ",")), '}')
		}
		out = append(appendMemberRaw(out, key, closedSchema(value)), ',')
	}
}

// closedElements closes the schemas of a list.
func closedElements(array []byte) []byte {
	var out []json.RawMessage
	for _, v := range elements(array) {
		out = append(out, closedSchema(v))
	}
	if out == nil {
		return array
	}
	return encode(out)
}
