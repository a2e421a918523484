package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// anthropicWire is the Messages API: blocks of content one after another, each begun and ended by an event.
type anthropicWire struct {
	b     Behaviour
	q     query
	block int    // index of the last block
	kind  string // of the open block, "" for none
}

func (w *anthropicWire) media() string { return "text/event-stream; charset=utf-8" }

func (w *anthropicWire) ping() string { return anthropicEvent(object{"type": "ping"}) }

func (w *anthropicWire) marker() string { return anthropicEvent(object{"type": "message_stop"}) }

func anthropicEvent(o object) string {
	return fmt.Sprintf("event: %s\ndata: %s\n\n", o["type"], encode(o))
}

func (w *anthropicWire) delta(d delta) string {
	switch {
	case d.Tool != nil:
		out := ""
		if d.Tool.Name != "" {
			start := object{"type": "tool_use", "id": d.Tool.ID, "name": d.Tool.Name, "input": object{}}
			out = w.shut() + w.open(start)
		}
		return out + w.piece(object{"type": "input_json_delta", "partial_json": d.Tool.Arguments})
	case d.Reasoning != "":
		return w.within(object{"type": "thinking", "thinking": "", "signature": ""}) +
			w.piece(object{"type": "thinking_delta", "thinking": d.Reasoning})
	case d.Content != "":
		return w.within(object{"type": "text", "text": ""}) + w.piece(object{"type": "text_delta", "text": d.Content})
	}
	return anthropicEvent(object{"type": "message_start", "message": w.message([]any{}, nil)})
}

// within opens a block unless one of its kind is.
func (w *anthropicWire) within(start object) string {
	if w.kind == start["type"] {
		return ""
	}
	return w.shut() + w.open(start)
}

func (w *anthropicWire) open(start object) string {
	w.kind = start["type"].(string)
	return anthropicEvent(object{"type": "content_block_start", "index": w.block, "content_block": start})
}

func (w *anthropicWire) piece(delta object) string {
	return anthropicEvent(object{"type": "content_block_delta", "index": w.block, "delta": with(delta, w.b.Extra)})
}

// shut ends the open block; a thought gets its signature.
func (w *anthropicWire) shut() string {
	out := ""
	switch w.kind {
	case "":
		return ""
	case "thinking":
		out = w.piece(object{"type": "signature_delta", "signature": "c2lnbmVk"})
	}
	out += anthropicEvent(object{"type": "content_block_stop", "index": w.block})
	w.kind = ""
	w.block++
	return out
}

func (w *anthropicWire) message(content []any, reason any) object {
	return object{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": w.q.Model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": w.usage(),
	}
}

func (w *anthropicWire) usage() object {
	u := w.b.usage()
	return object{
		"input_tokens": u.Prompt - u.Cached, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0,
		"output_tokens": u.Completion, "output_tokens_details": object{"thinking_tokens": u.Reasoning},
	}
}

func (w *anthropicWire) finish(reason string) string {
	end := object{"type": "message_delta", "delta": object{"stop_reason": anthropicReason(reason)}, "usage": w.usage()}
	return w.shut() + anthropicEvent(end) + w.marker()
}

func anthropicReason(reason string) string {
	switch reason {
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return "end_turn"
}

func (w *anthropicWire) event(f Failure) string {
	return "event: error\ndata: " + w.refusal(f) + "\n\n"
}

func (w *anthropicWire) refusal(f Failure) string {
	kind := f.Code
	if kind == "" {
		kind = anthropicType(f.Status)
	}
	return encode(object{"type": "error", "error": object{"type": kind, "message": f.Message}, "request_id": "scripted"})
}

func anthropicType(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "invalid_request_error"
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	default:
		return "api_error"
	}
}

func (w *anthropicWire) whole(ds []delta, reason string) string {
	content, reasoning := joined(ds)
	blocks := []any{}
	if reasoning != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": reasoning, "signature": "c2lnbmVk"})
	}
	if content != "" {
		blocks = append(blocks, object{"type": "text", "text": content})
	}
	for _, d := range ds {
		if d.Tool != nil {
			input := json.RawMessage(d.Tool.Arguments)
			blocks = append(blocks, object{"type": "tool_use", "id": d.Tool.ID, "name": d.Tool.Name, "input": input})
		}
	}
	return encode(w.message(blocks, anthropicReason(reason)))
}
