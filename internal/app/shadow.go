package app

import (
	"context"
	"math/rand/v2"

	"holdfast/internal/cache"
	"holdfast/internal/routing"
	"holdfast/internal/telemetry"
)

// shadow looks up what the cache would have answered in the place of the model, for a share of the requests, and says
// how far the two agree. It runs after the last byte, before the new answer is kept. nil: it isn't this one's turn, or
// the cache can't be asked.
func (a *App) shadow(ctx context.Context, s *state, req *routing.Request, fresh string) *telemetry.Shadow {
	if req.NoCache || rand.Float64() >= s.config.Cache.Shadow {
		return nil
	}
	hit, found, failed := lastResort{s.cache, a.log}.ask(ctx, req, question(req), s.cache.Lookup)
	switch {
	case failed:
		return nil
	case !found:
		return &telemetry.Shadow{Rule: telemetry.ShadowMiss}
	}
	got := cache.Compare(hit.Text, fresh)
	return &telemetry.Shadow{
		Rule: hit.Rule, Similarity: hit.Similarity, Age: hit.Age, Key: hit.Key,
		Overlap: got.Overlap, Agree: got.Agree, How: got.How,
	}
}
