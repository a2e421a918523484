package app

import (
	"context"
	"slices"

	"github.com/tidwall/gjson"

	"holdfast/internal/routing"
)

// front gives routing the cache that answers before any model.
type front struct{ lastResort }

// Answered implements routing.Front.
func (f front) Answered(ctx context.Context, req *routing.Request, by *routing.Candidate) *routing.CacheHit {
	if moreThanText(req.Raw) {
		return nil
	}
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

// moreThanText says whether an answer is to have what the cache doesn't hold: a model gives that, and it may be asked.
// In the last tier the text alone is better than none.
func moreThanText(raw []byte) bool {
	asked := gjson.GetManyBytes(raw, "logprobs", "audio", "web_search_options", "modalities")
	other := func(m gjson.Result) bool { return m.Str != "text" }
	return asked[0].Bool() || asked[1].IsObject() || asked[2].IsObject() || slices.ContainsFunc(asked[3].Array(), other)
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
