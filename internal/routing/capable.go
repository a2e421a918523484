package routing

import (
	"time"

	"holdfast/internal/providers"
)

func (r *Request) wantsThinking() bool { return r.Thinking.Mode == providers.ThinkingOn }

// off says why a candidate takes no calls, whatever the request; "" if it does.
func (c *Candidate) off() Skip {
	switch {
	case c.Disabled:
		return SkipDisabled
	case c.Denied && (c.DeniedUntil.IsZero() || time.Now().Before(c.DeniedUntil)):
		return SkipDenied
	case c.Client == nil:
		return SkipNoClient
	}
	return ""
}

// unable says why a candidate can't do what the request asks, "" if it can.
func (c *Candidate) unable(req *Request) Skip {
	switch {
	case req.wantsThinking() && !c.Thinking:
		return SkipThinking
	case c.Window > 0 && req.Tokens > c.Window:
		return SkipWindow
	case !c.has(req.Needs), c.refusal(req) != nil:
		return SkipFeature
	}
	return ""
}

// refusal is what the candidate's dialect can't carry of a request, nil for nothing.
func (c *Candidate) refusal(req *Request) *providers.Error {
	check, ok := c.Client.(providers.Checker)
	if !ok {
		return nil
	}
	if err := check.Check(c.call(req)); err != nil {
		return providers.AsError(err)
	}
	return nil
}

func (c *Candidate) has(n Needs) bool {
	f := c.Features
	return f == nil || (!n.Tools || f.Tools) && (!n.Vision || f.Vision) && (!n.JSON || f.JSON)
}

func (c *Candidate) call(req *Request) providers.Call {
	return providers.Call{
		Request: req.Request,
		Model:   c.Model,
		BaseURL: c.BaseURL,
		Connect: c.Timeouts.Connect,
		Options: c.Options,
	}
}
