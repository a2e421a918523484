package providers

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// dashScope speaks Alibaba Model Studio's native dialect. Parameters are OpenAI's words but for a few; what it has
// beyond them (top_k, enable_search, thinking_budget …) goes through as it came.
type dashScope struct {
	client *client
	base   string
	way    string // how thinking is asked for
	// multimodal has the models (string) that turned out to need the other path than their name suggests (bool).
	multimodal sync.Map
}

// newDashScope makes a provider of DashScope's native dialect.
func newDashScope(s Settings) Provider {
	return &dashScope{client: newClient(s, "Authorization"), base: s.BaseURL, way: s.Thinking}
}

// Check refuses what DashScope can't be asked for: penalties by frequency, a tool that must be called, whichever, and
// images that a private base would have to fetch.
func (p *dashScope) Check(call Call) error {
	if err := checkNative(call.Request); err != nil {
		return err
	}
	f := fieldsOf(call.Request.Raw)
	if v, ok := f["frequency_penalty"]; ok && !isZero(v) {
		return unsupported("frequency_penalty")
	}
	if unquote(f["tool_choice"]) == "required" {
		return unsupported("tool_choice")
	}
	return checkFetch(call, p.base)
}

// Stream calls the model. A model that answers that its path is the other one is asked again there, and from then on.
func (p *dashScope) Stream(ctx context.Context, call Call) (Stream, error) {
	if err := p.Check(call); err != nil {
		return nil, err
	}
	multimodal := p.wantsMultimodal(call)
	resp, err := p.post(ctx, call, multimodal)
	if wrongPath(err) && !hasImages(call.Request) {
		if resp, err = p.post(ctx, call, !multimodal); err == nil {
			p.multimodal.Store(call.Model, !multimodal)
		}
	}
	if err != nil {
		return nil, missed(err, hasImages(call.Request))
	}
	return newDashScopeStream(resp.Body, call, p.client), nil
}

// wrongPath is DashScope's "url error, please check url": the model is not served at this path.
func wrongPath(err error) bool {
	return err != nil && strings.Contains(AsError(err).Message, "url error")
}

// missed makes a wrong path what it means, which the provider calls a bad request: a text model asked to look at
// images, or no such model.
func missed(err error, images bool) error {
	if !wrongPath(err) {
		return err
	}
	e := *AsError(err)
	if e.Kind = KindModelMissing; images {
		e.Kind = KindUnsupported
	}
	return &e
}

func (p *dashScope) post(ctx context.Context, call Call, multimodal bool) (*http.Response, error) {
	header := http.Header{}
	if !call.Options.NoStream {
		header.Set("X-DashScope-SSE", "enable")
		header.Set("Accept", "text/event-stream")
	}
	url := dashScopeURL(baseURL(call, p.base), multimodal)
	return p.client.post(ctx, url, p.body(call, multimodal), header, call.Connect)
}

// dashScopeURL appends the path to a base, which may be the host, end in /api/v1 as in DashScope's own clients, or
// be a whole endpoint.
func dashScopeURL(base string, multimodal bool) string {
	base = strings.TrimRight(base, "/")
	if strings.HasSuffix(base, "/generation") {
		return base
	}
	task := "text-generation"
	if multimodal {
		task = "multimodal-generation"
	}
	return strings.TrimSuffix(base, "/api/v1") + "/api/v1/services/aigc/" + task + "/generation"
}

func (p *dashScope) wantsMultimodal(call Call) bool {
	if hasImages(call.Request) {
		return true
	}
	if learned, ok := p.multimodal.Load(call.Model); ok {
		return learned.(bool)
	}
	return multimodalModel(call.Model)
}

func hasImages(r *Request) bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool {
		return slices.ContainsFunc(m.Parts, func(p Part) bool { return p.ImageURL != "" })
	})
}

// multimodalModel says whether a model's name is one of those served at the multimodal path only: vision and audio
// models, and from 3.5 on all of Qwen but the text models max and coder.
func multimodalModel(name string) bool {
	name = strings.ToLower(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, word := range []string{"vl", "ocr", "omni", "audio", "qvq"} {
		if slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' }), word) {
			return true
		}
	}
	version, ok := strings.CutPrefix(name, "qwen")
	if !ok || strings.Contains(name, "max") || strings.Contains(name, "coder") {
		return false
	}
	version, _, _ = strings.Cut(version, "-")
	n, err := strconv.ParseFloat(version, 64)
	return err == nil && n >= 3.5
}

// body is the request in DashScope's words.
func (p *dashScope) body(call Call, multimodal bool) []byte {
	return encode(map[string]any{
		"model":      call.Model,
		"input":      map[string]any{"messages": dashScopeMessages(call.Request, multimodal)},
		"parameters": p.parameters(call),
	})
}

func (p *dashScope) parameters(call Call) fields {
	f := fieldsOf(call.Request.Raw)
	f.strip(call.Options.Allow)
	delete(f, "frequency_penalty")
	f.move("max_completion_tokens", "max_tokens")
	f.clampTopP()
	f.thinking(p.way, call)
	f.set("result_format", "message")
	if !call.Options.NoStream {
		f.set("incremental_output", !call.Options.Cumulative)
	}
	return f
}

// clampTopP keeps top_p within what DashScope takes, which neither 0 nor, for older models, 1 is.
func (f fields) clampTopP() {
	const least, most = 1e-6, 0.999999
	n, err := strconv.ParseFloat(string(f["top_p"]), 64)
	if err == nil && (n < least || n > most) {
		f.set("top_p", min(max(n, least), most))
	}
}

// dashScopeMessage is a message of input.messages. Content is a string, or on the multimodal path an array of parts.
type dashScopeMessage struct {
	Role       string              `json:"role"`
	Name       string              `json:"name,omitempty"`
	Content    any                 `json:"content"`
	Reasoning  string              `json:"reasoning_content,omitempty"`
	ToolCalls  []dashScopeToolCall `json:"tool_calls,omitempty"`
	ToolCallID string              `json:"tool_call_id,omitempty"`
	Partial    bool                `json:"partial,omitempty"` // the model goes on with this message
}

type dashScopeToolCall struct {
	Index    int               `json:"index"`
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Function dashScopeFunction `json:"function"`
}

type dashScopeFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func dashScopeMessages(r *Request, multimodal bool) []dashScopeMessage {
	raws := rawMessages(r)
	out := make([]dashScopeMessage, len(r.Messages))
	for i, m := range r.Messages {
		out[i] = dashScopeMessage{
			Role: nativeRole(m.Role), Name: m.Name, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID,
			Partial: string(field(raws[i], "partial")) == "true",
		}
		for j, c := range m.ToolCalls {
			call := dashScopeToolCall{Index: j, ID: c.ID, Type: "function", Function: dashScopeFunction{c.Name, c.Arguments}}
			out[i].ToolCalls = append(out[i].ToolCalls, call)
		}
		if out[i].Content = spoken(m, raws[i]); multimodal {
			out[i].Content = dashScopeParts(m, raws[i])
		}
	}
	return out
}

// dashScopeParts is the content of a message for the multimodal path: {"text": …} and {"image": URL or data URL}.
func dashScopeParts(m Message, raw []byte) []map[string]string {
	if !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.ImageURL != "" }) {
		return []map[string]string{{"text": spoken(m, raw)}}
	}
	var out []map[string]string
	for _, p := range m.Parts {
		if p.ImageURL != "" {
			out = append(out, map[string]string{"image": p.ImageURL})
			continue
		}
		out = append(out, map[string]string{"text": p.Text})
	}
	return out
}
