package providers

import "strconv"

// callTable follows the tool calls of one stream, so that clients can merge their pieces by index whatever the
// provider leaves out, repeats or mixes up.
type callTable struct {
	seen   []seenCall
	pieces []callPiece // of the chunk at hand
}

// seenCall is a call that has begun.
type seenCall struct {
	from     int64 // the provider's index
	to       int   // ours: the calls of a list that has no gaps, as clients append to one
	id, name string
}

// callPiece is one piece of a call as it will be written. Its slices are raw JSON, nil for absent.
type callPiece struct {
	to                  int
	first               bool
	madeID              string // for a call that came without an id
	id, name, arguments []byte
	raw, function       []byte
}

// callView is where the parts of a piece stand.
type callView struct {
	index, id, kind, function, name, arguments []byte
	keys                                       bool // id, type or name is there, be it null
}

func lookCall(raw []byte) callView {
	var c callView
	for w := walk(raw); ; {
		key, value, ok := w.member()
		if !ok {
			break
		}
		switch string(key) {
		case "index":
			c.index = present(value)
		case "id":
			c.id, c.keys = present(value), true
		case "type":
			c.kind, c.keys = present(value), true
		case "function":
			c.function = present(value)
		}
	}
	for w := walk(c.function); ; {
		key, value, ok := w.member()
		if !ok {
			return c
		}
		switch string(key) {
		case "name":
			c.name, c.keys = present(value), true
		case "arguments":
			c.arguments = value
		}
	}
}

// take resolves the pieces of a tool_calls array. It says whether they are right as they are.
func (t *callTable) take(calls []byte) bool {
	t.pieces = t.pieces[:0]
	right := true
	for w := walk(calls); ; {
		raw, ok := w.element()
		if !ok {
			return right
		}
		v := lookCall(raw)
		p, same := t.resolve(&v)
		p.raw, p.function = raw, v.function
		t.pieces = append(t.pieces, p)
		right = right && same
	}
}

// resolve finds the call that a piece belongs to, or begins one. It says whether the piece is right as it is.
func (t *callTable) resolve(v *callView) (callPiece, bool) {
	index, indexed := number(v.index)
	if call := t.find(index, indexed, v); call != nil {
		p := callPiece{to: call.to, arguments: v.arguments}
		if said(v.name) && !quotes(v.name, call.name) { // a name in pieces
			p.name = v.name
		}
		if said(v.name) && call.name == "" {
			call.name = unquote(v.name)
		}
		right := isInteger(v.index) && int64(call.to) == index && !v.keys && argumentsRight(v.arguments)
		return p, right
	}
	call := seenCall{from: index, to: len(t.seen), id: unquote(v.id), name: unquote(v.name)}
	p := callPiece{to: call.to, first: true, id: v.id, name: v.name, arguments: v.arguments}
	if call.id == "" {
		call.id = newID("call_")
		p.madeID, p.id = call.id, nil
	}
	t.seen = append(t.seen, call)
	right := isInteger(v.index) && int64(call.to) == index && p.id != nil && isString(v.kind) &&
		(said(v.name) || v.function == nil) && argumentsRight(v.arguments)
	return p, right
}

func argumentsRight(v []byte) bool { return v == nil || isString(v) }

// quotes says whether the JSON string v is s. Strings with escapes count as different.
func quotes(v []byte, s string) bool { return isString(v) && string(v[1:len(v)-1]) == s }

// find gives the call that a piece goes on, nil for a new one. Where an index is given the newest call under it
// counts, unless the piece names another id: some providers put 0 on all of their parallel calls.
func (t *callTable) find(index int64, indexed bool, v *callView) *seenCall {
	for i := len(t.seen) - 1; i >= 0; i-- {
		call := &t.seen[i]
		switch {
		case said(v.id) && quotes(v.id, call.id):
			return call
		case indexed && call.from == index:
			if said(v.id) && said(v.name) {
				return nil
			}
			return call
		case !indexed && !said(v.id) && !said(v.name):
			return call
		}
	}
	return nil
}

// appendPieces writes the resolved pieces as a tool_calls array.
func (t *callTable) appendPieces(b []byte) []byte {
	b = append(b, '[')
	for i := range t.pieces {
		if i > 0 {
			b = append(b, ',')
		}
		b = t.pieces[i].append(b)
	}
	return append(b, ']')
}

func (p *callPiece) append(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(p.to), 10)
	switch {
	case p.id != nil:
		b = append(append(b, `,"id":`...), p.id...)
	case p.madeID != "":
		b = appendString(append(b, `,"id":`...), p.madeID)
	}
	kind := false
	for w := walk(p.raw); ; {
		key, value, ok := w.member()
		if !ok {
			break
		}
		switch string(key) {
		case "index", "id", "function":
		case "type":
			if p.first && said(value) {
				b, kind = appendRaw(b, key, value), true
			}
		default:
			b = appendRaw(b, key, value)
		}
	}
	if p.first && !kind {
		b = append(b, `,"type":"function"`...)
	}
	if p.function != nil || p.first && !kind {
		b = p.appendFunction(b)
	}
	return append(b, '}')
}

func (p *callPiece) appendFunction(b []byte) []byte {
	b = append(b, `,"function":{`...)
	if said(p.name) {
		b = append(append(append(b, `"name":`...), p.name...), ',')
	}
	b = append(b, `"arguments":`...)
	switch {
	case present(p.arguments) == nil:
		b = append(b, `""`...)
	case isString(p.arguments):
		b = append(b, p.arguments...)
	default: // an object where its text is due
		b = appendString(b, string(p.arguments))
	}
	for w := walk(p.function); ; {
		key, value, ok := w.member()
		if !ok {
			return append(b, '}')
		}
		if string(key) != "name" && string(key) != "arguments" {
			b = appendRaw(b, key, value)
		}
	}
}

// appendRaw adds a comma and a member as it came.
func appendRaw(b, key, value []byte) []byte {
	b = append(b, `,"`...)
	b = append(b, key...)
	b = append(b, `":`...)
	return append(b, value...)
}
