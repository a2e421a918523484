package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// anthropic speaks the Messages API, POST {base}/v1/messages. Fields that OpenAI doesn't have (thinking, top_k,
// context_management …) go through as they came.
type anthropic struct {
	client *client
	base   string
	// way is how thinking is asked for: reasoning_effort is adaptive thinking with an effort, thinking one with a
	// budget, "" whichever of the two the model's name suggests.
	way string
}

// newAnthropic makes a provider of Anthropic's dialect.
func newAnthropic(s Settings) Provider {
	c := newClient(s, "X-Api-Key")
	if c.header.Get("Anthropic-Version") == "" {
		c.header.Set("Anthropic-Version", "2023-06-01")
	}
	return &anthropic{client: c, base: s.BaseURL, way: s.Thinking}
}

// How a call thinks, in the words of thinking.type; "" where nothing is said of it.
const (
	thinkAdaptive = "adaptive" // as much as the model finds right, with an effort
	thinkEnabled  = "enabled"  // up to a budget
	thinkDisabled = "disabled"
)

// minBudget is the least budget of thinking.
const minBudget = 1024

// Check refuses what the Messages API can't be asked for: seeds, penalties, log probabilities, JSON without a schema,
// sampling or a forced tool beside thinking, images that a private base would have to fetch.
func (p *anthropic) Check(call Call) error {
	if err := checkNative(call.Request); err != nil {
		return err
	}
	f := fieldsOf(call.Request.Raw)
	f.move("max_completion_tokens", "max_tokens")
	refused := cmp.Or(
		f.asksFor("seed", "frequency_penalty", "presence_penalty", "logprobs", "verbosity"),
		f.anthropicRefuses(modelVersion(call.Model, "claude")),
		f.refusedBeside(p.thinking(call)),
	)
	if refused != "" {
		return unsupported(refused)
	}
	if err := checkMessages(call.Request, checkAnthropicMessage); err != nil {
		return err
	}
	return checkFetch(call, p.base)
}

// anthropicRefuses names what a model of a version can't be asked for, "" for nothing.
func (f fields) anthropicRefuses(version int) string {
	structured := version == 0 || version == 401 || version >= 405
	mode, _ := f.toolChoice()
	temperature, hot := f.float("temperature")
	topP, nucleus := f.float("top_p")
	switch kind := unquote(field(f["response_format"], "type")); {
	case kind == "json_object":
		return "response_format json_object"
	case kind == "json_schema" && !structured:
		return "response_format"
	case !structured && slices.ContainsFunc(elements(f["tools"]), strict):
		return "tools of which one is strict"
	case mode == "":
		return "tool_choice"
	case hot && temperature > 1:
		return "temperature above 1"
	case version >= 407 && hot && temperature != 1:
		return "temperature"
	case version >= 407 && nucleus && topP != 1:
		return "top_p"
	case version >= 407 && f["top_k"] != nil:
		return "top_k"
	}
	f.stopList()
	for _, stop := range elements(f["stop"]) {
		if strings.TrimSpace(unquote(stop)) == "" {
			return "stop sequences of white space"
		}
	}
	return ""
}

func strict(tool []byte) bool { return string(field(field(tool, "function"), "strict")) == "true" }

// refusedBeside names what can't be asked for beside thinking, "" for nothing.
func (f fields) refusedBeside(thinking string) string {
	if thinking != thinkAdaptive && thinking != thinkEnabled {
		return ""
	}
	mode, _ := f.toolChoice()
	limit, limited := f.float("max_tokens")
	temperature, hot := f.float("temperature")
	topP, nucleus := f.float("top_p")
	switch {
	case mode == "required" || mode == "function":
		return "tool_choice beside thinking"
	case hot && temperature != 1:
		return "temperature beside thinking"
	case nucleus && topP < 0.95:
		return "top_p beside thinking"
	case f["top_k"] != nil:
		return "top_k beside thinking"
	case thinking == thinkAdaptive && f["thinking_budget"] != nil:
		return "thinking_budget"
	case thinking == thinkEnabled && limited && limit <= minBudget:
		return fmt.Sprintf("max_tokens of %d or less beside thinking", minBudget)
	}
	return ""
}

// checkAnthropicMessage names the part of a message that can't be carried, "" for none.
func checkAnthropicMessage(m Message) string {
	for i, p := range m.Parts {
		if p.ImageURL == "" {
			continue
		}
		media, _, data := imageBytes(p.ImageURL)
		known := slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, media)
		switch {
		case m.Role != "user" && m.Role != "tool":
			return fmt.Sprintf("content[%d].image_url of the role %s", i, m.Role)
		case data && !known || !data && !isHTTP(p.ImageURL):
			return fmt.Sprintf("content[%d].image_url other than JPEG, PNG, GIF or WebP", i)
		}
	}
	return checkArguments(m)
}

// Stream calls the model.
func (p *anthropic) Stream(ctx context.Context, call Call) (Stream, error) {
	if err := p.Check(call); err != nil {
		return nil, err
	}
	header := http.Header{}
	if !call.Options.NoStream {
		header.Set("Accept", "text/event-stream")
	}
	resp, err := p.client.post(ctx, anthropicURL(baseURL(call, p.base)), p.body(call), header, call.Connect)
	if err != nil {
		return nil, err
	}
	return newAnthropicStream(resp.Body, call.Model, p.client), nil
}

// anthropicURL appends the path to a base, which may end in parts of it already.
func anthropicURL(base string) string {
	base = strings.TrimRight(base, "/")
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/messages"), "/v1")
	return base + "/v1/messages"
}

// thinking is how a call is to think.
func (p *anthropic) thinking(call Call) string {
	mode := call.Request.Thinking.Mode
	adaptive := p.way == ThinkingByEffort || p.way == "" && modelVersion(call.Model, "claude") >= 406
	switch {
	case mode == ThinkingUnset || p.way == ThinkingByNone || call.Options.NoThinking:
		return ""
	case adaptive && mode == ThinkingOn:
		return thinkAdaptive
	case mode == ThinkingOn && !unsigned(call.Request):
		return thinkEnabled
	}
	return thinkDisabled
}

// unsigned says that the conversation stands between a tool call and the answer to it, and that the thoughts before
// the call can't be given back as the API demands: it was made by another family's model, or the caller doesn't keep
// them. The API takes such a request only without thinking.
func unsigned(r *Request) bool {
	raws := rawMessages(r)
	for i, m := range slices.Backward(r.Messages) {
		switch {
		case m.Role != "tool" && m.Role != "assistant":
			return false
		case len(m.ToolCalls) > 0 && len(anthropicThoughts(raws[i])) == 0:
			return true
		}
	}
	return false
}

// body is the request in Anthropic's words.
func (p *anthropic) body(call Call) []byte {
	f := fieldsOf(call.Request.Raw)
	user := cmp.Or(unquote(f["user"]), unquote(f["safety_identifier"]))
	f.strip(call.Options.Allow)
	f.drop("seed", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "verbosity")
	f.anthropicSampling(modelVersion(call.Model, "claude"))
	f.anthropicFormat()
	thinking := p.thinking(call)
	f.anthropicThinking(thinking, call)
	talk := newAnthropicTalk(call.Request, thinking)
	f.anthropicTools(talk)
	if plainUser(user) {
		f.set("metadata", block{"user_id": user})
	}
	if len(talk.system) > 0 {
		f.set("system", talk.system)
	}
	f.set("model", call.Model)
	f.set("messages", talk.messages())
	f.set("stream", !call.Options.NoStream)
	return encode(f)
}

// plainUser says whether the API takes a user's id: it refuses what looks like an address or a telephone number.
func plainUser(id string) bool {
	letter := func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
	return len(id) <= 256 && !strings.Contains(id, "@") && strings.ContainsFunc(id, letter)
}

// anthropicSampling renames what OpenAI calls otherwise, leaves out what is the default (newer models take no two of
// a kind, the newest none), and sets max_tokens, which must be there.
func (f fields) anthropicSampling(version int) {
	f.move("max_completion_tokens", "max_tokens")
	f.stopList()
	f.move("stop", "stop_sequences")
	for _, name := range []string{"temperature", "top_p"} {
		if n, ok := f.float(name); ok && n == 1 {
			delete(f, name)
		}
	}
	if f["max_tokens"] == nil {
		f.set("max_tokens", maxOutput(version))
	}
}

// maxOutput is how much a Claude of a version can say at once, as far as all of that version can.
func maxOutput(version int) int {
	switch {
	case version >= 307:
		return 32000
	case version == 0 || version >= 305:
		return 8192
	}
	return 4096
}

// anthropicFormat makes response_format output_config.format.
func (f fields) anthropicFormat() {
	wanted := f["response_format"]
	delete(f, "response_format")
	if unquote(field(wanted, "type")) != "json_schema" {
		return
	}
	format := block{"type": "json_schema"}
	if schema := field(field(wanted, "json_schema"), "schema"); schema != nil {
		format["schema"] = json.RawMessage(closedSchema(schema))
	}
	f["output_config"] = merged(f["output_config"], "format", encode(format))
}

// anthropicThinking sets thinking and, where it is adaptive, the effort.
func (f fields) anthropicThinking(thinking string, call Call) {
	effort := call.Request.Thinking.Effort
	asked, given := f.float("thinking_budget")
	f.drop("enable_thinking", "reasoning_effort", "thinking_budget")
	switch thinking {
	case thinkDisabled:
		f.set("thinking", block{"type": thinking})
	case thinkAdaptive:
		f.set("thinking", block{"type": thinking, "display": "summarized"})
		if effort = anthropicEffort(effort, modelVersion(call.Model, "claude")); effort != "" {
			f["output_config"] = merged(f["output_config"], "effort", appendString(nil, effort))
		}
	case thinkEnabled:
		limit, _ := f.float("max_tokens")
		budget := min(thinkingBudget(effort), int(limit)/2)
		if given {
			budget = min(int(asked), int(limit)-1)
		}
		f.set("thinking", block{"type": thinking, "budget_tokens": max(budget, minBudget)})
	}
}

// anthropicEffort is an effort in the words that a version knows.
func anthropicEffort(effort string, version int) string {
	switch {
	case effort == "minimal":
		return "low"
	case effort == "xhigh" && version < 407:
		return "high"
	}
	return effort
}

// thinkingBudget is how many tokens an effort may think.
func thinkingBudget(effort string) int {
	switch effort {
	case "minimal":
		return minBudget
	case "low":
		return 2048
	case "high":
		return 16384
	case "xhigh", "max":
		return 24576
	}
	return 8192
}
