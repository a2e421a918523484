package config

import (
	"errors"
	"fmt"
	"strings"
)

// normal writes a hash in lower case, as it is compared.
func normal(k Key) Key {
	if !strings.HasPrefix(k.SHA256, secretPrefix) {
		k.SHA256 = strings.ToLower(k.SHA256)
	}
	return k
}

// ParseKeys reads HOLDFAST_KEYS: tenant:sha256 pairs with commas between. "" is no key. Its errors repeat nothing:
// who gets the form wrong may have written the key itself.
func ParseKeys(s string) ([]Key, error) {
	var keys []Key
	for i, item := range strings.Split(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		tenant, hash, found := strings.Cut(item, ":")
		if !found || !idPattern.MatchString(tenant) {
			return nil, fmt.Errorf("HOLDFAST_KEYS: item %d has no tenant (tenant:sha256,…)", i+1)
		}
		if problem := wrongHash(hash); problem != "" {
			return nil, fmt.Errorf("HOLDFAST_KEYS: item %d %s", i+1, problem)
		}
		keys = append(keys, normal(Key{tenant, hash}))
	}
	return keys, nil
}

// CheckLambda says why a configuration must not run as a Lambda function: the embedded one isn't meant for it, and
// an open endpoint spends its owner's money, so it has to be asked for in so many words. more are keys from
// elsewhere (HOLDFAST_KEYS).
func (c *Config) CheckLambda(more []Key) error {
	if c.Embedded {
		return errors.New("on Lambda a configuration is required: holdfast.yaml beside the bootstrap, or HOLDFAST_CONFIG")
	}
	if len(c.Auth.Keys)+len(more) == 0 && !c.Auth.Anonymous {
		return fmt.Errorf("%s: there are no keys: add auth.keys, set HOLDFAST_KEYS, or say auth.anonymous: true to let anyone in", c.Source)
	}
	return nil
}
