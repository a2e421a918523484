package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// dashScopeWire is Alibaba's own dialect. It counts its events and, if asked to, repeats the whole text in each.
type dashScopeWire struct {
	b    Behaviour
	q    query
	id   int
	text delta          // so far, for cumulative output
	args map[int]string // of the tool calls so far
}

func dashScopeQuery(r *http.Request, body []byte) query {
	var in struct {
		Model      string `json:"model"`
		Parameters struct {
			Incremental bool `json:"incremental_output"`
		} `json:"parameters"`
	}
	_ = json.Unmarshal(body, &in) // a body that isn't JSON asks for nothing
	return query{
		Model: in.Model, Stream: r.Header.Get("X-DashScope-SSE") == "enable",
		Cumulative: !in.Parameters.Incremental, Halves: true,
	}
}

func (w *dashScopeWire) media() string  { return "text/event-stream;charset=UTF-8" }
func (w *dashScopeWire) ping() string   { return ":HTTP_STATUS/200\n\n" }
func (w *dashScopeWire) marker() string { return "" }

func (w *dashScopeWire) delta(d delta) string {
	return w.result(w.message(w.grown(d)), "null")
}

// grown is the delta as it is sent: itself, or all there was so far.
func (w *dashScopeWire) grown(d delta) delta {
	if !w.q.Cumulative {
		return d
	}
	w.text.Content += d.Content
	w.text.Reasoning += d.Reasoning
	d.Content, d.Reasoning = w.text.Content, w.text.Reasoning
	if d.Tool == nil {
		return d
	}
	if w.args == nil {
		w.args = map[int]string{}
	}
	w.args[d.Index] += d.Tool.Arguments
	full := *d.Tool
	full.Arguments = w.args[d.Index]
	d.Tool = &full
	return d
}

func (w *dashScopeWire) message(d delta) object {
	m := object{"role": "assistant", "content": d.Content}
	if d.Reasoning != "" {
		m["reasoning_content"] = d.Reasoning
	}
	if d.Tool != nil {
		entry := openAITool(d)
		entry["type"] = "function"
		if d.Tool.Name == "" {
			entry["id"] = ""
		}
		m["tool_calls"] = []any{entry}
	}
	return with(m, w.b.Extra)
}

func (w *dashScopeWire) result(message object, finish string) string {
	w.id++
	return fmt.Sprintf("id:%d\nevent:result\n:HTTP_STATUS/200\ndata:%s\n\n", w.id, encode(w.output(message, finish)))
}

func (w *dashScopeWire) output(message object, finish string) object {
	u := w.b.usage()
	return object{
		"output":     object{"choices": []any{object{"message": message, "finish_reason": finish}}},
		"request_id": "scripted",
		"usage": object{
			"input_tokens": u.Prompt, "output_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"prompt_tokens_details": object{"cached_tokens": u.Cached},
			"output_tokens_details": object{"reasoning_tokens": u.Reasoning},
		},
	}
}

func (w *dashScopeWire) finish(reason string) string {
	return w.result(w.message(w.grown(delta{})), reason)
}

func (w *dashScopeWire) event(f Failure) string {
	w.id++
	return fmt.Sprintf("id:%d\nevent:error\n:HTTP_STATUS/%d\ndata:%s\n\n", w.id, f.Status, w.refusal(f))
}

func (w *dashScopeWire) refusal(f Failure) string {
	code := f.Code
	if code == "" {
		code = dashScopeCode(f.Status)
	}
	return encode(object{"code": code, "message": f.Message, "request_id": "scripted"})
}

func dashScopeCode(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "InvalidParameter"
	case http.StatusUnauthorized:
		return "InvalidApiKey"
	case http.StatusForbidden:
		return "AccessDenied"
	case http.StatusNotFound:
		return "ModelNotFound"
	case http.StatusTooManyRequests:
		return "Throttling.RateQuota"
	case http.StatusServiceUnavailable:
		return "ModelUnavailable"
	default:
		return "InternalError"
	}
}

func (w *dashScopeWire) whole(ds []delta, reason string) string {
	content, reasoning := joined(ds)
	m := w.message(delta{Content: content, Reasoning: reasoning})
	var tools []any
	for _, d := range ds {
		if d.Tool != nil {
			tools = append(tools, openAITool(d))
		}
	}
	if tools != nil {
		m["tool_calls"] = tools
	}
	return encode(w.output(m, reason))
}

// ollamaWire is Ollama's own dialect: one JSON document a line.
type ollamaWire struct {
	b Behaviour
	q query
}

func ollamaQuery(body []byte) query {
	in := struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}{Stream: true}
	_ = json.Unmarshal(body, &in) // a body that isn't JSON asks for nothing
	return query{Model: in.Model, Stream: in.Stream}
}

func (w ollamaWire) media() string  { return "application/x-ndjson" }
func (w ollamaWire) ping() string   { return "\n" }
func (w ollamaWire) marker() string { return encode(w.last("stop")) + "\n" }

func (w ollamaWire) delta(d delta) string { return encode(w.line(d)) + "\n" }

func (w ollamaWire) line(d delta) object {
	m := object{"role": "assistant", "content": d.Content}
	if d.Reasoning != "" {
		m["thinking"] = d.Reasoning
	}
	if d.Tool != nil {
		m["tool_calls"] = []any{ollamaTool(*d.Tool)}
	}
	return object{"model": w.q.Model, "created_at": "2025-05-19T09:26:59.678947Z", "message": with(m, w.b.Extra), "done": false}
}

// ollamaTool has the arguments as an object, which is why they can't come in halves.
func ollamaTool(t Tool) object {
	return object{"function": object{"name": t.Name, "arguments": json.RawMessage(t.Arguments)}}
}

// last is the line with done:true. Ollama says stop where OpenAI says tool_calls.
func (w ollamaWire) last(reason string) object {
	if reason == "tool_calls" {
		reason = "stop"
	}
	u := w.b.usage()
	out := w.line(delta{})
	out["done"], out["done_reason"] = true, reason
	out["prompt_eval_count"], out["eval_count"], out["total_duration"] = u.Prompt, u.Completion, 482007750
	return out
}

func (w ollamaWire) finish(reason string) string { return encode(w.last(reason)) + "\n" }
func (w ollamaWire) event(f Failure) string      { return w.refusal(f) + "\n" }
func (w ollamaWire) refusal(f Failure) string    { return encode(object{"error": f.Message}) }

func (w ollamaWire) whole(ds []delta, reason string) string {
	content, reasoning := joined(ds)
	out := w.last(reason)
	m := w.line(delta{Content: content, Reasoning: reasoning})["message"].(object)
	var tools []any
	for _, d := range ds {
		if d.Tool != nil {
			tools = append(tools, ollamaTool(*d.Tool))
		}
	}
	if tools != nil {
		m["tool_calls"] = tools
	}
	out["message"] = m
	return encode(out)
}
