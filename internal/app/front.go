package app

import (
	"context"

	"holdfast/internal/routing"
)

// front gives routing the cache that answers before any model.
type front struct{ lastResort }

// Answered implements routing.Front.
func (f front) Answered(ctx context.Context, req *routing.Request, by *routing.Candidate) *routing.CacheHit {
	q := question(req)
	q.Shape = shape(req, by.ID, by.Provider, by.Model)
	hit, found, _ := f.ask(ctx, req, q, f.cache.Front)
	return told(hit, found, req.Language)
}

// shape is what an answer depends on besides the question: who gives it, and every parameter that may be heard in it.
// A model that is named and one that is chosen give the same answer.
func shape(req *routing.Request, candidate, provider, model string) []string {
	parameters := pick(req.Raw, func(field string) bool { return harmless(field) && !unheard(field) })
	return []string{candidate, provider, model, string(parameters)}
}

// unheard are the fields that nobody hears in an answer: what the question is made of, who asks, how it is sent and
// billed. Any other may be heard.
func unheard(field string) bool {
	switch field {
	case "messages", "model", "stream", "stream_options", "n", "user", "metadata", "store", "service_tier",
		"safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options":
		return true
	}
	return false
}
