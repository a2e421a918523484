package config

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// store is a parameter store that counts its batches.
type store struct {
	values  map[string]string
	err     error
	batches [][]string
}

func (s *store) Fetch(_ context.Context, paths []string) (map[string]string, error) {
	s.batches = append(s.batches, slices.Clone(paths))
	got := map[string]string{}
	for _, p := range paths {
		if v, ok := s.values[p]; ok {
			got[p] = v
		}
	}
	return got, s.err
}

const referring = `
auth: {keys: [{tenant: x, sha256: "ssm:/h/hash"}]}
providers:
  openai: {api_key: "ssm:/h/openai", headers: {X-Org: "ssm:/h/org", X-Plain: p}}
  own: {dialect: openai, api_key: "ssm:/h/own", base_url: "ssm:/h/url"}
candidates: [{id: a, provider: openai, model: m}, {id: b, provider: own, model: m}]
`

func all() map[string]string {
	return map[string]string{
		"/h/hash": strings.Repeat("AB", 32), "/h/openai": "sk-1\n", "/h/org": "org", "/h/own": "sk-2", "/h/url": "https://own.example.com/v1",
	}
}

func TestFillInOneBatch(t *testing.T) {
	c := mustLoad(t, referring)
	s := &store{values: all()}
	secrets := NewSecrets(s)
	filled, warnings, err := secrets.Fill(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, [][]string{{"/h/hash", "/h/openai", "/h/org", "/h/own", "/h/url"}}, s.batches)
	require.Equal(t, strings.Repeat("ab", 32), filled.Auth.Keys[0].SHA256)
	require.Equal(t, "sk-1", filled.provider("openai").APIKey, "a line break at the end is no part of a key")
	require.Equal(t, map[string]string{"X-Org": "org", "X-Plain": "p"}, filled.provider("openai").Headers)
	require.Equal(t, "https://own.example.com/v1", filled.provider("own").BaseURL)

	require.Equal(t, "ssm:/h/openai", c.provider("openai").APIKey, "the configuration itself stays as it is")
	require.Equal(t, "ssm:/h/org", c.provider("openai").Headers["X-Org"])
	require.Empty(t, filled.References())

	_, _, err = secrets.Fill(t.Context(), mustLoad(t, referring))
	require.NoError(t, err)
	require.Len(t, s.batches, 1, "what is known isn't fetched again")
}

func TestFillWithoutReferencesAsksNobody(t *testing.T) {
	c := mustLoad(t, minimal)
	s := &store{}
	filled, warnings, err := NewSecrets(s).Fill(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Same(t, c, filled)
	require.Empty(t, s.batches)
}

func TestFillWithoutAValue(t *testing.T) {
	for _, tt := range []struct{ name, path, value, warning string }{
		{"no key", "/h/own", "", "f.yaml: providers.own.api_key: the parameter /h/own has no value"},
		{"no key at all", "/h/own", "CANARY key", "f.yaml: providers.own.api_key: the parameter /h/own has a space or a character that no key has"},
		{"no URL", "/h/url", "CANARY", "f.yaml: providers.own.base_url: the parameter /h/url is no http or https URL"},
		{"no hash", "/h/hash", "CANARY", "f.yaml: auth.keys of tenant x: the parameter /h/hash wants 64 hex digits: the SHA-256 of the key, never the key itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &store{values: all()}
			s.values[tt.path] = tt.value
			filled, warnings, err := NewSecrets(s).Fill(t.Context(), mustLoad(t, referring))
			require.NoError(t, err)
			require.Len(t, warnings, 1)
			require.Equal(t, tt.warning, warnings[0].String())
			require.False(t, filled.provider("openai").NoClient)
			require.Equal(t, tt.path != "/h/hash", filled.provider("own").NoClient)
			require.Len(t, filled.Auth.Keys, map[bool]int{true: 0, false: 1}[tt.path == "/h/hash"])
		})
	}
}

func TestFillFromAStoreThatIsAway(t *testing.T) {
	s := &store{err: errors.New("away")}
	filled, warnings, err := NewSecrets(s).Fill(t.Context(), mustLoad(t, referring))
	require.EqualError(t, err, "fetch 5 parameters: away")
	require.Len(t, warnings, 5)
	require.True(t, filled.provider("own").NoClient)
	require.Empty(t, filled.Auth.Keys)
}

func TestRefreshKeepsWhatItHas(t *testing.T) {
	c := mustLoad(t, referring)
	s := &store{values: all()}
	secrets := NewSecrets(s)
	_, _, err := secrets.Fill(t.Context(), c)
	require.NoError(t, err)

	s.values["/h/own"] = "sk-new"
	require.NoError(t, secrets.Refresh(t.Context(), c))
	filled, _, err := secrets.Fill(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "sk-new", filled.provider("own").APIKey)

	s.values, s.err = nil, errors.New("away")
	require.Error(t, secrets.Refresh(t.Context(), c))
	filled, warnings, err := secrets.Fill(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, "sk-new", filled.provider("own").APIKey)
}

func TestFillAtTheSameTime(t *testing.T) {
	c := mustLoad(t, referring)
	s := &store{values: all()}
	secrets := NewSecrets(s)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _, _, _ = secrets.Fill(t.Context(), c) })
	}
	group.Wait()
	require.Len(t, s.batches, 1)
}
