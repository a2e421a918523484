package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// maxDepth is how deep a request's JSON may nest: beyond any tool's schema, and far from any reader's stack.
const maxDepth = 200

// draft is a request on its way from bytes to a routing.Request, with what only the answer's writer asks of it.
type draft struct {
	body   []byte
	req    *routing.Request
	tokens estimate
	stream bool
	usage  bool // stream_options.include_usage
	forced bool // a tool must be called
}

// decode checks a body and makes a request of it. Errors are *misuse and name the field.
func decode(body []byte) (*draft, error) {
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	d := &draft{body: body, req: &routing.Request{Request: &providers.Request{Raw: body}}}
	root := gjson.ParseBytes(body)
	if !root.IsObject() {
		return nil, &misuse{text: "The body must be a JSON object, got " + typeName(root) + "."}
	}
	err := walk(root, func(name string, v gjson.Result) error {
		check, known := standard[name]
		if !known {
			d.req.Foreign = true
			return nil
		}
		return check(d, v)
	})
	if err != nil {
		return nil, err
	}
	if d.req.Messages == nil {
		return nil, missing("messages", `give the conversation, as in {"messages": [{"role": "user", "content": "hi"}]}.`)
	}
	d.conclude()
	return d, nil
}

// conclude fills in what follows from several fields.
func (d *draft) conclude() {
	r := d.req
	if !d.stream {
		r.Hold = routing.HoldComplete
	}
	if t := &r.Thinking; t.Mode == providers.ThinkingUnset && t.Effort != "" {
		t.Mode = providers.ThinkingOn
		if t.Effort == "none" {
			t.Mode = providers.ThinkingOff
		}
	}
	r.Task = r.Tags["task"]
	r.Structured = r.Needs.JSON || d.forced
	r.Tokens = d.tokens.tokens() // until it is corrected
	r.Language = language(lastUser(r.Messages))
}

// bytes are the bytes of a value of the body, not copied.
func (d *draft) bytes(v gjson.Result) []byte {
	return d.body[v.Index : v.Index+len(v.Raw) : v.Index+len(v.Raw)]
}

// checkJSON demands one whole JSON value in UTF-8 that isn't too deep.
func checkJSON(body []byte) error {
	switch {
	case len(body) == 0:
		return &misuse{text: `The body is empty: send a JSON object, as in {"messages": [{"role": "user", "content": "hi"}]}.`}
	case !utf8.Valid(body):
		return &misuse{text: "The body isn't UTF-8: send JSON encoded in UTF-8."}
	}
	var whole json.RawMessage
	if !json.Valid(body) {
		err := json.Unmarshal(body, &whole)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return &misuse{text: fmt.Sprintf("The body isn't valid JSON: %s, at byte %d.", syntax, syntax.Offset)}
		}
		return &misuse{text: "The body isn't valid JSON."}
	}
	if depth(body) > maxDepth {
		return &misuse{text: fmt.Sprintf("The body nests deeper than %d levels.", maxDepth)}
	}
	return nil
}

// depth is how deep valid JSON nests.
func depth(body []byte) int {
	now, most := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = skipString(body, i) - 1
		case '{', '[':
			now++
			most = max(most, now)
		case '}', ']':
			now--
		}
	}
	return most
}

// headers adds what the request's headers say.
func (d *draft) headers(h http.Header) error {
	for directive := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		switch strings.ToLower(strings.TrimSpace(directive)) {
		case "no-cache":
			d.req.NoCache = true
		case "no-store":
			d.req.NoStore = true
		}
	}
	if d.req.Task == "" {
		d.req.Task = h.Get("Holdfast-Task")
	}
	hint := h.Get("Holdfast-Deadline-Ms")
	if hint == "" {
		return nil
	}
	const day = int64(24 * time.Hour / time.Millisecond)
	ms, err := strconv.ParseInt(hint, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || ms <= 0 {
		return &misuse{param: "Holdfast-Deadline-Ms", text: "must be a positive whole number of milliseconds."}
	}
	d.req.Hint = time.Duration(min(ms, day)) * time.Millisecond
	return nil
}

// routeID names a request: a UUID whose beginning is the time.
func routeID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString() // panics where there is no randomness at all
	}
	return id.String()
}
