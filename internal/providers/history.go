package providers

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// foreign names the members of an assistant's message that the target can't read: thoughts where the model can't
// think, and what only the API behind one host takes back. A model that thinks gets its reasoning back, as DeepSeek
// and SiliconFlow demand beside tool calls; signed thoughts and signatures are of use to none but their makers.
func foreign(o Options, host string) []string {
	var names []string
	if o.NoThinking {
		names = append(names, "reasoning_content", "reasoning")
	}
	if host != "openrouter.ai" {
		names = append(names, "reasoning_details")
	}
	if host != "generativelanguage.googleapis.com" {
		names = append(names, "extra_content")
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(o.Allow, name) })
}

// cleanHistory is a request's messages without what the answers of another family of models have left in them, for
// the API at base: a provider refuses members that it doesn't know. All other bytes stay as they are; messages that
// have none of it are given back themselves.
func cleanHistory(messages []byte, o Options, base string) []byte {
	if !isArray(messages) || !bytes.Contains(messages, []byte(`"reasoning`)) && !bytes.Contains(messages, []byte(`"extra_content"`)) {
		return messages
	}
	names := foreign(o, hostOf(base))
	if len(names) == 0 {
		return messages
	}
	p := pruner{src: messages, names: names}
	for w := walk(messages); ; {
		message, ok := w.element()
		if !ok {
			return p.rest()
		}
		if isObject(message) && unquote(field(message, "role")) == "assistant" {
			p.object(w.i-len(message), true)
		}
	}
}

// hostOf is the host of a URL in lower case, without the port.
func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// pruner copies JSON and leaves members out.
type pruner struct {
	src   []byte
	names []string // of the members
	out   []byte
	done  int // how far src is copied or left out
}

// object prunes the object that begins at the given index of src; calls says whether also those in its tool_calls.
func (p *pruner) object(at int, calls bool) {
	kept := false
	for w := (walker{b: p.src, i: at + 1}); ; {
		from := w.i
		key, value, ok := w.member()
		if !ok {
			return
		}
		name := decodeKey(key)
		switch {
		case slices.Contains(p.names, name):
			if comma := skipSpace(p.src, w.i); !kept && comma < len(p.src) && p.src[comma] == ',' {
				w.i = comma + 1 // the one before a member goes with it; the first has one behind
			}
			p.leaveOut(from, w.i)
			continue
		case calls && name == "tool_calls" && isArray(value):
			p.calls(w.i - len(value))
		}
		kept = true
	}
}

// calls prunes the objects of the array that begins at the given index.
func (p *pruner) calls(at int) {
	for w := (walker{b: p.src, i: at + 1}); ; {
		call, ok := w.element()
		if !ok {
			return
		}
		if isObject(call) {
			p.object(w.i-len(call), false)
		}
	}
}

func (p *pruner) leaveOut(from, to int) {
	if p.out == nil {
		p.out = make([]byte, 0, len(p.src))
	}
	p.out = append(p.out, p.src[p.done:from]...)
	p.done = to
}

// rest is all that is left; src itself if nothing was left out.
func (p *pruner) rest() []byte {
	if p.done == 0 {
		return p.src
	}
	return append(p.out, p.src[p.done:]...)
}
