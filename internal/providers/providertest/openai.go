package providertest

import (
	"encoding/json"
	"net/http"
)

// openAIWire is the dialect of OpenAI and its many imitators.
type openAIWire struct {
	b Behaviour
	q query
}

func openAIQuery(body []byte) query {
	var in struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(body, &in) // a body that isn't JSON asks for nothing
	return query{Model: in.Model, Stream: in.Stream, Usage: in.StreamOptions.IncludeUsage, Halves: true}
}

func (w openAIWire) media() string  { return "text/event-stream" }
func (w openAIWire) ping() string   { return ": keep-alive\n\n" }
func (w openAIWire) marker() string { return "data: [DONE]\n\n" }

func (w openAIWire) delta(d delta) string {
	m := object{}
	switch {
	case d.Tool != nil:
		m["tool_calls"] = []any{openAITool(d)}
	case d.Reasoning != "":
		m["reasoning_content"] = d.Reasoning
	case d.Content != "":
		m["content"] = d.Content
	default:
		m["role"], m["content"] = "assistant", ""
	}
	return w.chunk(with(m, w.b.Extra), nil)
}

// openAITool is an entry of tool_calls: whole, or the continuation of one that has its name already.
func openAITool(d delta) object {
	function := object{"arguments": d.Tool.Arguments}
	entry := object{"index": d.Index, "function": function}
	if d.Tool.Name != "" {
		function["name"] = d.Tool.Name
		entry["id"], entry["type"] = d.Tool.ID, "function"
	}
	return entry
}

func (w openAIWire) chunk(delta object, finish any) string {
	return w.data(w.envelope("chat.completion.chunk", []any{object{"index": 0, "delta": delta, "finish_reason": finish}}))
}

func (w openAIWire) envelope(kind string, choices []any) object {
	return object{"id": "chatcmpl-scripted", "object": kind, "created": 1700000000, "model": w.q.Model, "choices": choices}
}

func (w openAIWire) data(v any) string { return "data: " + encode(v) + "\n\n" }

func (w openAIWire) finish(reason string) string {
	out := w.chunk(object{}, reason)
	if w.q.Usage || w.b.Usage != nil {
		last := w.envelope("chat.completion.chunk", []any{})
		last["usage"] = openAIUsage(w.b.usage())
		out += w.data(last)
	}
	return out + w.marker()
}

func openAIUsage(u Usage) object {
	return object{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details":     object{"cached_tokens": u.Cached},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}

func (w openAIWire) event(f Failure) string { return "data: " + w.refusal(f) + "\n\n" }

func (w openAIWire) refusal(f Failure) string {
	kind, code := openAICode(f)
	return encode(object{"error": object{"message": f.Message, "type": kind, "param": nil, "code": code}})
}

// openAICode is the type and code that OpenAI gives beside a status.
func openAICode(f Failure) (kind string, code any) {
	kind = "server_error"
	if f.Status < http.StatusInternalServerError {
		kind = "invalid_request_error"
	}
	if f.Code != "" {
		return kind, f.Code
	}
	switch f.Status {
	case http.StatusUnauthorized:
		return kind, "invalid_api_key"
	case http.StatusNotFound:
		return kind, "model_not_found"
	case http.StatusTooManyRequests:
		return "requests", "rate_limit_exceeded"
	}
	return kind, nil
}

func (w openAIWire) whole(ds []delta, reason string) string {
	content, reasoning := joined(ds)
	m := object{"role": "assistant", "content": content}
	if reasoning != "" {
		m["reasoning_content"] = reasoning
	}
	var tools []any
	for _, d := range ds {
		if d.Tool != nil {
			tools = append(tools, openAITool(d))
		}
	}
	if tools != nil {
		m["tool_calls"] = tools
	}
	out := w.envelope("chat.completion", []any{object{"index": 0, "message": with(m, w.b.Extra), "finish_reason": reason}})
	out["usage"] = openAIUsage(w.b.usage())
	return encode(out)
}
