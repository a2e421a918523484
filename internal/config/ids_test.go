package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckID(t *testing.T) {
	require.NoError(t, CheckID("openai-gpt_4.1"))
	for _, id := range []string{"", "a b", "a#b", "模型", string(make([]byte, 65))} {
		require.ErrorContains(t, CheckID(id), "is no id", "%q", id)
	}
}

func TestCheckCandidate(t *testing.T) {
	c := &Config{Source: "f.yaml", Candidates: []Candidate{{ID: "openai-main"}, {ID: "openai-mini"}}}
	require.NoError(t, c.CheckCandidate("openai-mini"))
	require.EqualError(t, c.CheckCandidate("openai-mian"), `f.yaml has no candidate "openai-mian" (did you mean openai-main?)`)
	require.EqualError(t, c.CheckCandidate("claude"), `f.yaml has no candidate "claude"`)
}
