package providers

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// claude says whether a model is Anthropic's: by its name, or, where that is the ARN of a profile, by how thinking is
// asked for.
func (p *bedrock) claude(model string) bool {
	return modelVersion(model, "claude") > 0 || p.way == ThinkingByType && strings.HasPrefix(model, "arn:")
}

// thinking is how a Claude is to think.
func (p *bedrock) thinking(call Call) string {
	if !p.claude(call.Model) {
		return ""
	}
	return (&anthropic{way: p.way}).thinking(call)
}

// Check refuses what Converse can't be asked for: seeds, penalties, log probabilities, JSON without a schema, images
// that the gateway would have to fetch, tools that may not be called where the history has calls of them; and of
// Claude what the Messages API can't be asked for.
func (p *bedrock) Check(call Call) error {
	if err := checkNative(call.Request); err != nil {
		return err
	}
	f := fieldsOf(call.Request.Raw)
	f.move("max_completion_tokens", "max_tokens")
	refused := cmp.Or(
		f.asksFor("seed", "frequency_penalty", "presence_penalty", "logprobs", "verbosity"),
		f.converseRefuses(call),
	)
	if refused == "" && p.claude(call.Model) {
		refused = cmp.Or(f.anthropicRefuses(modelVersion(call.Model, "claude")), f.refusedBeside(p.thinking(call)))
	}
	if refused != "" {
		return unsupported(refused)
	}
	return checkMessages(call.Request, checkBedrockMessage)
}

// converseRefuses names what a model can't be asked for, "" for nothing.
func (f fields) converseRefuses(call Call) string {
	mode, _ := f.toolChoice()
	temperature, hot := f.float("temperature")
	format := f["response_format"]
	tools := len(elements(f["tools"])) > 0
	switch kind := unquote(field(format, "type")); {
	case kind == "json_object":
		return "response_format json_object; give a json_schema"
	case kind == "json_schema" && field(field(format, "json_schema"), "schema") == nil:
		return "response_format without a schema"
	case hot && temperature > 1:
		return "temperature above 1"
	case mode == "":
		return "tool_choice"
	case (mode == "none" || !tools) && hasCalls(call.Request):
		return "tool calls in messages where no tool may be called"
	case tools && f.singleCall() && modelVersion(call.Model, "claude") < 405:
		return "parallel_tool_calls"
	}
	return ""
}

// singleCall says that no two tools may be called at once.
func (f fields) singleCall() bool { return string(f["parallel_tool_calls"]) == "false" }

// hasCalls says whether a conversation has calls of tools, or results of them.
func hasCalls(r *Request) bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Role == "tool" || len(m.ToolCalls) > 0 })
}

// body is the request in Converse's words. What is left over after them is the model's own, and goes where such fields
// go.
func (p *bedrock) body(call Call) []byte {
	f := fieldsOf(call.Request.Raw)
	out := f.converseFields(call.Options.Allow)
	f.strip(call.Options.Allow)
	f.drop("seed", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "verbosity")
	f.move("max_completion_tokens", "max_tokens")
	thinking := p.thinking(call)
	if thinking == thinkEnabled && f["max_tokens"] == nil {
		f.set("max_tokens", maxOutput(modelVersion(call.Model, "claude")))
	}
	p.think(f, call)

	talk := p.talk(call, thinking)
	if len(talk.system) > 0 {
		out.set("system", talk.system)
	}
	out.set("messages", talk.turns.opened(block{"text": goOn}).objects("content"))
	f.converseTools(out, talk.caches, p.claude(call.Model))
	f.converseFormat(out, p.claude(call.Model))
	f.converseInference(out, p.claude(call.Model))

	own := fieldsOf(out["additionalModelRequestFields"])
	for name, value := range f {
		if own[name] == nil {
			own[name] = value
		}
	}
	if len(own) > 0 {
		out.set("additionalModelRequestFields", own)
	}
	return encode(out)
}

// converseFields takes the fields that the caller worded as Converse has them; of those that change what a call costs
// only what is allowed.
func (f fields) converseFields(allow []string) fields {
	out := fields{}
	for _, name := range []string{"guardrailConfig", "requestMetadata", "additionalModelRequestFields", "performanceConfig", "serviceTier"} {
		costs := name == "performanceConfig" || name == "serviceTier"
		if v, ok := f[name]; ok && (!costs || slices.Contains(allow, name)) {
			out[name] = v
		}
	}
	if slices.Contains(allow, "service_tier") && said(f["service_tier"]) && unquote(f["service_tier"]) != "auto" {
		out.set("serviceTier", block{"type": f["service_tier"]})
	}
	delete(f, "service_tier")
	return out
}

// converseInference moves limits and sampling. Newer Claudes take no two ways of sampling at once, so that one which
// is their default isn't said.
func (f fields) converseInference(out fields, claude bool) {
	f.stopList()
	var stops []json.RawMessage
	for _, stop := range elements(f["stop"]) {
		if said(stop) {
			stops = append(stops, stop)
		}
	}
	delete(f, "stop")
	if stops != nil {
		f.set("stop", stops)
	}
	config := fields{}
	for from, to := range map[string]string{"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"} {
		n, ok := f.float(from)
		usual := claude && (from == "temperature" || from == "top_p") && ok && n == 1
		if v := f[from]; v != nil && !usual {
			config[to] = v
		}
		delete(f, from)
	}
	if len(config) > 0 {
		out.set("inferenceConfig", config)
	}
}

// converseFormat makes response_format outputConfig, whose schema is JSON as text.
func (f fields) converseFormat(out fields, claude bool) {
	wanted := field(f["response_format"], "json_schema")
	delete(f, "response_format")
	schema := field(wanted, "schema")
	if schema == nil {
		return
	}
	if claude {
		schema = closedSchema(schema)
	}
	named := block{"schema": string(schema)}
	for _, name := range []string{"name", "description"} {
		if v := field(wanted, name); said(v) {
			named[name] = json.RawMessage(v)
		}
	}
	format := block{"type": "json_schema", "structure": block{"jsonSchema": named}}
	out.set("outputConfig", block{"textFormat": format})
}

// converseTools words tools and how to choose among them. That only one may be called at once is Claude's own field.
func (f fields) converseTools(out fields, caches, claude bool) {
	mode, name := f.toolChoice()
	single := f.singleCall()
	var tools []block
	for _, tool := range elements(f["tools"]) {
		tools = append(append(tools, converseTool(tool)), cachePoint(tool, caches)...)
	}
	f.drop("tools", "tool_choice", "parallel_tool_calls")
	if tools == nil || mode == "none" {
		return
	}
	config := block{"tools": tools}
	own := block{"disable_parallel_tool_use": true}
	switch mode {
	case "required":
		config["toolChoice"] = block{"any": block{}}
	case "function":
		config["toolChoice"] = block{"tool": block{"name": name}}
	default:
		own["type"] = "auto"
	}
	out.set("toolConfig", config)
	if single && claude {
		f.set("tool_choice", own)
	}
}

func converseTool(tool []byte) block {
	function := field(tool, "function")
	schema := json.RawMessage(`{"type":"object","properties":{}}`)
	if v := field(function, "parameters"); v != nil {
		schema = v
	}
	spec := block{"name": unquote(field(function, "name")), "inputSchema": block{"json": schema}}
	if text := field(function, "description"); said(text) {
		spec["description"] = json.RawMessage(text)
	}
	if strict(tool) {
		spec["strict"] = true
	}
	return block{"toolSpec": spec}
}

// think words the wish for deep thinking as the model's family takes it, unless the settings say how.
func (p *bedrock) think(f fields, call Call) {
	if p.claude(call.Model) {
		f.anthropicThinking(p.thinking(call), call)
		return
	}
	f.drop("enable_thinking", "reasoning_effort")
	t := call.Request.Thinking
	if t.Mode == ThinkingUnset || call.Options.NoThinking {
		return
	}
	on := t.Mode == ThinkingOn
	switch model := strings.ToLower(call.Model); {
	case p.way == "" && strings.Contains(model, "nova-2"):
		f.set("reasoningConfig", f.novaReasoning(t))
	case p.way == "" && strings.Contains(model, "openai."), p.way == ThinkingByEffort:
		f.set("reasoning_effort", plainEffort(t))
	case p.way == ThinkingByEnable:
		f.set("enable_thinking", on)
	case p.way == ThinkingByTemplate:
		f["chat_template_kwargs"] = merged(f["chat_template_kwargs"], "enable_thinking", boolean(on))
	case p.way == ThinkingByType && on:
		f.set("thinking", block{"type": thinkEnabled})
	case p.way == ThinkingByType:
		f.set("thinking", block{"type": thinkDisabled})
	}
}

// novaReasoning is Nova's reasoningConfig. High effort goes with no limit and no sampling of the caller's.
func (f fields) novaReasoning(t Thinking) block {
	if t.Mode == ThinkingOff {
		return block{"type": thinkDisabled}
	}
	effort := plainEffort(t)
	if effort == "high" && (f["max_tokens"] != nil || f["temperature"] != nil || f["top_p"] != nil) {
		effort = "medium"
	}
	return block{"type": thinkEnabled, "maxReasoningEffort": effort}
}

// plainEffort is an effort in three words. Models that have no more than these can't be kept from thinking.
func plainEffort(t Thinking) string {
	switch {
	case t.Mode == ThinkingOff || t.Effort == "minimal" || t.Effort == "low":
		return "low"
	case t.Effort == "" || t.Effort == "medium":
		return "medium"
	}
	return "high"
}
