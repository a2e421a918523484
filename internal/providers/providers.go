// Package providers calls one model of one provider and says what came back in one vocabulary.
//
// Its one idea: a provider only streams. A [Provider] opens a [Stream]; a stream yields [Chunk]s that every
// strict OpenAI client can read, and ends with io.EOF only after the provider's own terminal marker. Every
// other end is an [*Error] of a closed [Kind], so that nobody downstream has to know a provider's quirks.
// The package imports nothing else of Holdfast.
package providers

import (
	"context"
	"net/http"
	"time"
)

// Provider is one account at one provider, safe for concurrent use. It keeps an HTTP transport of its own, so
// that a provider that hangs cannot starve another.
type Provider interface {
	// Stream calls one model. It returns once the provider has accepted or refused the call: a refusal is an
	// *Error. Cancelling ctx ends the call at any time, also inside Next; the error then is whatever
	// context.Cause(ctx) is, wrapped, and the caller of Stream says what it means.
	Stream(ctx context.Context, call Call) (Stream, error)
}

// Checker is implemented by providers whose dialect cannot carry everything that OpenAI's can.
type Checker interface {
	// Check returns an *Error of KindUnsupported that names what the dialect can't carry, or nil. It makes no call.
	Check(call Call) error
}

// Stream is one running answer. It is not safe for concurrent use.
type Stream interface {
	// Next gives the next chunk. The error is io.EOF only after the provider's terminal marker, else an *Error.
	// What comes after a finish reason changes nothing: an error there is reported as io.EOF.
	Next() (Chunk, error)
	// Close ends the call and frees its connection. It may be called more than once, also before the end.
	Close() error
}

// Chunk is one step of an answer.
type Chunk struct {
	// Data is one chat.completion.chunk as JSON, mended where the provider's differs from OpenAI's schema: the
	// same id, object, created and model in all chunks of a stream, one choice, the role in the first, exactly
	// one finish reason in all, no usage. Nil for a chunk that brings only usage. Valid until the next call of
	// Next or Close.
	Data []byte
	// Signal says whether the chunk has something of the answer in it.
	Signal Signal
	// Finish is the finish reason that Data carries, "" for none.
	Finish string
	// Usage is OpenAI's usage object as JSON, nil for none. The last one of a stream counts. Valid as Data is.
	Usage []byte
}

// Signal is what a chunk brings towards the answer.
type Signal uint8

const (
	// SignalNone: role-only deltas, empty content, lifecycle events: no sign of life of the model itself.
	SignalNone Signal = iota
	// SignalReasoning: non-empty reasoning. It is a first token, but not yet content.
	SignalReasoning
	// SignalContent: non-empty text, a tool call or a refusal.
	SignalContent
)

// Call is what to ask of which model.
type Call struct {
	Request *Request
	Model   string        // the provider's name of the model
	BaseURL string        // overrides the provider's own; "" does not
	Connect time.Duration // until a connection is there (DNS, TCP, TLS); 0: no limit of its own
	Options Options
}

// Options are the settings of a candidate that change how its provider is called.
type Options struct {
	NoStream   bool     // the provider can't stream this model: its one body is read as a stream
	Cumulative bool     // DashScope only: each event repeats the whole text so far
	Allow      []string // request fields that go through though they are held back otherwise
	NoThinking bool     // the model can't think: nothing about thinking is sent, not even that it should not
	ImageURLs  bool     // http image URLs may go to a provider with a private base URL
}

// Request is a caller's request in OpenAI's vocabulary. It is shared by all attempts and never changed.
type Request struct {
	Raw      []byte // the JSON object as the caller sent it, valid JSON, no duplicate keys at the top
	Messages []Message
	Thinking Thinking
}

// Message is one message, decoded. Raw keeps what this doesn't.
type Message struct {
	Role       string
	Name       string
	Text       string // all text of the content joined
	Parts      []Part // when content was an array, its parts in order; else nil
	ToolCalls  []ToolCall
	ToolCallID string
	Reasoning  string // reasoning_content of an earlier answer
}

// Part is one part of a message's content.
type Part struct {
	Type     string // "text", "image_url" or what the caller wrote
	Text     string
	ImageURL string // http(s) or data URL
	Raw      []byte // the part as it came
}

// ToolCall is a function call of an assistant's message.
type ToolCall struct {
	ID, Name, Arguments string // Arguments is JSON as text
}

// Thinking is whether the caller asked for deep thinking, and how much.
type Thinking struct {
	Mode   ThinkingMode
	Effort string // reasoning_effort as it came, "" if absent
}

// ThinkingMode is what the caller said of thinking.
type ThinkingMode uint8

const (
	ThinkingUnset ThinkingMode = iota // said nothing
	ThinkingOff                       // enable_thinking: false or reasoning_effort: none
	ThinkingOn                        // enable_thinking: true or another reasoning_effort
)

// Settings describe one provider; what is empty comes from the built-in row of Name, then from the dialect.
type Settings struct {
	Name       string            // as in the configuration
	Dialect    string            // one of Dialects
	BaseURL    string            // what the dialect's paths are appended to
	APIKey     string            // "" sends no auth header
	Headers    map[string]string // sent with every call
	APIVersion string            // Azure
	Region     string            // Bedrock
	AWS        AWSConfig         // Bedrock: where region and credentials come from; nil: EnvironmentAWS
	Thinking   string            // how thinking is asked for: one of the ThinkingBy constants
	Transport  http.RoundTripper // nil: a transport of the provider's own
}
