package api

import (
	"encoding/json"

	"holdfast/internal/providers"
)

// maxText is the longest content that is kept for the cache and the log.
const maxText = 64 << 10

// tally reads from the chunks of an answer, as they pass, what is told of it afterwards. It keeps the content as it
// is written in JSON: pieces of that can be joined without decoding them.
type tally struct {
	text    []byte
	long    bool
	tokens  estimate // of everything that the model said
	finish  string
	usage   []byte
	tools   bool
	refusal bool
	ours    bool // the last chunk has a holdfast field already: its provider is another gateway
}

func (t *tally) add(c providers.Chunk) {
	if c.Usage != nil {
		t.usage = append(t.usage[:0], c.Usage...)
	}
	if c.Data == nil || t.finish != "" {
		return
	}
	t.finish, t.ours = c.Finish, false
	eachField(c.Data, func(key, value []byte) {
		switch string(key) {
		case "choices":
			eachItem(value, t.choice)
		case "holdfast":
			t.ours = true
		}
	})
}

func (t *tally) choice(v []byte) {
	eachField(v, func(key, value []byte) {
		if string(key) == "delta" {
			eachField(value, t.delta)
		}
	})
}

func (t *tally) delta(key, value []byte) {
	switch string(key) {
	case "content":
		if s, ok := inner(value); ok {
			t.keep(s)
		}
	case "reasoning_content", "reasoning":
		if s, ok := inner(value); ok {
			countText(&t.tokens, s)
		}
	case "refusal":
		if s, ok := inner(value); ok && len(s) > 0 {
			t.refusal = true
			countText(&t.tokens, s)
		}
	case "tool_calls":
		eachItem(value, t.call)
	case "function_call":
		t.tools = true
		t.function(value)
	}
}

func (t *tally) keep(s []byte) {
	countText(&t.tokens, s)
	if len(t.text)+len(s) > 2*maxText { // as written; decoded it is shorter
		t.long = true
		return
	}
	t.text = append(t.text, s...)
}

func (t *tally) call(v []byte) {
	t.tools = true
	eachField(v, func(key, value []byte) {
		if string(key) == "function" {
			t.function(value)
		}
	})
}

func (t *tally) function(v []byte) {
	eachField(v, func(key, value []byte) {
		if s, ok := inner(value); ok && (string(key) == "name" || string(key) == "arguments") {
			countText(&t.tokens, s)
		}
	})
}

// Said estimates the tokens of what chunks say, as routing asks it (Settings.Said).
func Said(chunks []providers.Chunk) int {
	var t tally
	for _, c := range chunks {
		t.add(c)
	}
	return t.tokens.tokens()
}

// content decodes the kept text, false if there is too much of it.
func (t *tally) content() (string, bool) {
	var s string
	if t.long || json.Unmarshal(quoted(t.text), &s) != nil || len(s) > maxText {
		return "", false
	}
	return s, true
}

func quoted(s []byte) []byte {
	out := make([]byte, 0, len(s)+2)
	return append(append(append(out, '"'), s...), '"')
}
