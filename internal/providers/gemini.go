package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
)

// gemini speaks Google's generateContent, at the Gemini API and at Vertex AI. Fields that OpenAI doesn't have
// (safetySettings, labels …) go through as they came; those of generationConfig win over OpenAI's.
type gemini struct {
	client *client
	base   string
	// way is how thinking is asked for: reasoning_effort is a level, thinking a budget, "" whichever of the two the
	// model's name suggests.
	way string
}

// newGemini makes a provider of Gemini's dialect.
func newGemini(s Settings) Provider {
	return &gemini{client: newClient(s, "X-Goog-Api-Key"), base: s.BaseURL, way: s.Thinking}
}

// Check refuses what Gemini can't be asked for: images it would have to fetch, one tool call at a time, log
// probabilities, before version 3 JSON beside tools.
func (p *gemini) Check(call Call) error {
	if err := checkNative(call.Request); err != nil {
		return err
	}
	f := fieldsOf(call.Request.Raw)
	mode, _ := f.toolChoice()
	seed, seeded := f.float("seed")
	version := modelVersion(call.Model, "gemini")
	format := unquote(field(f["response_format"], "type"))
	tools := len(elements(f["tools"])) > 0 && mode != "none"
	switch refused := f.asksFor("logprobs", "verbosity"); {
	case refused != "":
		return unsupported(refused)
	case mode == "":
		return unsupported("tool_choice")
	case tools && string(f["parallel_tool_calls"]) == "false":
		return unsupported("parallel_tool_calls")
	case tools && version > 0 && version < 300 && format != "" && format != "text":
		return unsupported("response_format beside tools")
	case seeded && math.Abs(seed) > math.MaxInt32:
		return unsupported("a seed of more than 32 bits")
	}
	return checkMessages(call.Request, checkGeminiMessage)
}

// checkGeminiMessage names the part of a message that can't be carried, "" for none.
func checkGeminiMessage(m Message) string {
	for i, p := range m.Parts {
		media, _, ok := imageBytes(p.ImageURL)
		switch {
		case p.ImageURL == "":
		case !ok || !strings.HasPrefix(media, "image/"):
			return fmt.Sprintf("content[%d].image_url other than base64 data", i)
		case m.Role != "user" && m.Role != "assistant":
			return fmt.Sprintf("content[%d].image_url of the role %s", i, m.Role)
		}
	}
	return checkArguments(m)
}

// Stream calls the model.
func (p *gemini) Stream(ctx context.Context, call Call) (Stream, error) {
	if err := p.Check(call); err != nil {
		return nil, err
	}
	resp, err := p.client.post(ctx, geminiURL(call, p.base), p.body(call), http.Header{}, call.Connect)
	if err != nil {
		return nil, err
	}
	return newGeminiStream(resp.Body, call.Model, p.client), nil
}

// versioned says whether a base URL names a version of the API, as /v1beta or as Vertex AI's before project and
// publisher.
func versioned(base string) bool {
	last := base[strings.LastIndexByte(base, '/')+1:]
	return strings.Contains(base, "/projects/") || len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9'
}

// geminiURL appends the path to a base, which may be the host, or end in a version of the API, in /models, or in Vertex
// AI's project and publisher.
func geminiURL(call Call, own string) string {
	base := strings.TrimSuffix(strings.TrimRight(baseURL(call, own), "/"), "/models")
	if !versioned(base) {
		base += "/v1beta"
	}
	model := call.Model
	if !strings.Contains(model, "/") {
		model = "models/" + url.PathEscape(model)
	}
	base += "/" + model
	if call.Options.NoStream {
		return base + ":generateContent"
	}
	return base + ":streamGenerateContent?alt=sse"
}

// body is the request in Gemini's words.
func (p *gemini) body(call Call) []byte {
	f := fieldsOf(call.Request.Raw)
	f.strip(call.Options.Allow, "generationConfig", "safetySettings", "toolConfig")
	f.drop("logprobs", "top_logprobs", "verbosity")
	version := modelVersion(call.Model, "gemini")
	config := f.generationConfig(version)
	if thinking := p.thinking(f, call); thinking != nil && config["thinkingConfig"] == nil {
		config.set("thinkingConfig", thinking)
	}
	f.drop("enable_thinking", "reasoning_effort", "thinking_budget")
	if len(config) > 0 {
		f.set("generationConfig", config)
	}
	f.geminiTools(version)
	talk := newGeminiTalk(call.Request, version)
	f.set("contents", talk.contents())
	if len(talk.system) > 0 {
		f.set("systemInstruction", block{"parts": talk.system})
	}
	return encode(f)
}

// generationConfig takes out of the request what Gemini has in generationConfig, under its names.
func (f fields) generationConfig(version int) fields {
	f.move("generation_config", "generationConfig")
	config := fieldsOf(f["generationConfig"])
	f.move("max_completion_tokens", "max_tokens")
	f.stopList()
	for from, to := range map[string]string{
		"max_tokens": "maxOutputTokens", "temperature": "temperature", "top_p": "topP", "top_k": "topK", "seed": "seed",
		"stop": "stopSequences", "presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty",
	} {
		if v, ok := f[from]; ok && config[to] == nil {
			config[to] = v
		}
		delete(f, from)
	}
	wanted := f["response_format"]
	f.drop("response_format", "generationConfig")
	switch unquote(field(wanted, "type")) {
	case "json_object":
		config.set("responseMimeType", "application/json")
	case "json_schema":
		config.set("responseMimeType", "application/json")
		if schema := field(field(wanted, "json_schema"), "schema"); schema != nil {
			config[schemaName("response", version)] = geminiSchema(schema)
		}
	}
	return config
}

// schemaName is the field for a JSON schema: models before 2.5 know only the one for OpenAPI's, which is a part of it.
func schemaName(what string, version int) string {
	old := version > 0 && version < 205
	switch {
	case old && what == "parameters":
		return what
	case old:
		return what + "Schema"
	}
	return what + "JsonSchema"
}

// geminiSchema is a schema without the name of its own language, which Gemini doesn't know.
func geminiSchema(schema []byte) json.RawMessage {
	if !hasMember(schema, "$schema") {
		return schema
	}
	f := fieldsOf(schema)
	delete(f, "$schema")
	return encode(f)
}

// thinking is thinkingConfig, nil where nothing is to be said. Thinking can be switched off for some models only; with
// others it is the least there is, and nothing of it is shown.
func (p *gemini) thinking(f fields, call Call) block {
	t := call.Request.Thinking
	if t.Mode == ThinkingUnset || p.way == ThinkingByNone || call.Options.NoThinking {
		return nil
	}
	out := block{}
	version := modelVersion(call.Model, "gemini")
	pro := strings.Contains(strings.ToLower(call.Model), "pro")
	on := t.Mode == ThinkingOn
	budget, given := f.float("thinking_budget")
	if on {
		out["includeThoughts"] = true
	}
	switch {
	case on && given:
		out["thinkingBudget"] = int(budget)
	case p.way == ThinkingByEffort || p.way == "" && version >= 300:
		if level := geminiLevel(t, version == 300 && pro); level != "" {
			out["thinkingLevel"] = level
		}
	case on:
		out["thinkingBudget"] = geminiBudget(t.Effort)
	case pro:
		out["thinkingBudget"] = 128
	default:
		out["thinkingBudget"] = 0
	}
	return out
}

// geminiLevel is how much to think as a level; low is the least that all models have. The first Pro has nothing between
// low and high.
func geminiLevel(t Thinking, first bool) string {
	switch {
	case t.Mode == ThinkingOff || t.Effort == "minimal":
		return "low"
	case t.Effort == "xhigh" || t.Effort == "max" || t.Effort == "medium" && first:
		return "high"
	}
	return t.Effort
}

// geminiBudget is an effort as a number of tokens, as Google's own translation has it; -1: as much as the model finds
// right.
func geminiBudget(effort string) int {
	switch effort {
	case "minimal", "low":
		return 1024
	case "medium":
		return 8192
	case "high", "xhigh", "max":
		return 24576
	}
	return -1
}

// geminiTools words tools and how to choose among them.
func (f fields) geminiTools(version int) {
	f.move("tool_config", "toolConfig")
	mode, name := f.toolChoice()
	var functions []block
	for _, tool := range elements(f["tools"]) {
		functions = append(functions, geminiFunction(field(tool, "function"), version))
	}
	f.drop("tools", "tool_choice", "parallel_tool_calls")
	if functions == nil {
		return
	}
	config := block{"mode": strings.ToUpper(mode)}
	switch mode {
	case "required":
		config["mode"] = "ANY"
	case "function":
		config = block{"mode": "ANY", "allowedFunctionNames": []string{name}}
	}
	f.set("tools", []block{{"functionDeclarations": functions}})
	if mode != "auto" && f["toolConfig"] == nil {
		f.set("toolConfig", block{"functionCallingConfig": config})
	}
}

func geminiFunction(function []byte, version int) block {
	out := block{"name": unquote(field(function, "name"))}
	if text := unquote(field(function, "description")); text != "" {
		out["description"] = text
	}
	if schema := field(function, "parameters"); schema != nil {
		out[schemaName("parameters", version)] = geminiSchema(schema)
	}
	return out
}

// geminiTalk is a conversation in Gemini's words: the system prompt apart, turns of user and model.
type geminiTalk struct {
	system  []block
	turns   turns
	ids     *callIDs
	names   map[string]string // of the tools called so far, by id
	version int
}

func newGeminiTalk(r *Request, version int) *geminiTalk {
	t := &geminiTalk{ids: newCallIDs(), names: map[string]string{}, version: version}
	raws := rawMessages(r)
	for i, m := range r.Messages {
		t.add(m, raws[i])
	}
	return t
}

// add takes one message; raw is the message as it came.
func (t *geminiTalk) add(m Message, raw []byte) {
	switch m.Role {
	case "system", "developer":
		t.system = append(t.system, geminiText(spoken(m, raw))...)
	case "tool":
		t.turns.add("tool", t.result(m, raw))
	case "assistant":
		parts := geminiParts(m, raw)
		if s := geminiSignature(raw); s != "" && len(parts) > 0 {
			parts[len(parts)-1]["thoughtSignature"] = s
		}
		t.turns.add("model", append(parts, t.calls(m, raw)...)...)
	default:
		t.turns.add("user", append(geminiText(speaker(m)), geminiParts(m, raw)...)...)
	}
}

// contents are the turns as they are sent. Results are a turn of their own, apart from what the user says behind them,
// but his too.
func (t *geminiTalk) contents() []block {
	out := t.turns.opened(block{"text": goOn})
	for i := range out {
		if out[i].role == "tool" {
			out[i].role = "user"
		}
	}
	return out.objects("parts")
}

// unsignedCall is what Google documents for calls that come from elsewhere: from version 3 on, the first call of a step
// without a signature is refused.
const unsignedCall = "skip_thought_signature_validator"

// calls are the tool calls of a message, with the signatures that the caller sends back.
func (t *geminiTalk) calls(m Message, raw []byte) []block {
	raws := elements(field(raw, "tool_calls"))
	raws = append(raws, make([][]byte, max(0, len(m.ToolCalls)-len(raws)))...)
	var out []block
	signed := false
	for i, c := range m.ToolCalls {
		id := t.ids.call(c.ID)
		t.names[id] = c.Name
		function := block{"name": c.Name, "args": json.RawMessage(cmp.Or(c.Arguments, "{}"))}
		t.identify(function, id)
		part := block{"functionCall": function}
		if s := geminiSignature(raws[i]); s != "" {
			part["thoughtSignature"], signed = s, true
		}
		out = append(out, part)
	}
	if len(out) > 0 && !signed && t.version >= 300 {
		out[0]["thoughtSignature"] = unsignedCall
	}
	return out
}

// identify adds the id, which models before version 3 don't need and older APIs don't know.
func (t *geminiTalk) identify(function block, id string) {
	if t.version >= 300 {
		function["id"] = id
	}
}

// result is the answer of a tool: an object as it is, anything else as its output.
func (t *geminiTalk) result(m Message, raw []byte) block {
	id := t.ids.result(m.ToolCallID)
	text := spoken(m, raw)
	var response any = block{"output": text}
	if validObject([]byte(text)) {
		response = json.RawMessage(text)
	}
	function := block{"name": cmp.Or(t.names[id], m.Name, id), "response": response}
	t.identify(function, id)
	return block{"functionResponse": function}
}

// geminiSignature is the signature that a message or a tool call brings back, "" for none.
func geminiSignature(raw []byte) string {
	return unquote(field(field(field(raw, "extra_content"), "google"), "thought_signature"))
}

// geminiParts is the content of a message.
func geminiParts(m Message, raw []byte) []block {
	var out []block
	images := false
	for _, p := range m.Parts {
		media, data, ok := imageBytes(p.ImageURL)
		if !ok {
			out = append(out, geminiText(p.Text)...)
			continue
		}
		images = true
		out = append(out, block{"inlineData": block{"mimeType": media, "data": data}})
	}
	if !images {
		return geminiText(spoken(m, raw))
	}
	return out
}

// geminiText is a part of text, none for the empty one.
func geminiText(text string) []block {
	if text == "" {
		return nil
	}
	return []block{{"text": text}}
}
