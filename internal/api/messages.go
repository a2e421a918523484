package api

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
)

const roles = "system, developer, user, assistant, tool or function"

// messages decodes and checks the conversation.
func (d *draft) messages(v gjson.Result) error {
	err := each(v, func(item gjson.Result) error {
		m, err := d.message(item)
		d.req.Messages = append(d.req.Messages, m)
		return err
	})
	if err == nil && len(d.req.Messages) == 0 {
		return &misuse{text: "is empty: give at least one message."}
	}
	return err
}

func (d *draft) message(v gjson.Result) (providers.Message, error) {
	var m providers.Message
	var content gjson.Result
	wordless := false // says something else than content
	err := walk(v, func(name string, v gjson.Result) error {
		switch name {
		case "role":
			return text(v, &m.Role)
		case "content":
			content = v
			return d.content(&m, v)
		case "name":
			return text(v, &m.Name)
		case "tool_call_id":
			return text(v, &m.ToolCallID)
		case "reasoning_content":
			return text(v, &m.Reasoning)
		case "tool_calls":
			return each(v, func(call gjson.Result) error { return toolCall(&m, call) })
		case "function_call", "refusal", "audio":
			wordless = true
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	d.count(&m)
	return m, checkMessage(&m, content.Exists(), wordless || len(m.ToolCalls) > 0)
}

func checkMessage(m *providers.Message, hasContent, wordless bool) error {
	switch m.Role {
	case "":
		return missing("role", "give "+roles+".")
	case "system", "developer", "user", "assistant", "tool", "function":
	default:
		return at("role", &misuse{text: "must be " + roles + "."})
	}
	if hasContent || m.Role == "assistant" && wordless {
		return nil
	}
	return missing("content", "give a string or an array of parts; only an assistant's message with tool_calls may have none.")
}

// content is a string or an array of parts.
func (d *draft) content(m *providers.Message, v gjson.Result) error {
	if v.Type == gjson.String {
		m.Text = v.Str
		return nil
	}
	if !v.IsArray() {
		return wrong(v, "a string or an array of parts")
	}
	var texts []string
	m.Parts = []providers.Part{}
	err := each(v, func(item gjson.Result) error {
		p, err := d.part(item)
		m.Parts = append(m.Parts, p)
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
		return err
	})
	if err == nil && len(m.Parts) == 0 {
		return &misuse{text: "is empty: give at least one part."}
	}
	m.Text = strings.Join(texts, "\n")
	return err
}

func (d *draft) part(v gjson.Result) (providers.Part, error) {
	var p providers.Part
	var hasText, hasImage bool
	err := walk(v, func(name string, v gjson.Result) error {
		switch name {
		case "type":
			return text(v, &p.Type)
		case "text":
			hasText = true
			return text(v, &p.Text)
		case "image_url":
			hasImage = true
			return imageURL(&p, v)
		}
		return nil
	})
	switch {
	case err != nil:
		return p, err
	case p.Type == "":
		return p, missing("type", `a part needs a type, as a rule "text" or "image_url".`)
	case p.Type == "text" && !hasText:
		return p, missing("text", `a part of type "text" needs it.`)
	case p.Type == "image_url" && !hasImage:
		return p, missing("image_url", `a part of type "image_url" needs {"url": …}.`)
	}
	p.Raw = d.bytes(v)
	if hasImage {
		d.req.Needs.Vision = true
		d.req.Images++
	}
	return p, nil
}

// imageURL takes OpenAI's object, or the bare string that some clients send.
func imageURL(p *providers.Part, v gjson.Result) error {
	if v.Type == gjson.String {
		p.ImageURL = v.Str
		return nil
	}
	err := walk(v, func(name string, v gjson.Result) error {
		if name == "url" {
			return text(v, &p.ImageURL)
		}
		return nil
	})
	if err == nil && p.ImageURL == "" {
		return missing("url", "an image needs an http(s) or data URL.")
	}
	return err
}

func toolCall(m *providers.Message, v gjson.Result) error {
	var c providers.ToolCall
	err := walk(v, func(name string, v gjson.Result) error {
		switch name {
		case "id":
			return text(v, &c.ID)
		case "function":
			return walk(v, func(name string, v gjson.Result) error {
				switch name {
				case "name":
					return text(v, &c.Name)
				case "arguments":
					return text(v, &c.Arguments)
				}
				return nil
			})
		}
		return nil
	})
	m.ToolCalls = append(m.ToolCalls, c)
	return err
}

// count adds a message to the estimate of the prompt.
func (d *draft) count(m *providers.Message) {
	d.tokens.fixed += tokensPerMessage
	countText(&d.tokens, m.Text)
	for _, c := range m.ToolCalls {
		countText(&d.tokens, c.Name)
		countText(&d.tokens, c.Arguments)
	}
	for _, p := range m.Parts {
		if p.ImageURL != "" {
			d.tokens.fixed += tokensPerImage
		}
	}
}

// lastUser is the text of the last message of the user.
func lastUser(messages []providers.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role == "user" {
			return m.Text
		}
	}
	return ""
}
