package providertest

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"path"
	"strings"
)

// bedrockWire is Bedrock's Converse: blocks of content one after another, in frames of AWS's event stream.
type bedrockWire struct {
	b     Behaviour
	q     query
	block int    // index of the last block
	kind  string // of the open block, "" for none
}

// bedrockQuery reads the model and whether to stream from the path, …/model/NAME/converse-stream.
func bedrockQuery(r *http.Request) query {
	model, method := path.Split(r.URL.Path)
	return query{Model: path.Base(model), Stream: method == "converse-stream", Halves: true}
}

func (w *bedrockWire) media() string { return "application/vnd.amazon.eventstream" }

// ping is an event that nobody knows: Bedrock has none that says nothing.
func (w *bedrockWire) ping() string { return bedrockEvent("heartbeat", object{}) }

func (w *bedrockWire) marker() string {
	return bedrockEvent("messageStop", object{"stopReason": "end_turn"})
}

func bedrockEvent(name string, o object) string {
	return Frame(encode(o), ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

// Frame is one frame of AWS's event stream: names and values of its headers, and a payload.
func Frame(payload string, headers ...string) string {
	var head []byte
	for i := 0; i+1 < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = append(head, 7) // a string
		head = binary.BigEndian.AppendUint16(head, uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	const sums = 16 // two lengths, two checksums
	out := binary.BigEndian.AppendUint32(nil, uint32(sums+len(head)+len(payload)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, head...), payload...)
	return string(binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out)))
}

func (w *bedrockWire) delta(d delta) string {
	switch {
	case d.Tool != nil:
		out := ""
		if d.Tool.Name != "" {
			out = w.shut() + w.open(*d.Tool)
		}
		return out + w.piece(object{"toolUse": object{"input": d.Tool.Arguments}})
	case d.Reasoning != "":
		return w.within("thought") + w.piece(object{"reasoningContent": object{"text": d.Reasoning}})
	case d.Content != "":
		return w.within("text") + w.piece(object{"text": d.Content})
	}
	return bedrockEvent("messageStart", object{"role": "assistant"})
}

// within begins a block unless one of its kind is open; it has no event of its own.
func (w *bedrockWire) within(kind string) string {
	if w.kind == kind {
		return ""
	}
	out := w.shut()
	w.kind = kind
	return out
}

func (w *bedrockWire) open(t Tool) string {
	w.kind = "tool"
	start := object{"toolUse": object{"toolUseId": t.ID, "name": t.Name}}
	return bedrockEvent("contentBlockStart", object{"contentBlockIndex": w.block, "start": start})
}

func (w *bedrockWire) piece(delta object) string {
	o := object{"contentBlockIndex": w.block, "delta": with(delta, w.b.Extra), "p": "abcdefghij"}
	return bedrockEvent("contentBlockDelta", o)
}

// shut ends the open block; a thought gets its signature.
func (w *bedrockWire) shut() string {
	out := ""
	switch w.kind {
	case "":
		return ""
	case "thought":
		out = w.piece(object{"reasoningContent": object{"signature": "c2lnbmVk"}})
	}
	out += bedrockEvent("contentBlockStop", object{"contentBlockIndex": w.block})
	w.kind = ""
	w.block++
	return out
}

func (w *bedrockWire) usage() object {
	u := w.b.usage()
	return object{
		"inputTokens": u.Prompt - u.Cached, "cacheReadInputTokens": u.Cached, "cacheWriteInputTokens": 0,
		"outputTokens": u.Completion, "totalTokens": u.Prompt + u.Completion,
	}
}

func (w *bedrockWire) finish(reason string) string {
	return w.shut() + bedrockEvent("messageStop", object{"stopReason": bedrockReason(reason)}) +
		bedrockEvent("metadata", object{"usage": w.usage(), "metrics": object{"latencyMs": 421}})
}

func bedrockReason(reason string) string {
	switch reason {
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "content_filtered"
	}
	return "end_turn"
}

func (w *bedrockWire) event(f Failure) string {
	name := bedrockException(f)
	name = strings.ToLower(name[:1]) + name[1:]
	return Frame(encode(object{"message": f.Message}), ":exception-type", name, ":content-type", "application/json", ":message-type", "exception")
}

func (w *bedrockWire) refusal(f Failure) string {
	return encode(object{"message": f.Message, "__type": "com.amazon.coral.service#" + bedrockException(f)})
}

// bedrockException is the name of an error as a header spells it; a stream's begins with a small letter.
func bedrockException(f Failure) string {
	if f.Code != "" {
		return f.Code
	}
	switch f.Status {
	case http.StatusBadRequest:
		return "ValidationException"
	case http.StatusUnauthorized, http.StatusForbidden:
		return "AccessDeniedException"
	case http.StatusNotFound:
		return "ResourceNotFoundException"
	case http.StatusRequestTimeout:
		return "ModelTimeoutException"
	case http.StatusFailedDependency:
		return "ModelErrorException"
	case http.StatusTooManyRequests:
		return "ThrottlingException"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableException"
	default:
		return "InternalServerException"
	}
}

func (w *bedrockWire) whole(ds []delta, reason string) string {
	content, reasoning := joined(ds)
	blocks := []any{}
	if reasoning != "" {
		thought := object{"text": reasoning, "signature": "c2lnbmVk"}
		blocks = append(blocks, object{"reasoningContent": object{"reasoningText": thought}})
	}
	if content != "" {
		blocks = append(blocks, object{"text": content})
	}
	for _, d := range ds {
		if d.Tool != nil {
			use := object{"toolUseId": d.Tool.ID, "name": d.Tool.Name, "input": json.RawMessage(d.Tool.Arguments)}
			blocks = append(blocks, object{"toolUse": use})
		}
	}
	return encode(object{
		"output": object{"message": object{"role": "assistant", "content": blocks}}, "stopReason": bedrockReason(reason),
		"usage": w.usage(), "metrics": object{"latencyMs": 421},
	})
}
