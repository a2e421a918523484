package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHashed(t *testing.T) {
	vector := func(text string) []float32 {
		v, err := NewHashed().Embed(t.Context(), text)
		require.NoError(t, err)
		return v.Values
	}
	q := vector("How do bridges carry heavy loads?")
	require.Len(t, q, hashedDims)
	require.InDelta(t, 1, cosine(q, q), 1e-6)
	require.InDelta(t, 1, cosine(q, vector("HOW do bridges, carry  heavy loads")), 1e-6, "case, marks and spaces are nothing")
	require.Greater(t, cosine(q, vector("How does a bridge carry a heavy load?")), cosine(q, vector("Which cheese melts best on pizza?"))+0.3)
	require.Greater(t, cosine(vector("如何办理护照"), vector("怎么办理护照")), 0.4)
	require.Nil(t, vector(" ?! "))
	require.NotEqual(t, NewHashed().ID(), NewBuiltin().ID())
}

func BenchmarkHashed(b *testing.B) {
	for b.Loop() {
		_, _ = NewHashed().Embed(b.Context(), "Could you tell me what's the best way to get from Paris to Rome?")
	}
}
