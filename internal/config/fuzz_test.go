package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// canary is what every environment variable holds while fuzzing. No error may repeat it.
const canary = "CANARY-7f3a9c"

func FuzzLoad(f *testing.F) {
	for _, path := range []string{"testdata/example.yaml", "testdata/full.yaml", "holdfast.yaml"} {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	for _, tt := range broken() {
		f.Add([]byte(tt.text))
	}
	source := Source{Lookup: func(string) (string, bool) { return canary, true }}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		c, warnings, err := source.parse("f.yaml", data)
		require.LessOrEqual(t, len(warnings), maxProblems+1)
		if err == nil {
			sane(t, c)
			return
		}
		require.Nil(t, c)
		if !strings.Contains(string(data), "CANARY") {
			require.NotContains(t, err.Error(), canary)
		}
		var problems Errors
		require.ErrorAs(t, err, &problems)
		require.LessOrEqual(t, len(problems), maxProblems+1)
		for _, p := range problems {
			require.Positive(t, p.Line)
			require.NotContains(t, p.Reason, "\n")
			require.Less(t, len(p.Reason), 2000)
		}
	})
}

// sane demands what everybody relies on of a configuration that was taken.
func sane(t *testing.T, c *Config) {
	require.NotEmpty(t, c.Candidates)
	for _, x := range c.Candidates {
		require.Regexp(t, idPattern, x.ID)
		require.NotNil(t, c.provider(x.Provider))
		require.Positive(t, x.Timeouts.FirstToken)
		require.Positive(t, x.Timeouts.Idle)
		require.GreaterOrEqual(t, x.Weight, 0)
	}
	for _, chain := range c.Chains {
		require.NotNil(t, c.candidate(chain.Primary))
		for _, e := range chain.Fallbacks {
			require.NotNil(t, c.candidate(e.Model))
		}
	}
	require.Positive(t, c.Budget.Total)
	require.Positive(t, c.Limits.Body)
	require.NotEmpty(t, c.Fallback.Messages["zh"])
	require.NotEmpty(t, c.Fallback.Messages["en"])
}
