package providers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// bedrockTalk is a conversation in Converse's words: the system prompt apart, turns that alternate, thoughts only where
// they are signed and wanted.
type bedrockTalk struct {
	system []block
	turns  turns
	ids    *callIDs
	signed bool // signed thoughts go back
	caches bool // the model has a prompt cache
}

func (p *bedrock) talk(call Call, thinking string) *bedrockTalk {
	caches := modelVersion(call.Model, "claude") >= 307 || strings.Contains(strings.ToLower(call.Model), "nova")
	t := &bedrockTalk{ids: newCallIDs(), signed: thinking == thinkAdaptive || thinking == thinkEnabled, caches: caches}
	raws := rawMessages(call.Request)
	for i, m := range call.Request.Messages {
		t.add(m, raws[i])
	}
	return t
}

// add takes one message; raw is the message as it came.
func (t *bedrockTalk) add(m Message, raw []byte) {
	switch said := t.blocks(m, raw); m.Role {
	case "system", "developer":
		t.system = append(t.system, said...)
	case "tool":
		t.turns.add("user", t.result(m, said)...)
	case "assistant":
		t.turns.add("assistant", t.thoughts(raw)...)
		t.turns.add("assistant", said...)
		for _, c := range m.ToolCalls {
			use := block{"toolUseId": t.ids.call(shortID(c.ID)), "name": c.Name, "input": json.RawMessage(cmp.Or(c.Arguments, "{}"))}
			t.turns.add("assistant", block{"toolUse": use})
		}
	default:
		t.turns.add("user", append(converseText(speaker(m)), said...)...)
	}
}

// result is the answer of a tool, which can't be nothing; a mark for the prompt cache stands behind it.
func (t *bedrockTalk) result(m Message, said []block) []block {
	marked := func(b block) bool { return b["cachePoint"] != nil }
	marks := said[len(said):]
	if i := slices.IndexFunc(said, marked); i >= 0 {
		marks = said[i : i+1 : i+1]
		said = slices.DeleteFunc(slices.Clone(said), marked)
	}
	if len(said) == 0 {
		said = converseText("(nothing)")
	}
	result := block{"toolUseId": t.ids.result(shortID(m.ToolCallID)), "content": said}
	return append([]block{{"toolResult": result}}, marks...)
}

// thoughts are the signed thoughts that a message brings back.
func (t *bedrockTalk) thoughts(raw []byte) []block {
	if !t.signed {
		return nil
	}
	var out []block
	for _, thought := range anthropicThoughts(raw) {
		if thought["signature"] != nil {
			text := block{"text": thought["thinking"], "signature": thought["signature"]}
			out = append(out, block{"reasoningContent": block{"reasoningText": text}})
		}
	}
	return out
}

// blocks is the content of a message.
func (t *bedrockTalk) blocks(m Message, raw []byte) []block {
	if !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.ImageURL != "" || field(p.Raw, "cache_control") != nil }) {
		return converseText(spoken(m, raw))
	}
	var out []block
	for _, p := range m.Parts {
		if format, data := imageFormat(p.ImageURL); format != "" {
			image := block{"format": format, "source": block{"bytes": data}}
			out = append(out, block{"image": image})
		} else {
			out = append(out, converseText(p.Text)...)
		}
		if len(out) > 0 {
			out = append(out, cachePoint(p.Raw, t.caches)...)
		}
	}
	return out
}

// converseText is a block of text, none for white space, which Converse refuses.
func converseText(text string) []block {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []block{{"text": text}}
}

// cachePoint is the mark that a caller put on a part or a tool for the prompt cache, where there is one.
func cachePoint(raw []byte, caches bool) []block {
	mark := field(raw, "cache_control")
	if mark == nil || !caches {
		return nil
	}
	point := block{"type": "default"}
	if ttl := field(mark, "ttl"); said(ttl) {
		point["ttl"] = json.RawMessage(ttl)
	}
	return []block{{"cachePoint": point}}
}

// imageFormat is Converse's word for the kind of a data URL's image, and its base64; "" for any other URL or kind.
func imageFormat(url string) (format, data string) {
	media, data, ok := imageBytes(url)
	switch {
	case !ok:
		return "", ""
	case media == "image/jpeg" || media == "image/jpg":
		return "jpeg", data
	case media == "image/png" || media == "image/gif" || media == "image/webp":
		return strings.TrimPrefix(media, "image/"), data
	}
	return "", ""
}

// checkBedrockMessage names the part of a message that can't be carried, "" for none.
func checkBedrockMessage(m Message) string {
	for i, p := range m.Parts {
		if p.ImageURL == "" {
			continue
		}
		format, _ := imageFormat(p.ImageURL)
		switch {
		case m.Role != "user" && m.Role != "tool":
			return fmt.Sprintf("content[%d].image_url of the role %s", i, m.Role)
		case format == "":
			return fmt.Sprintf("content[%d].image_url other than base64 data of JPEG, PNG, GIF or WebP", i)
		}
	}
	return checkArguments(m)
}

// shortID is an id of a tool call of the length that Converse takes.
func shortID(id string) string {
	if len(id) <= 64 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}
