package routing

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"holdfast/internal/providers"
)

// cannot notes that a candidate was left out because it can't do what was asked. A window says most, as a shorter
// request mends it.
func (w *walk) cannot(l link, why Skip) {
	code := "unsupported"
	if why == SkipWindow {
		code = providers.KindContextTooLong.Effect().Code
	}
	if w.unable != nil && (why != SkipWindow || w.unable.Code == code) {
		return
	}
	w.unable = &Failure{Status: 400, Type: invalidRequest, Code: code, Message: inabilities[why]}
	switch refusal := l.refusal(w.req); {
	case why == SkipFeature && refusal != nil: // it names the field
		w.refusedBy(refusal)
	case why == SkipWindow:
		w.unable.Message = fmt.Sprintf("%s The request has about %d tokens.", inabilities[why], w.req.Tokens)
		w.unable.Param = "messages"
	}
}

const invalidRequest = "invalid_request_error"

var inabilities = map[Skip]string{
	SkipThinking: "No configured model supports thinking for this request: leave out enable_thinking and reasoning_effort.",
	SkipWindow:   "The request is longer than the context window of every configured model: shorten it.",
	SkipFeature:  "No configured model supports what this request asks for (tools, images, structured output or a field of its own).",
}

// refusedBy notes a provider's word that it can't do what was asked: it tells the caller more than our own.
func (w *walk) refusedBy(e *providers.Error) { w.unable = callerFailure(e) }

// callerFailure is the error that a caller gets for a failure of his own: with the provider's message and param.
func callerFailure(e *providers.Error) *Failure {
	effect := e.Kind.Effect()
	f := &Failure{Status: effect.Status, Type: invalidRequest, Code: effect.Code, Param: e.Param, Message: e.Message}
	if f.Code == "" {
		f.Code = e.Code
	}
	if e.Kind == providers.KindUnsupported {
		f.Code = cmp.Or(f.Code, "unsupported")
	}
	if f.Message == "" {
		f.Message = "The model refused the request (" + e.Kind.String() + ")."
	}
	return f
}

// panicked is the cause of a failure that is a fault of ours: an adapter that didn't bear what it was given. It has
// the stack, but not the value, which may quote a caller or a provider.
type panicked struct{ stack string }

func (*panicked) Error() string { return "panic" }

// caught, deferred, makes a panic an error: the next candidate may do better.
func caught(err *error) {
	if recover() != nil {
		*err = &providers.Error{Kind: providers.KindServerError, Code: "panic", Err: &panicked{string(debug.Stack())}}
	}
}

// stackOf is the stack of a failure that was a panic, else "".
func stackOf(e *providers.Error) string {
	var p *panicked
	if errors.As(e.Err, &p) {
		return p.stack
	}
	return ""
}
