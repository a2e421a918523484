package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/routing"
)

// metadata is the holdfast object of an answer.
type metadata struct {
	Tier           routing.Tier  `json:"tier,omitempty"` // absent where nothing answered
	RouteID        string        `json:"route_id"`
	Candidate      string        `json:"candidate,omitempty"`
	Provider       string        `json:"provider,omitempty"`
	Model          string        `json:"model,omitempty"`
	Chain          string        `json:"chain"`
	Rule           string        `json:"rule"`
	Config         string        `json:"config"`
	Attempts       []attemptLine `json:"attempts"`
	Cache          *cacheLine    `json:"cache,omitempty"`
	UsageEstimated bool          `json:"usage_estimated,omitempty"`
}

type attemptLine struct {
	Candidate string       `json:"candidate"`
	Outcome   string       `json:"outcome,omitempty"`
	Skipped   routing.Skip `json:"skipped,omitempty"`
	Status    int          `json:"status,omitempty"`
	MS        *int64       `json:"ms,omitempty"` // once the attempt has ended
	TTFT      *int64       `json:"ttft_ms,omitempty"`
	Cost      *float64     `json:"cost_usd,omitempty"` // once it is known
	Estimated bool         `json:"cost_estimated,omitempty"`
}

type cacheLine struct {
	Rule       string  `json:"rule"`
	Similarity float64 `json:"similarity"`
	Age        int64   `json:"age_s"`
	Question   string  `json:"question,omitempty"`
}

// describeTrace makes the metadata of what is known so far.
func describeTrace(t *routing.Trace) *metadata {
	m := &metadata{
		Tier: t.Tier, RouteID: t.RouteID, Candidate: t.Candidate, Provider: t.Provider, Model: t.Model,
		Chain: t.Chain, Rule: t.Rule, Config: t.Config, Attempts: make([]attemptLine, 0, len(t.Attempts)),
	}
	for i := range t.Attempts {
		m.Attempts = append(m.Attempts, describeAttempt(&t.Attempts[i]))
	}
	if c := t.Cache; c != nil {
		m.Cache = &cacheLine{c.Rule, c.Similarity, int64(c.Age / time.Second), c.Question}
	}
	return m
}

func describeAttempt(a *routing.Attempt) attemptLine {
	line := attemptLine{Candidate: a.Candidate, Outcome: a.Outcome, Skipped: a.Skipped, Status: a.Status}
	if a.Outcome == "" {
		return line
	}
	if a.Ended {
		line.MS = milliseconds(a.Duration)
	}
	if a.TTFT > 0 {
		line.TTFT = milliseconds(a.TTFT)
	}
	if a.Cost != nil {
		usd := a.Cost.USD()
		line.Cost, line.Estimated = &usd, a.Cost.Estimated
	}
	return line
}

func milliseconds(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

func (m *metadata) bytes() []byte {
	b, _ := json.Marshal(m) // strings and numbers always marshal
	return b
}

// tellHeaders sets the metadata headers.
func tellHeaders(header http.Header, t *routing.Trace) {
	header.Set("Holdfast-Route-Id", t.RouteID)
	header.Set("Holdfast-Attempts", strconv.Itoa(t.Calls()))
	if t.Tier != "" {
		header.Set("Holdfast-Tier", string(t.Tier))
	}
	if t.Tier == routing.TierModel {
		header.Set("Holdfast-Candidate", t.Candidate)
	}
	if c := t.Cache; c != nil {
		value := c.Rule
		if c.Similarity < 1 {
			value += fmt.Sprintf("; similarity=%.3g", c.Similarity)
		}
		header.Set("Holdfast-Cache", fmt.Sprintf("%s; age=%d", value, int64(c.Age/time.Second)))
	}
}
