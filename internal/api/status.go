package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/routing"
)

func (h *handler) healthz(w *writer, _ *http.Request) error {
	status, text := http.StatusOK, "ok"
	if !h.deps.Ready() {
		status, text = http.StatusServiceUnavailable, "starting"
	}
	return writeValue(w, status, map[string]string{"status": text, "version": h.settings.Version})
}

// stored answers GET /v1/chat/completions/{id}: what became of a request that had got the fixed message.
func (h *handler) stored(_ *writer, _ *http.Request, _ string) error {
	return &fault{
		status: http.StatusNotFound, code: "not_found", param: "id",
		message: "There is no stored answer of this id, or not yet. Ids are those of fixed messages (tier fallback); ask again later.",
	}
}

type modelLine struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (h *handler) modelLine(l routing.Listing) modelLine {
	return modelLine{l.ID, "model", h.started.Unix(), l.Provider}
}

func (h *handler) models(w *writer, _ *http.Request, tenant string) error {
	lines := []modelLine{}
	for _, l := range h.deps.Router.Models(tenant) {
		lines = append(lines, h.modelLine(l))
	}
	return writeValue(w, http.StatusOK, map[string]any{"object": "list", "data": lines})
}

func (h *handler) model(w *writer, r *http.Request, tenant string) error {
	id := strings.TrimPrefix(r.URL.Path, "/v1/models/")
	for _, l := range h.deps.Router.Models(tenant) {
		if l.ID == id {
			return writeValue(w, http.StatusOK, h.modelLine(l))
		}
	}
	return &fault{
		status: http.StatusNotFound, code: "model_not_found", param: "model",
		message: "The model `" + shorten(id) + "` does not exist. GET /v1/models lists what does.",
	}
}

type statusBody struct {
	Version    string          `json:"version"`
	Config     string          `json:"config"`
	Candidates []candidateLine `json:"candidates"`
	Chains     []chainLine     `json:"chains"`
}

type candidateLine struct {
	ID       string       `json:"id"`
	Provider string       `json:"provider"`
	Model    string       `json:"model"`
	Priority int          `json:"priority"`
	Weight   int          `json:"weight"`
	Thinking bool         `json:"supports_thinking"`
	Window   int          `json:"context_window,omitempty"`
	Skipped  routing.Skip `json:"skipped,omitempty"`
	Share    float64      `json:"share,omitempty"` // by weight, among equals of its priority
	Drawn    float64      `json:"drawn,omitempty"` // of this process's draws among them
	Breaker  breakerLine  `json:"breaker"`
}

type breakerLine struct {
	State      string     `json:"state"`
	Cooling    bool       `json:"cooling,omitempty"`
	Generation int64      `json:"generation"`
	Until      *time.Time `json:"until,omitempty"`
	Why        string     `json:"why,omitempty"`
	Local      bool       `json:"local,omitempty"`
	Mode       string     `json:"mode"`
	Sample     *sample    `json:"sample,omitempty"`
}

// sample is the fleet's latest sample of the candidate's calls.
type sample struct {
	Began  time.Time `json:"began"`
	Calls  int64     `json:"calls"`
	OK     int64     `json:"ok"`
	Failed int64     `json:"failed"`
	Slow   int64     `json:"slow"`
}

type chainLine struct {
	Name      string      `json:"name"`
	Primary   string      `json:"primary"`
	Fallbacks []entryLine `json:"fallbacks"`
}

type entryLine struct {
	Model      string `json:"model"`
	OnTimeout  *bool  `json:"on_timeout,omitempty"`
	OnStatus   *[]int `json:"on_status,omitempty"`
	MaxRetries *int   `json:"max_retries,omitempty"`
}

func (h *handler) status(w *writer, r *http.Request, tenant string) error {
	s := h.deps.Router.Status(r.Context(), tenant)
	body := statusBody{h.settings.Version, s.Config, []candidateLine{}, []chainLine{}}
	for i := range s.Candidates {
		body.Candidates = append(body.Candidates, describeCandidate(&s.Candidates[i]))
	}
	for _, c := range s.Chains {
		line := chainLine{c.Name, c.Primary, []entryLine{}}
		for _, e := range c.Fallbacks {
			entry := entryLine{Model: e.Model, OnTimeout: e.OnTimeout, MaxRetries: e.MaxRetries}
			if e.OnStatus != nil { // an empty list means something else than none
				entry.OnStatus = &e.OnStatus
			}
			line.Fallbacks = append(line.Fallbacks, entry)
		}
		body.Chains = append(body.Chains, line)
	}
	return writeValue(w, http.StatusOK, body)
}

func describeCandidate(s *routing.CandidateStatus) candidateLine {
	c, b := &s.Candidate, &s.Breaker
	line := candidateLine{
		ID: c.ID, Provider: c.Provider, Model: c.Model, Priority: c.Priority, Weight: c.Weight,
		Thinking: c.Thinking, Window: c.Window, Skipped: s.Skip, Share: short(s.Share), Drawn: short(s.Drawn),
		Breaker: breakerLine{
			State: b.State.String(), Cooling: b.Cooling, Generation: b.Generation, Why: b.Why,
			Local: b.Local, Mode: b.Mode.String(),
		},
	}
	if w := b.Sample; w.Start > 0 {
		line.Breaker.Sample = &sample{time.UnixMilli(w.Start).UTC(), w.Tickets, w.OK, w.Failed, w.Slow}
	}
	if !b.Until.IsZero() {
		until := b.Until.UTC()
		line.Breaker.Until = &until
	}
	return line
}

// short rounds a share to four digits.
func short(share float64) float64 { return math.Round(share*1e4) / 1e4 }

func writeValue(w *writer, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	writeJSON(w, status, body)
	return nil
}
