package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseKeys(t *testing.T) {
	a, b := strings.Repeat("a1", 32), strings.Repeat("B2", 32)
	for _, tt := range []struct {
		name, text string
		want       []Key
		err        string
	}{
		{name: "none"},
		{name: "one", text: "team-a:" + a, want: []Key{{"team-a", a}}},
		{name: "two, with spaces and a comma at the end", text: "x:" + a + ", y:" + b + ",", want: []Key{{"x", a}, {"y", strings.ToLower(b)}}},
		{name: "no tenant", text: "x:" + a + "," + b, err: "HOLDFAST_KEYS: item 2 has no tenant (tenant:sha256,…)"},
		{name: "empty tenant", text: ":" + a, err: "HOLDFAST_KEYS: item 1 has no tenant (tenant:sha256,…)"},
		{name: "a key alone", text: "hk-CANARY", err: "HOLDFAST_KEYS: item 1 has no tenant (tenant:sha256,…)"},
		{name: "no hash", text: "x:hk-CANARY", err: "HOLDFAST_KEYS: item 1 wants 64 hex digits: the SHA-256 of the key, never the key itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, err := ParseKeys(tt.text)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, keys)
		})
	}
}

func TestCheckLambda(t *testing.T) {
	key := Key{"x", strings.Repeat("a1", 32)}
	closed := "candidates: [{id: a, provider: ollama, model: m}]\n"
	embedded, _, err := Load(t.Context(), Source{Lookup: environ()})
	require.NoError(t, err)
	for _, tt := range []struct {
		name string
		c    *Config
		more []Key
		err  string
	}{
		{"embedded", embedded, []Key{key}, "on Lambda a configuration is required"},
		{"no keys, nothing said", mustLoad(t, closed), nil, "f.yaml: there are no keys"},
		{"no keys, said not", mustLoad(t, closed+"auth: {anonymous: false}"), nil, "f.yaml: there are no keys"},
		{"open, and said so", mustLoad(t, closed+"auth: {anonymous: true}"), nil, ""},
		{"keys of the file", mustLoad(t, closed+"auth: {keys: [{tenant: x, sha256: "+key.SHA256+"}]}"), nil, ""},
		{"keys of the environment", mustLoad(t, closed), []Key{key}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.c.CheckLambda(tt.more)
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
		})
	}
}
