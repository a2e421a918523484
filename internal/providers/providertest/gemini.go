package providertest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// geminiWire is Google's generateContent.
type geminiWire struct {
	b Behaviour
	q query
}

// geminiQuery reads the model and whether to stream from the path, …/models/NAME:streamGenerateContent.
func geminiQuery(r *http.Request) query {
	name, method, _ := strings.Cut(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], ":")
	return query{Model: name, Stream: method == "streamGenerateContent"}
}

func (w geminiWire) media() string  { return "text/event-stream" }
func (w geminiWire) ping() string   { return ": ping\r\n\r\n" }
func (w geminiWire) marker() string { return "" }

func (w geminiWire) delta(d delta) string { return w.data(w.response(w.parts(d), nil)) }

func (w geminiWire) data(o object) string { return "data: " + encode(o) + "\r\n\r\n" }

// parts are those of a delta; the zero delta is an empty text.
func (w geminiWire) parts(d delta) []any {
	part := object{"text": d.Content}
	switch {
	case d.Tool != nil:
		part = object{"functionCall": object{"id": d.Tool.ID, "name": d.Tool.Name, "args": json.RawMessage(d.Tool.Arguments)}}
	case d.Reasoning != "":
		part = object{"text": d.Reasoning, "thought": true}
	}
	return []any{with(part, w.b.Extra)}
}

func (w geminiWire) response(parts []any, reason any) object {
	u := w.b.usage()
	candidate := object{"content": object{"parts": parts, "role": "model"}, "index": 0}
	if reason != nil {
		candidate["finishReason"] = reason
	}
	return object{
		"candidates": []any{candidate}, "modelVersion": w.q.Model, "responseId": "scripted",
		"usageMetadata": object{
			"promptTokenCount": u.Prompt, "candidatesTokenCount": u.Completion - u.Reasoning, "thoughtsTokenCount": u.Reasoning,
			"totalTokenCount": u.Prompt + u.Completion, "cachedContentTokenCount": u.Cached,
		},
	}
}

func (w geminiWire) finish(reason string) string {
	return w.data(w.response([]any{object{"text": ""}}, geminiReason(reason)))
}

// geminiReason is a finish reason as Gemini has it, which says STOP beside a tool call.
func geminiReason(reason string) string {
	switch reason {
	case "length":
		return "MAX_TOKENS"
	case "content_filter":
		return "SAFETY"
	}
	return "STOP"
}

func (w geminiWire) event(f Failure) string { return "data: " + w.refusal(f) + "\r\n\r\n" }

func (w geminiWire) refusal(f Failure) string {
	status := f.Code
	if status == "" {
		status = geminiStatus(f.Status)
	}
	return encode(object{"error": object{"code": f.Status, "message": f.Message, "status": status}})
}

func geminiStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	default:
		return "INTERNAL"
	}
}

func (w geminiWire) whole(ds []delta, reason string) string {
	var parts []any
	for _, d := range ds {
		parts = append(parts, w.parts(d)...)
	}
	return encode(w.response(parts, geminiReason(reason)))
}
