package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// anonymous is the tenant of callers without a key.
const anonymous = "anonymous"

type keyHash struct {
	tenant string
	sum    [sha256.Size]byte
}

// hashes decodes the configured hashes. One that isn't a hash matches no key, but still says that keys are asked for.
func hashes(keys []Key) []keyHash {
	out := make([]keyHash, len(keys))
	for i, k := range keys {
		sum, err := hex.DecodeString(k.SHA256)
		if err == nil && len(sum) == sha256.Size {
			out[i] = keyHash{k.Tenant, [sha256.Size]byte(sum)}
		}
	}
	return out
}

// tenant says who calls. A key that isn't known is refused even where callers without one are let in: whoever sends
// a key means to be somebody.
func (h *handler) tenant(r *http.Request) (string, error) {
	if len(h.keys) == 0 && h.settings.Anonymous {
		return anonymous, nil
	}
	keys := presented(r.Header)
	for _, key := range keys {
		if tenant := h.owner(key); tenant != "" {
			return tenant, nil
		}
	}
	switch {
	case len(keys) > 0:
		return "", &fault{
			status: http.StatusUnauthorized, code: "invalid_api_key",
			message: "The API key is not known. Check the key in Authorization: Bearer, x-api-key or api-key.",
		}
	case h.settings.Anonymous:
		return anonymous, nil
	}
	return "", &fault{
		status: http.StatusUnauthorized, code: "missing_api_key",
		message: "This endpoint needs an API key: send it as Authorization: Bearer KEY, or in the header x-api-key or api-key.",
	}
}

// owner is the tenant of a key, "" if nobody's. Every hash is compared, in constant time.
func (h *handler) owner(key string) string {
	sum, tenant := sha256.Sum256([]byte(key)), ""
	for i := range h.keys {
		if subtle.ConstantTimeCompare(sum[:], h.keys[i].sum[:]) == 1 && tenant == "" {
			tenant = h.keys[i].tenant
		}
	}
	return tenant
}

// presented are the keys that a request brings. Authorization with another scheme (AWS's signature) is none.
func presented(header http.Header) []string {
	var keys []string
	if scheme, key, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " "); strings.EqualFold(scheme, "Bearer") {
		keys = append(keys, strings.TrimSpace(key))
	}
	for _, name := range []string{"X-Api-Key", "Api-Key"} {
		if key := strings.TrimSpace(header.Get(name)); key != "" {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 && keys[0] == "" {
		return keys[1:]
	}
	return keys
}
