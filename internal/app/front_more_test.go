package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The cache holds text. Who asks for more than that gets it from a model, and the text where there is none.
func TestFrontGivesNoLessThanTheModel(t *testing.T) {
	l, q := lookFirst(t, inFront, Places{}, "a"), fresh()
	more := []string{
		`,"logprobs":true`, `,"logprobs":true,"top_logprobs":2`, `,"modalities":["text","audio"],"audio":{"voice":"x","format":"wav"}`,
		`,"modalities":["image"]`, `,"web_search_options":{}`, `,"stream":true,"logprobs":true`,
	}
	for _, members := range more {
		for range 2 {
			require.Equal(t, "model", l.body(q, members).meta.Tier, members)
		}
	}
	for _, members := range []string{`,"logprobs":false`, `,"modalities":["text"]`, `,"modalities":null,"audio":null,"web_search_options":null`} {
		require.Equal(t, "model", l.body(q, members).meta.Tier, members)
		require.Equal(t, "cache", l.body(q, members).meta.Tier, members)
	}
	l.up[0].Play(down())
	for _, members := range more {
		got := l.body(q, members)
		require.Equal(t, "cache", got.meta.Tier, members)
		require.Equal(t, []string{"a:server_error"}, got.outcomes()[:1])
	}
}
