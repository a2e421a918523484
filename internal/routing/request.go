package routing

import (
	"time"

	"holdfast/internal/providers"
)

// Hold is the commit point: the one value in which JSON and streams differ.
type Hold uint8

const (
	HoldFirstToken Hold = iota // a stream: commits at its first token
	HoldComplete               // JSON: commits at completion
)

// Request is a validated request. The decoder fills it; nobody changes it afterwards.
type Request struct {
	*providers.Request
	RouteID  string        // UUIDv7
	Tenant   string        // "anonymous" for callers without a key
	User     string        // OpenAI's user, "" if absent
	Model    string        // as asked for: "", "auto", a candidate's id or a chain's name
	Hold     Hold          // HoldFirstToken for stream: true
	Received time.Time     // start of the budget
	Hint     time.Duration // Holdfast-Deadline-Ms; 0: none
	Tokens   int           // estimate of the prompt
	Language string        // "zh" or "en": of the last user message
	Needs    Needs
	Task     string            // metadata.task, or the header Holdfast-Task; "" for none
	Tags     map[string]string // metadata; nil for none
	Tools    int               // how many there are
	Images   int
	// Structured: response_format other than text, or a tool that must be called: prose would break his parser.
	Structured bool
	// Foreign: carries fields outside OpenAI's standard, with which a caller could provoke a provider's refusal.
	Foreign bool
	NoCache bool // Cache-Control: no-cache: not looked up
	NoStore bool // Cache-Control: no-store: not stored
}

// Needs are the features that a candidate must have.
type Needs struct {
	Tools, Vision, JSON bool
}
