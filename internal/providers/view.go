package providers

// view is where the parts of one provider chunk stand: raw JSON values, nil where absent or null.
type view struct {
	id, object, created, model []byte
	choices, usage             []byte
	fault                      []byte // error
	faultKey                   bool   // an error member is there, be it null
	said                       bool   // a message, detail or code stands where an error body has it
	choice                     choiceView
	others                     bool // choices besides the one
}

// choiceView is the one choice that travels.
type choiceView struct {
	raw, index, finish, delta, message, text, usage []byte
	finishKey                                       bool
	d                                               deltaView
}

// deltaView is a delta, or the message that stands in for one.
type deltaView struct {
	raw                    []byte
	role, content, refusal []byte
	reasoning              []byte // the first that isn't empty of reasoning_content, reasoning and thinking
	calls, function, audio []byte
	roleKey, alias         bool // alias: reasoning or thinking is there under another name than OpenAI's dialects agree on
}

// look finds the parts of a chunk. data is a valid JSON object.
func look(data []byte) view {
	var v view
	for w := walk(data); ; {
		key, value, ok := w.member()
		if !ok {
			break
		}
		switch string(key) {
		case "id":
			v.id = present(value)
		case "object":
			v.object = present(value)
		case "created":
			v.created = present(value)
		case "model":
			v.model = present(value)
		case "choices":
			v.choices = present(value)
		case "usage":
			v.usage = present(value)
		case "error":
			v.fault, v.faultKey = present(value), true
		case "message", "detail", "code", "msg":
			v.said = v.said || present(value) != nil
		case "x_groq":
			if v.usage == nil {
				v.usage = field(value, "usage")
			}
		}
	}
	v.choose()
	return v
}

// choose takes the choice whose index is 0, or the first without an index.
func (v *view) choose() {
	if !isArray(v.choices) {
		return
	}
	n := 0
	for w := walk(v.choices); ; n++ {
		raw, ok := w.element()
		if !ok {
			break
		}
		c := lookChoice(raw)
		i, known := number(c.index)
		if v.choice.raw == nil && isObject(raw) && (!known || i == 0) {
			v.choice = c
		}
	}
	v.others = n > 1
	if v.usage == nil {
		v.usage = v.choice.usage
	}
}

func lookChoice(raw []byte) choiceView {
	c := choiceView{raw: raw}
	for w := walk(raw); ; {
		key, value, ok := w.member()
		if !ok {
			return c
		}
		switch string(key) {
		case "index":
			c.index = present(value)
		case "finish_reason":
			c.finish, c.finishKey = present(value), true
		case "delta":
			c.delta = present(value)
		case "message":
			c.message = present(value)
		case "text":
			c.text = present(value)
		case "usage":
			c.usage = present(value)
		}
	}
}

func lookDelta(raw []byte) deltaView {
	d := deltaView{raw: raw}
	for w := walk(raw); ; {
		key, value, ok := w.member()
		if !ok {
			return d
		}
		switch string(key) {
		case "role":
			d.role, d.roleKey = present(value), true
		case "content":
			d.content = present(value)
		case "refusal":
			d.refusal = present(value)
		case "reasoning_content":
			d.think(value)
		case "reasoning", "thinking":
			d.alias = true
			d.think(value)
		case "tool_calls":
			d.calls = present(value)
		case "function_call":
			d.function = present(value)
		case "audio":
			d.audio = present(value)
		}
	}
}

func (d *deltaView) think(value []byte) {
	if !said(d.reasoning) && isString(value) {
		d.reasoning = value
	}
}

// empty says that the delta brings nothing of an answer.
func (d *deltaView) empty() bool {
	return !said(d.content) && !isArray(d.content) && !isObject(d.content) && !said(d.refusal) && !said(d.reasoning) &&
		d.calls == nil && d.function == nil && d.audio == nil
}

// DeltaSize is the length of what a chunk says: of its first choice's delta as JSON, or of all of data where there is
// none.
func DeltaSize(data []byte) int {
	choices := walk(field(data, "choices"))
	if choice, ok := choices.element(); ok {
		return len(field(choice, "delta"))
	}
	return len(data)
}

// Text gives the text and the reasoning of a chunk as a Stream yields it.
func Text(data []byte) (content, reasoning string) {
	choices := walk(field(data, "choices"))
	choice, _ := choices.element()
	delta := field(choice, "delta")
	return unquote(field(delta, "content")), unquote(field(delta, "reasoning_content"))
}
