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

// In front of healthy models nobody should be surprised by how old answers may get, and a shadow needs a cache.
func TestCacheWarnings(t *testing.T) {
	for cache, want := range map[string]string{
		"{mode: front}":            "f.yaml:3: cache.mode front: healthy models are not asked again for cache.ttl, which is 168h0m0s unless it is set",
		"{mode: front, ttl: 168h}": "", "{mode: front, ttl: 1h, shadow: 1}": "", "{shadow: 0.1}": "", `{mode: "off"}`: "",
		`{mode: "off", shadow: 0.1}`: "f.yaml:3: cache.shadow does nothing while cache.mode is off",
	} {
		_, warnings, err := load("auth: {anonymous: true}\ncandidates: [{id: a, provider: ollama, model: m}]\ncache: " + cache + "\n")
		require.NoError(t, err, cache)
		if want == "" {
			require.Empty(t, warnings, cache)
			continue
		}
		require.Len(t, warnings, 1, cache)
		require.Equal(t, want, warnings[0].String())
	}
}
