package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// ollama speaks Ollama's native dialect, POST {base}/api/chat. Fields that OpenAI doesn't have (keep_alive, options …)
// go through as they came.
type ollama struct {
	client *client
	base   string
	way    string // how thinking is asked for
}

// newOllama makes a provider of Ollama's native dialect.
func newOllama(s Settings) Provider {
	return &ollama{client: newClient(s, "Authorization"), base: s.BaseURL, way: s.Thinking}
}

// Check refuses what Ollama can't be asked for: images it would have to fetch, a tool that must or may not be called
// beside others, log probabilities, tool calls of earlier turns whose arguments are no object.
func (p *ollama) Check(call Call) error {
	if err := checkNative(call.Request); err != nil {
		return err
	}
	f := fieldsOf(call.Request.Raw)
	switch choice := f["tool_choice"]; {
	case choice != nil && unquote(choice) != "auto" && unquote(choice) != "none":
		return unsupported("tool_choice")
	case string(f["logprobs"]) == "true":
		return unsupported("logprobs")
	case string(f["parallel_tool_calls"]) == "false" && f["tools"] != nil:
		return unsupported("parallel_tool_calls")
	}
	return checkMessages(call.Request, checkOllamaMessage)
}

// checkOllamaMessage names the part of a message that Ollama can't take, "" for none.
func checkOllamaMessage(m Message) string {
	for i, p := range m.Parts {
		if _, _, ok := imageBytes(p.ImageURL); p.ImageURL != "" && !ok {
			return fmt.Sprintf("content[%d].image_url other than base64 data", i)
		}
	}
	return checkArguments(m)
}

// Stream calls the model.
func (p *ollama) Stream(ctx context.Context, call Call) (Stream, error) {
	if err := p.Check(call); err != nil {
		return nil, err
	}
	url := strings.TrimSuffix(strings.TrimRight(baseURL(call, p.base), "/"), "/api") + "/api/chat"
	resp, err := p.client.post(ctx, url, p.body(call), nil, call.Connect)
	if err != nil {
		return nil, err
	}
	return newOllamaStream(resp.Body, call.Model, p.client), nil
}

func (p *ollama) body(call Call) []byte {
	f := fieldsOf(call.Request.Raw)
	f.strip(call.Options.Allow)
	delete(f, "logprobs") // false
	delete(f, "parallel_tool_calls")
	if unquote(f["tool_choice"]) == "none" {
		delete(f, "tools")
	}
	delete(f, "tool_choice")
	f.ollamaOptions()
	f.ollamaFormat()
	f.ollamaThink(p.way, call)
	f.set("model", call.Model)
	f.set("messages", ollamaMessages(call.Request))
	f.set("stream", !call.Options.NoStream)
	return encode(f)
}

// ollamaOptions moves what OpenAI has at the top into options, under Ollama's names. What the caller put into
// options himself stays.
func (f fields) ollamaOptions() {
	f.move("max_completion_tokens", "num_predict")
	f.move("max_tokens", "num_predict")
	f.move("repetition_penalty", "repeat_penalty")
	f.stopList()
	options := fieldsOf(f["options"])
	for _, name := range []string{
		"num_predict", "temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "stop", "frequency_penalty",
		"presence_penalty", "repeat_penalty", "repeat_last_n", "num_ctx", "num_keep",
	} {
		if v, ok := f[name]; ok && options[name] == nil {
			options[name] = v
		}
		delete(f, name)
	}
	if delete(f, "options"); len(options) > 0 {
		f.set("options", options)
	}
}

// ollamaFormat makes response_format Ollama's format: "json", or the schema itself.
func (f fields) ollamaFormat() {
	wanted := f["response_format"]
	delete(f, "response_format")
	switch unquote(field(wanted, "type")) {
	case "json_object":
		f.set("format", "json")
	case "json_schema":
		f.set("format", "json")
		if schema := field(field(wanted, "json_schema"), "schema"); schema != nil {
			f["format"] = schema
		}
	}
}

// ollamaThink sets think: a level where the caller gave one that Ollama has, else whether.
func (f fields) ollamaThink(way string, call Call) {
	t := call.Request.Thinking
	delete(f, "enable_thinking")
	delete(f, "reasoning_effort")
	switch {
	case t.Mode == ThinkingUnset || way == ThinkingByNone || call.Options.NoThinking:
	case t.Mode == ThinkingOff:
		f.set("think", false)
	case t.Effort == "low" || t.Effort == "minimal":
		f.set("think", "low")
	case t.Effort == "medium":
		f.set("think", "medium")
	case t.Effort != "":
		f.set("think", "high")
	default:
		f.set("think", true)
	}
}

// ollamaMessage is a message of /api/chat. Images are base64.
type ollamaMessage struct {
	Role       string           `json:"role"`
	Name       string           `json:"name,omitempty"`
	Content    string           `json:"content"`
	Thinking   string           `json:"thinking,omitempty"`
	Images     []string         `json:"images,omitempty"`
	ToolCalls  []ollamaToolCall `json:"tool_calls,omitempty"`
	ToolName   string           `json:"tool_name,omitempty"` // of a result
	ToolCallID string           `json:"tool_call_id,omitempty"`
}

type ollamaToolCall struct {
	ID       string         `json:"id,omitempty"`
	Function ollamaFunction `json:"function"`
}

type ollamaFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func ollamaMessages(r *Request) []ollamaMessage {
	raws := rawMessages(r)
	names := map[string]string{} // of the tool calls so far, by id
	out := make([]ollamaMessage, len(r.Messages))
	for i, m := range r.Messages {
		msg := ollamaMessage{Role: nativeRole(m.Role), Name: m.Name, Content: spoken(m, raws[i]), Thinking: m.Reasoning}
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
			arguments := json.RawMessage(cmp.Or(c.Arguments, "{}"))
			msg.ToolCalls = append(msg.ToolCalls, ollamaToolCall{c.ID, ollamaFunction{c.Name, arguments}})
		}
		for _, p := range m.Parts {
			if _, image, ok := imageBytes(p.ImageURL); ok {
				msg.Images = append(msg.Images, image)
			}
		}
		if m.Role == "tool" {
			msg.Name, msg.ToolName, msg.ToolCallID = "", m.Name, m.ToolCallID
			if name := names[m.ToolCallID]; name != "" {
				msg.ToolName = name
			}
		}
		out[i] = msg
	}
	return out
}

func newOllamaStream(body io.ReadCloser, model string, c *client) Stream {
	r := &ollamaReader{lines: newNDJSON(body)}
	return &nativeStream{body: body, client: c, read: r.next, ahead: ahead{more: r.lines.buffered}, maker: newChunkMaker(model)}
}

// ollamaReader reads Ollama's answer, line by line: of /api/chat, or of /api/generate, which servers that imitate
// one of the two mix up.
type ollamaReader struct {
	lines *ndjsonReader
	tools int // calls so far
}

func (r *ollamaReader) next() (nativeStep, error) {
	line, err := r.lines.next()
	if err != nil {
		return nativeStep{}, err
	}
	if !validObject(line) {
		return nativeStep{}, undecodable(false)
	}
	if field(line, "error") != nil {
		return nativeStep{}, classify(0, nil, line)
	}
	message := field(line, "message")
	if message == nil && field(line, "response") == nil && field(line, "done") == nil {
		return nativeStep{}, undecodable(false)
	}
	st := nativeStep{delta: delta{
		Text:      unquote(field(message, "content")) + unquote(field(line, "response")),
		Reasoning: unquote(field(message, "thinking")) + unquote(field(line, "thinking")),
		Calls:     r.calls(message),
	}}
	if string(field(line, "done")) != "true" {
		return st, nil
	}
	st.usage = ollamaUsage(line)
	st.Finish, err = ollamaFinish(line)
	return st, err
}

// calls are whole tool calls with an object as arguments. They have no index of their own: each is a new one.
func (r *ollamaReader) calls(message []byte) []callDelta {
	var out []callDelta
	for _, c := range elements(field(message, "tool_calls")) {
		function := field(c, "function")
		call := callDelta{Index: r.tools, ID: unquote(field(c, "id")), Name: unquote(field(function, "name")), Arguments: "{}"}
		if call.ID == "" {
			call.ID = newID("call_")
		}
		if arguments := field(function, "arguments"); isString(arguments) {
			call.Arguments = unquote(arguments)
		} else if arguments != nil {
			call.Arguments = string(arguments)
		}
		r.tools++
		out = append(out, call)
	}
	return out
}

// ollamaUsage is nil where the last line has no counts.
func ollamaUsage(line []byte) *usage {
	u := &usage{Prompt: count(line, "prompt_eval_count"), Completion: count(line, "eval_count"), Cached: -1, Reasoning: -1}
	if u.Prompt < 0 && u.Completion < 0 {
		return nil
	}
	return u
}

// ollamaFinish is the finish reason of a line with done:true. "" is what Ollama says when its own runner broke off;
// without the word at all old servers end, which count what they made. load and unload answer no question.
func ollamaFinish(line []byte) (string, error) {
	reason := field(line, "done_reason")
	switch {
	case reason == nil && count(line, "eval_count") < 0, reason != nil && !said(reason):
		return "", undecodable(true)
	case unquote(reason) == "load", unquote(reason) == "unload":
		return "", &Error{Kind: KindLoading, Code: unquote(reason)}
	case unquote(reason) == "length":
		return "length", nil
	}
	return "stop", nil
}
