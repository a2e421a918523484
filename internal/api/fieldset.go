package api

import (
	"bytes"
	"slices"
)

// fieldSet are the fields of an object that comes in pieces, in the order of their first piece. Values are JSON.
type fieldSet struct {
	list []*pieced
	by   map[string]*pieced
	size int // bytes of all values, about
}

type pieced struct {
	name  string // as written
	value []byte
}

// merge takes a piece: text is joined, arrays are appended, of anything else the last piece wins. Null and empty
// text never overwrite.
func (s *fieldSet) merge(key, value []byte) { s.join(key, value, joined(string(key))) }

// mergeCall is merge for the function of a tool call, whose name may come in pieces as well.
func (s *fieldSet) mergeCall(key, value []byte) {
	s.join(key, value, string(key) == "name" || joined(string(key)))
}

func (s *fieldSet) join(key, value []byte, isOneText bool) {
	p := s.piece(key, value)
	if p == nil {
		return
	}
	piece, isText := inner(value)
	_, wasText := inner(p.value)
	switch {
	case isText && wasText && isOneText:
		p.value = append(append(p.value[:len(p.value)-1], piece...), '"')
	case isText && wasText && len(piece) == 0:
	case isArray(value) && isArray(p.value):
		p.value = appendItems(p.value, value)
	default:
		p.value = append(p.value[:0], value...)
	}
}

// cumulate is merge for an answer's own fields, where providers repeat a whole list (of citations) in every chunk:
// a list that begins with the one that is there takes its place.
func (s *fieldSet) cumulate(key, value []byte) {
	if p := s.by[string(key)]; p != nil && isArray(value) && isArray(p.value) && repeats(value, p.value) {
		p.value = append(p.value[:0], value...)
		return
	}
	s.merge(key, value)
}

// repeats says whether a list begins with all items of another.
func repeats(list, other []byte) bool {
	items := other[:len(other)-1]
	return len(items) > 1 && bytes.HasPrefix(list, items) && (list[len(items)] == ',' || list[len(items)] == ']')
}

// piece finds the field that a piece belongs to; nil if the piece is done with: it was the first, or says nothing.
func (s *fieldSet) piece(key, value []byte) *pieced {
	s.size += len(value)
	p := s.by[string(key)]
	switch {
	case p == nil:
		if s.by == nil {
			s.by = make(map[string]*pieced)
		}
		p = &pieced{string(key), bytes.Clone(value)}
		s.by[p.name] = p
		s.list = append(s.list, p)
		s.size += len(key) + 8
		return nil
	case string(value) == "null":
		return nil
	}
	return p
}

func (s *fieldSet) get(name string) []byte {
	if p := s.by[name]; p != nil {
		return p.value
	}
	return nil
}

// joined says whether strings of that name are pieces of one text.
func joined(name string) bool {
	switch name {
	case "content", "reasoning_content", "reasoning", "refusal", "arguments", "thinking", "transcript":
		return true
	}
	return false
}

func isArray(v []byte) bool { return len(v) >= 2 && v[0] == '[' && v[len(v)-1] == ']' }

func appendItems(have, more []byte) []byte {
	items := bytes.TrimSpace(more[1 : len(more)-1])
	if len(items) == 0 {
		return have
	}
	empty := len(bytes.TrimSpace(have[1:len(have)-1])) == 0
	have = have[:len(have)-1]
	if !empty {
		have = append(have, ',')
	}
	return append(append(have, items...), ']')
}

// jsonObject writes an object field by field.
type jsonObject struct{ buf []byte }

func newObject(size int) *jsonObject {
	return &jsonObject{append(make([]byte, 0, size+2), '{')}
}

// field writes a field; its name is written as it stands in JSON.
func (o *jsonObject) field(name string, value []byte) {
	if o.buf[len(o.buf)-1] != '{' {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(append(append(o.buf, '"'), name...), `":`...)
	o.buf = append(o.buf, value...)
}

// rest writes the fields that weren't written yet.
func (o *jsonObject) rest(s *fieldSet, written ...string) {
	for _, p := range s.list {
		if !slices.Contains(written, p.name) {
			o.field(p.name, p.value)
		}
	}
}

func (o *jsonObject) end() []byte { return append(o.buf, '}') }
