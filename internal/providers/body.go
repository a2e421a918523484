package providers

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// heldBack names the request fields that change who is called, whose keys are used or what it costs. They don't go
// through, standard or not, unless the candidate allows them.
func heldBack() []string {
	return []string{"models", "provider", "route", "transforms", "plugins", "data_sources", "service_tier", "priority", "chat_template"}
}

// requestBody is the caller's own body with what must differ: the model, the stream, the thinking, and with what is
// held back, or foreign to the target, taken out. All other bytes stay as they are.
type requestBody struct {
	call  Call
	way   string // how thinking is asked for
	base  string // where the body goes
	out   []byte
	wrote map[string]bool
}

// openAIBody makes the body for a call to the API at base. way is one of the values of Settings.Thinking.
func openAIBody(call Call, way, base string) []byte {
	b := requestBody{call: call, way: way, base: base, wrote: map[string]bool{}}
	b.out = append(make([]byte, 0, len(call.Request.Raw)+256), '{')
	keepMetadata := string(field(call.Request.Raw, "store")) == "true"
	for w := walk(call.Request.Raw); ; {
		key, value, ok := w.member()
		if !ok {
			break
		}
		name := decodeKey(key)
		switch lower := fold(name); {
		case b.ours(lower):
			if own := b.own(lower, name, value); own != nil {
				b.set(lower, own)
			}
		case b.dropped(lower, name, keepMetadata):
		case name == "messages":
			b.member(key, cleanHistory(value, call.Options, base))
		default:
			b.member(key, value)
		}
	}
	for _, name := range []string{"model", "stream", "stream_options", "reasoning_effort", "enable_thinking", "chat_template_kwargs", "thinking"} {
		if own := b.own(name, name, nil); own != nil {
			b.set(name, own)
		}
	}
	return append(b.out, '}')
}

// ours are the fields that the adapter writes itself. A server that reads keys in any case would take STREAM for
// stream, so such a key counts as the field too, and isn't passed on.
func (b *requestBody) ours(name string) bool {
	switch name {
	case "model", "stream", "stream_options":
		return true
	case "enable_thinking", "reasoning_effort":
		return b.thinks() || b.call.Options.NoThinking
	case "chat_template_kwargs":
		return b.thinks() && b.way == ThinkingByTemplate
	case "thinking":
		return b.thinks() && b.way == ThinkingByType
	}
	return false
}

// thinks says that something about thinking has to be said.
func (b *requestBody) thinks() bool { return b.call.Request.Thinking.Mode != ThinkingUnset }

// own is the adapter's value of a field, nil for none. value is the caller's.
func (b *requestBody) own(name, written string, value []byte) []byte {
	stream := !b.call.Options.NoStream
	on := b.call.Request.Thinking.Mode == ThinkingOn
	say := b.thinks() && !b.call.Options.NoThinking
	switch {
	case name == "model":
		return appendString(nil, b.call.Model)
	case name == "stream":
		return boolean(stream)
	case name == "stream_options" && stream && takesStreamOptions(b.base):
		return merged(own(value, name == written), "include_usage", []byte("true"))
	case name == "reasoning_effort" && say && b.way == ThinkingByEffort:
		return appendString(nil, b.effort())
	case name == "enable_thinking" && say && b.way == ThinkingByEnable:
		return boolean(on)
	case name == "chat_template_kwargs" && say && b.way == ThinkingByTemplate:
		return merged(own(value, name == written), "enable_thinking", boolean(on))
	case name == "thinking" && say && b.way == ThinkingByType:
		if on {
			return merged(own(value, name == written), "type", []byte(`"enabled"`))
		}
		return []byte(`{"type":"disabled"}`)
	}
	return nil
}

// own is value if it was written under its very name.
func own(value []byte, exact bool) []byte {
	if exact {
		return value
	}
	return nil
}

// effort is what to say in reasoning_effort.
func (b *requestBody) effort() string {
	t := b.call.Request.Thinking
	switch {
	case t.Mode == ThinkingOff:
		return "none"
	case t.Effort == "" || t.Effort == "none":
		return "medium"
	}
	return t.Effort
}

// dropped says whether a field is held back. metadata is Holdfast's own, but for requests that the provider stores.
func (b *requestBody) dropped(lower, name string, keepMetadata bool) bool {
	if slices.Contains(b.call.Options.Allow, name) {
		return false
	}
	return slices.Contains(heldBack(), lower) || lower == "metadata" && !keepMetadata
}

// set writes a field once.
func (b *requestBody) set(name string, value []byte) {
	if !b.wrote[name] {
		b.wrote[name] = true
		b.member([]byte(name), value)
	}
}

func (b *requestBody) member(key, value []byte) {
	if len(b.out) > 1 {
		b.out = append(b.out, ',')
	}
	b.out = append(append(append(append(b.out, '"'), key...), `":`...), value...)
}

// merged is the object with one member set; anything but an object counts as {}.
func merged(object []byte, name string, value []byte) []byte {
	out := []byte{'{'}
	for w := walk(object); isObject(object); {
		key, v, ok := w.member()
		if !ok {
			break
		}
		if decodeKey(key) != name {
			out = append(appendMemberRaw(out, key, v), ',')
		}
	}
	return append(appendMemberRaw(out, []byte(name), value), '}')
}

func appendMemberRaw(b, key, value []byte) []byte {
	return append(append(append(append(b, '"'), key...), `":`...), value...)
}

func boolean(v bool) []byte {
	if v {
		return []byte("true")
	}
	return []byte("false")
}

// decodeKey is a key as the provider will read it: it may be written with escapes.
func decodeKey(key []byte) string {
	if bytes.IndexByte(key, '\\') < 0 && utf8.Valid(key) {
		return string(key)
	}
	var s string
	if json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &s) != nil {
		return string(key)
	}
	return s
}

// fold is a key as a server reads it that doesn't mind case. Go's encoding/json is one: it takes ſ for s too.
func fold(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "ſ", "s")
}
