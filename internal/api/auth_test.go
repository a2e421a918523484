package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAuth(t *testing.T) {
	two := []Key{key("team-a", "key-a"), key("team-a", "key-a2"), key("team-b", "key-b")}
	upper := []Key{{"team-a", strings.ToUpper(key("team-a", "key-a").SHA256)}}
	bearer := func(k string) []string { return []string{"Authorization", "Bearer " + k} }
	for _, c := range []struct {
		name      string
		keys      []Key
		anonymous bool
		headers   []string
		tenant    string // "": refused
		code      string
	}{
		{"bearer", two, false, bearer("key-a"), "team-a", ""},
		{"second key of a tenant", two, false, bearer("key-a2"), "team-a", ""},
		{"other tenant", two, false, bearer("key-b"), "team-b", ""},
		{"scheme in small letters", two, false, []string{"Authorization", "bearer  key-a "}, "team-a", ""},
		{"x-api-key", two, false, []string{"x-api-key", "key-b"}, "team-b", ""},
		{"api-key", two, false, []string{"api-key", "key-b"}, "team-b", ""},
		{"signature beside x-api-key", two, false, []string{"Authorization", "AWS4-HMAC-SHA256 Credential=x", "x-api-key", "key-b"}, "team-b", ""},
		{"placeholder beside x-api-key", two, false, []string{"Authorization", "Bearer none", "x-api-key", "key-b"}, "team-b", ""},
		{"hash in capitals", upper, false, bearer("key-a"), "team-a", ""},
		{"unknown", two, false, bearer("key-c"), "", "invalid_api_key"},
		{"the hash itself", two, false, bearer(two[0].SHA256), "", "invalid_api_key"},
		{"none", two, false, nil, "", "missing_api_key"},
		{"empty bearer", two, false, bearer(""), "", "missing_api_key"},
		{"basic", two, false, []string{"Authorization", "Basic a2V5LWE="}, "", "missing_api_key"},
		{"no keys at all, none given", nil, false, nil, "", "missing_api_key"},
		{"no keys at all, one given", nil, false, bearer("key-a"), "", "invalid_api_key"},
		{"open, none", nil, true, nil, "anonymous", ""},
		{"open, any", nil, true, bearer("sk-whatever"), "anonymous", ""},
		{"both, none", two, true, nil, "anonymous", ""},
		{"both, known", two, true, bearer("key-b"), "team-b", ""},
		{"both, unknown", two, true, bearer("key-c"), "", "invalid_api_key"},
		{"a hash that is none", []Key{{"team-a", "zz"}}, false, bearer(""), "", "missing_api_key"},
		{"a hash that is none, both", []Key{{"team-a", ""}}, true, bearer("x"), "", "invalid_api_key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{steps: hello()}
			h := f.with(Settings{Keys: c.keys, Anonymous: c.anonymous})
			w := post(h, ask(""), c.headers...)
			if c.tenant == "" {
				require.Equal(t, c.code, requireError(t, w, 401).Get("code").Str)
				require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
				require.Zero(t, f.prepared)
				for _, path := range []string{"/v1/models", "/v1/models/a", "/v1/status", completions + "/x"} {
					requireError(t, call(h, "GET", path, "", c.headers...), 401)
				}
				return
			}
			require.Equal(t, 200, w.Code)
			require.Equal(t, c.tenant, f.requests[0].Tenant)
			require.Equal(t, 1, f.prepared)
		})
	}
}

// TestAuthBeforeBody shows that a body is worth nothing without a key.
func TestAuthBeforeBody(t *testing.T) {
	h := (&fake{}).with(Settings{Keys: []Key{key("a", "k")}})
	requireError(t, post(h, `{"broken`), 401)
	requireError(t, post(h, `{"broken`, "Authorization", "Bearer k"), 400)
}
