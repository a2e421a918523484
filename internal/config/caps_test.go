package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A cap is warned of where a candidate of that tenant has no price.
func TestCapsWithoutAPrice(t *testing.T) {
	const priced = "price: {input: 1, output: 1}"
	for _, test := range []struct {
		name, candidates, want string
	}{
		{"all have one", "{id: a, provider: ollama, model: m, " + priced + "}", ""},
		{"free of charge is a price", "{id: a, provider: ollama, model: m, price: {input: 0, output: 0}}", ""},
		{"none", "{id: a, provider: ollama, model: m}, {id: b, provider: ollama, model: m}", "a, b"},
		{"not for this tenant", "{id: a, provider: ollama, model: m, " + priced + "}, {id: b, provider: ollama, model: m, tenants: [other]}", ""},
		{"for this tenant", "{id: a, provider: ollama, model: m, " + priced + "}, {id: b, provider: ollama, model: m, tenants: [x]}", "b"},
		{"not in use", "{id: a, provider: ollama, model: m, " + priced + "}, {id: b, provider: ollama, model: m, enabled: false}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, warnings, err := load("auth: {anonymous: true}\ncandidates: [" + test.candidates + "]\ncaps:\n  - {tenant: x, usd_per_day: 0.5}\n")
			require.NoError(t, err)
			if test.want == "" {
				require.Empty(t, warnings)
				return
			}
			require.Len(t, warnings, 1)
			require.Equal(t, "f.yaml:4: the cap of x doesn't count what has no price: "+test.want+
				" (price: {input: 0, output: 0} says that it is free)", warnings[0].String())
		})
	}
}
