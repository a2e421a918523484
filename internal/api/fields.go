package api

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
)

// standard says how each field of OpenAI's request is checked. A field that isn't here is foreign: it goes through
// to providers that may know it.
//
//nolint:gochecknoglobals // a table, never written
var standard = map[string]func(*draft, gjson.Result) error{
	"messages":              (*draft).messages,
	"model":                 func(d *draft, v gjson.Result) error { return text(v, &d.req.Model) },
	"stream":                func(d *draft, v gjson.Result) error { return boolean(v, &d.stream) },
	"stream_options":        (*draft).streamOptions,
	"n":                     (*draft).one,
	"tools":                 (*draft).tools,
	"tool_choice":           (*draft).toolChoice,
	"functions":             (*draft).functions,
	"function_call":         (*draft).functionCall,
	"response_format":       (*draft).responseFormat,
	"reasoning_effort":      (*draft).effort,
	"enable_thinking":       (*draft).thinking,
	"user":                  func(d *draft, v gjson.Result) error { return text(v, &d.req.User) },
	"metadata":              (*draft).metadata,
	"stop":                  (*draft).stop,
	"temperature":           simply(number(0, 2)),
	"top_p":                 simply(number(0, 1)),
	"presence_penalty":      simply(number(-2, 2)),
	"frequency_penalty":     simply(number(-2, 2)),
	"max_tokens":            simply(count),
	"max_completion_tokens": simply(count),
	"seed":                  simply(integer(math.Inf(-1))),
	"logprobs":              simply(isBool),
	"top_logprobs":          simply(integer(0)),
	"logit_bias":            simply(isObject),
	"parallel_tool_calls":   simply(isBool),
	"store":                 simply(isBool),
	"service_tier":          simply(isText),
	"safety_identifier":     simply(isText),
	"prompt_cache_key":      simply(isText),
	"verbosity":             simply(isText),
	"audio":                 simply(isObject),
	"prediction":            simply(isObject),
	"web_search_options":    simply(isObject),
	"modalities":            simply(func(v gjson.Result) error { return stringsOnly(v, 8) }),
	// Accepted in any form: OpenAI's own keep changing.
	"prompt_cache_retention": simply(anything),
	"prompt_cache_options":   simply(anything),
	"moderation":             simply(anything),
}

func simply(check func(gjson.Result) error) func(*draft, gjson.Result) error {
	return func(_ *draft, v gjson.Result) error { return check(v) }
}

func anything(gjson.Result) error { return nil }

func (d *draft) streamOptions(v gjson.Result) error {
	return walk(v, func(name string, v gjson.Result) error {
		if name == "include_usage" {
			return boolean(v, &d.usage)
		}
		return nil
	})
}

// one refuses n above 1: it would mean several answers, of which one could be whole and another cut.
func (d *draft) one(v gjson.Result) error {
	if err := integer(1)(v); err != nil {
		return err
	}
	if v.Num != 1 {
		return &misuse{code: "unsupported_value", text: "must be 1: this endpoint gives one answer a request. Send the request several times for several answers."}
	}
	return nil
}

func (d *draft) stop(v gjson.Result) error {
	if v.Type == gjson.String {
		return nil
	}
	if !v.IsArray() {
		return wrong(v, "a string or an array of strings")
	}
	return stringsOnly(v, 16)
}

func (d *draft) metadata(v gjson.Result) error {
	return walk(v, func(name string, v gjson.Result) error {
		if err := isText(v); err != nil {
			return err
		}
		if d.req.Tags == nil {
			d.req.Tags = map[string]string{}
		}
		d.req.Tags[strings.Clone(name)] = strings.Clone(v.Str)
		return nil
	})
}

func (d *draft) effort(v gjson.Result) error { return text(v, &d.req.Thinking.Effort) }

func (d *draft) thinking(v gjson.Result) error {
	var on bool
	if err := boolean(v, &on); err != nil {
		return err
	}
	d.req.Thinking.Mode = providers.ThinkingOff
	if on {
		d.req.Thinking.Mode = providers.ThinkingOn
	}
	return nil
}

func (d *draft) tools(v gjson.Result) error {
	countText(&d.tokens, v.Raw)
	return each(v, func(tool gjson.Result) error {
		d.req.Needs.Tools = true
		d.req.Tools++
		return checkTool(tool)
	})
}

func checkTool(v gjson.Result) error {
	var kind string
	var function gjson.Result
	err := walk(v, func(name string, v gjson.Result) error {
		switch name {
		case "type":
			return text(v, &kind)
		case "function":
			function = v
			return named(v)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case kind == "":
		return missing("type", `a tool needs a type, as a rule "function".`)
	case kind == "function" && !function.Exists():
		return missing("function", `a tool of type "function" needs {"name": …}.`)
	}
	return nil
}

// named takes an object with a non-empty name.
func named(v gjson.Result) error {
	var id string
	err := walk(v, func(name string, v gjson.Result) error {
		if name == "name" {
			return text(v, &id)
		}
		return nil
	})
	if err == nil && id == "" {
		return missing("name", "a function needs a name.")
	}
	return err
}

func (d *draft) functions(v gjson.Result) error {
	countText(&d.tokens, v.Raw)
	return each(v, func(f gjson.Result) error {
		d.req.Needs.Tools = true
		d.req.Tools++
		return named(f)
	})
}

// toolChoice notes a tool that must be called: prose would break the parser of whoever asked for that.
func (d *draft) toolChoice(v gjson.Result) error {
	if v.Type == gjson.String {
		d.forced = d.forced || v.Str == "required" || v.Str == "any"
		return nil
	}
	var kind, mode string
	err := walk(v, func(name string, v gjson.Result) error {
		switch name {
		case "type":
			return text(v, &kind)
		case "mode":
			return text(v, &mode)
		case "allowed_tools":
			return walk(v, func(name string, v gjson.Result) error {
				if name == "mode" {
					return text(v, &mode)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		if !v.IsObject() {
			return wrong(v, "a string or an object")
		}
		return err
	}
	d.forced = d.forced || kind != "allowed_tools" || mode == "required"
	return nil
}

func (d *draft) functionCall(v gjson.Result) error {
	if v.Type == gjson.String {
		return nil
	}
	if !v.IsObject() {
		return wrong(v, "a string or an object")
	}
	d.forced = true
	return named(v)
}

func (d *draft) responseFormat(v gjson.Result) error {
	var kind string
	err := walk(v, func(name string, v gjson.Result) error {
		switch name {
		case "type":
			return text(v, &kind)
		case "json_schema":
			return isObject(v)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case kind == "":
		return missing("type", `give "text", "json_object" or "json_schema".`)
	case kind != "text":
		countText(&d.tokens, v.Raw)
		d.req.Needs.JSON = true
	}
	return nil
}
