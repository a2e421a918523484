package cache

import "context"

// Embedder makes vectors of texts. Its vectors only compare with those of the same id, and serve only from the
// threshold that was evaluated for it. One that asks a provider may add vectors of its own beside the built-in ones; a
// look-up has to do without it, since it happens when providers are away.
type Embedder interface {
	// ID names the embedder and its version; it changes whenever a vector would.
	ID() string
	// Embed gives the vector of a text. Safe for concurrent use.
	Embed(ctx context.Context, text string) (Vector, error)
}

// Vector is a text's place among others.
type Vector struct {
	// Values have length 1, so that the cosine of two is their inner product; nil: there is nothing to compare.
	Values []float32
	// Unknown counts the runes that the embedder knows nothing of. Texts whose counts differ are never the same.
	Unknown int
}

// cosine of two vectors of one embedder; 0 if one is missing.
func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var sum float32
	for i, x := range a {
		sum += x * b[i]
	}
	return float64(sum)
}

// Thresholds of similarity, as data: only what was evaluated serves. docs/cache.md has the figures behind them.
type threshold struct{ strict, similar float64 }

// thresholds gives what the evaluation of an embedder allows in a language; false: nothing. In English no cosine
// of the built-in table or of hashed n-grams was shown to reach 0.99 precision.
func thresholds(embedder, lang string) (threshold, bool) {
	if embedder == builtinID && lang == langChinese {
		return threshold{strict: 0.99, similar: 0.97}, true
	}
	return threshold{}, false
}
