// Package providertest is a scripted HTTP upstream for tests: a fake at the wire, not a mock of a Go interface.
//
// Its one idea: how a provider behaves, well or badly, is a value. A [Behaviour] says what one call gets: a status, an
// answer in chunks, and above all how it ends. [Upstream] plays behaviours in the dialects of OpenAI, DashScope, Ollama,
// Anthropic, Bedrock and Gemini, over TCP or, for testing/synctest, over memory; it counts calls and tells which the
// caller has left.
//
// Only tests import this package.
package providertest

import (
	"fmt"
	"net/http"
	"time"
)

// Dialect is the protocol that an upstream speaks.
type Dialect string

// The dialects.
const (
	OpenAI    Dialect = "openai"    // SSE ended by [DONE]
	DashScope Dialect = "dashscope" // native SSE: id, event, a comment with the status; ends with its finish reason
	Ollama    Dialect = "ollama"    // native NDJSON, ended by done:true
	Anthropic Dialect = "anthropic" // SSE with named events, ended by message_stop
	Bedrock   Dialect = "bedrock"   // frames of AWS's event stream, ended by messageStop and metadata
	Gemini    Dialect = "gemini"    // SSE with CRLF, ended by a finish reason
)

// End is how an answer ends.
type End uint8

// The ends. Those marked "alone" ignore what the behaviour says of chunks.
const (
	EndDone        End = iota // properly: finish reason, usage, the dialect's terminal marker
	EndEOF                    // the body ends properly, without the terminal marker
	EndCut                    // the connection is cut within the body
	EndHang                   // silence, until the caller leaves
	EndErrorEvent             // Error, as an event within the stream
	EndNoFinish               // OpenAI: [DONE] without a finish reason; elsewhere as EndEOF
	EndEmpty                  // alone: a proper end with nothing before it
	EndOnlyDone               // alone: the terminal marker ([DONE], done:true), nothing else; DashScope has none
	EndErrorBody              // alone: Error as a JSON body, under 200
	EndHTML                   // alone: a web page, under 200
	EndHangHeaders            // alone: no headers, until the caller leaves
	EndDrop                   // alone: the connection is closed before the first byte
)

// Behaviour is what one call gets. The zero value is a short, whole answer.
type Behaviour struct {
	// Status other than 0 and 200 gives an error response: Body, or the dialect's usual error for the status.
	Status  int
	Headers map[string]string // of the response; they win over the usual ones
	// Body is sent as it is instead of anything in the dialect; End may still be EndCut or EndHang after it.
	Body  string
	Delay time.Duration // before the headers

	Pings      int           // comments (Ollama: empty lines) before the first event, each after Gap
	NoRole     bool          // leaves out the opening event without content
	FirstToken time.Duration // between the opening event and the first delta
	Gap        time.Duration // between two deltas
	Reasoning  []string      // deltas, before the content
	Chunks     []string      // deltas of content; without any delta and with EndDone: "Hello", " there."
	Tools      []Tool        // tool calls, after the content; all but Ollama and Gemini send the arguments in two halves
	Extra      string        // a JSON object whose fields stand in every delta too
	Finish     string        // "" is stop, or tool_calls where there are Tools
	Usage      *Usage        // nil: 7 in, 1 out for each delta; OpenAI sends it if asked for or if set
	End        End
	Error      Failure // of EndErrorEvent and EndErrorBody

	Piece int // bytes of a write, each flushed; 0: an event is one write
}

// Tool is one call of a function by the model.
type Tool struct{ ID, Name, Arguments string }

// Usage is what the upstream says of tokens.
type Usage struct{ Prompt, Completion, Cached, Reasoning int }

// Failure is an error as a provider words it. The zero value is its usual 500.
type Failure struct {
	Status  int
	Code    string
	Message string
}

// Says is an answer of the given chunks.
func Says(chunks ...string) Behaviour { return Behaviour{Chunks: chunks} }

// Fails is an error response in the dialect's own words.
func Fails(status int) Behaviour { return Behaviour{Status: status} }

// Ends is an answer that begins with chunks, if any, and ends so.
func Ends(end End, chunks ...string) Behaviour { return Behaviour{Chunks: chunks, End: end} }

// normal fills in what the zero value leaves to the dialect.
func (b Behaviour) normal() Behaviour {
	if b.deltas() == 0 && b.End == EndDone {
		b.Chunks = []string{"Hello", " there."}
	}
	if b.End == EndEmpty {
		b.Chunks, b.Reasoning, b.Tools = nil, nil, nil
	}
	if b.Finish == "" {
		b.Finish = "stop"
		if len(b.Tools) > 0 {
			b.Finish = "tool_calls"
		}
	}
	b.Error = b.Error.normal(b.Status)
	return b
}

func (b Behaviour) deltas() int { return len(b.Chunks) + len(b.Reasoning) + len(b.Tools) }

// usage is what a proper end says of tokens.
func (b Behaviour) usage() Usage {
	if b.Usage != nil {
		return *b.Usage
	}
	return Usage{Prompt: 7, Completion: b.deltas()}
}

// fails tells whether the behaviour is an error response.
func (b Behaviour) fails() bool { return b.Status != 0 && b.Status != http.StatusOK }

func (f Failure) normal(status int) Failure {
	if f.Status == 0 {
		f.Status = http.StatusInternalServerError
		if status != 0 && status != http.StatusOK {
			f.Status = status
		}
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("scripted failure %d", f.Status)
	}
	return f
}
