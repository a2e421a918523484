package providertest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// query is what an upstream must know of a request.
type query struct {
	Model      string
	Stream     bool // whether a stream was asked for, in the dialect's way
	Usage      bool // OpenAI: stream_options.include_usage
	Cumulative bool // DashScope: incremental_output is not true
	Halves     bool // the arguments of a tool call may come in pieces
}

// delta is one step of an answer, in no dialect yet. Index counts tool calls; a tool without a name continues one.
type delta struct {
	Reasoning, Content string
	Tool               *Tool
	Index              int
}

// wire words an answer in one dialect. It serves one call.
type wire interface {
	media() string                          // content type of a stream
	ping() string                           // keeps the connection alive, says nothing
	delta(d delta) string                   // the zero delta is the opening event
	finish(reason string) string            // the finish reason and all that follows it
	marker() string                         // the terminal marker alone
	event(f Failure) string                 // an error within a stream
	refusal(f Failure) string               // an error body
	whole(ds []delta, reason string) string // the whole answer as one body
}

// newWire is the wire of a call: of its dialect, and with what its request asked for.
func newWire(d Dialect, b Behaviour, r *http.Request, body []byte) (wire, query) {
	switch d {
	case DashScope:
		q := dashScopeQuery(r, body)
		return &dashScopeWire{b: b, q: q}, q
	case Ollama:
		q := ollamaQuery(body)
		return ollamaWire{b: b, q: q}, q
	case Anthropic:
		q := openAIQuery(body) // the same words
		return &anthropicWire{b: b, q: q}, q
	case Bedrock:
		q := bedrockQuery(r)
		return &bedrockWire{b: b, q: q}, q
	case Gemini:
		q := geminiQuery(r)
		return geminiWire{b: b, q: q}, q
	default:
		q := openAIQuery(body)
		return openAIWire{b: b, q: q}, q
	}
}

// step is one write, after a pause.
type step struct {
	after time.Duration
	data  string
}

// steps is a stream from the first byte to what its end says; the end itself (cut, hang) is not in it.
func steps(b Behaviour, w wire, q query) []step {
	if b.End == EndOnlyDone {
		return []step{{data: w.marker()}}
	}
	var out []step
	for range b.Pings {
		out = append(out, step{b.Gap, w.ping()})
	}
	if !b.NoRole {
		out = append(out, step{data: w.delta(delta{})})
	}
	pause := b.FirstToken
	for _, d := range answer(b, q.Halves) {
		out = append(out, step{pause, w.delta(d)})
		pause = b.Gap
	}
	return append(out, step{data: ending(b, w)})
}

func ending(b Behaviour, w wire) string {
	switch b.End {
	case EndDone, EndEmpty:
		return w.finish(b.Finish)
	case EndNoFinish:
		return w.marker()
	case EndErrorEvent:
		return w.event(b.Error)
	default:
		return ""
	}
}

// answer is what a behaviour says, delta by delta. In halves, the arguments of a tool call come in two.
func answer(b Behaviour, halves bool) []delta {
	var out []delta
	for _, r := range b.Reasoning {
		out = append(out, delta{Reasoning: r})
	}
	for _, c := range b.Chunks {
		out = append(out, delta{Content: c})
	}
	for i, t := range b.Tools {
		if half := len(t.Arguments) / 2; halves && half > 0 {
			out = append(out, delta{Index: i, Tool: &Tool{t.ID, t.Name, t.Arguments[:half]}})
			t = Tool{Arguments: t.Arguments[half:]}
		}
		out = append(out, delta{Index: i, Tool: &t})
	}
	return out
}

// joined is all content and all reasoning of an answer.
func joined(ds []delta) (content, reasoning string) {
	var c, r strings.Builder
	for _, d := range ds {
		c.WriteString(d.Content)
		r.WriteString(d.Reasoning)
	}
	return c.String(), r.String()
}

// object is a JSON object under construction.
type object = map[string]any

// encode is v as JSON; the values here are ours, so it cannot fail.
func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// with adds the fields of a JSON object to m.
func with(m object, extra string) object {
	if extra != "" {
		if err := json.Unmarshal([]byte(extra), &m); err != nil {
			panic("providertest: Behaviour.Extra is no JSON object: " + err.Error())
		}
	}
	return m
}
