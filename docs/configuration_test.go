package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/config"
	"holdfast/internal/providers"
)

// The file of configuration.md is right, names every key that is read, and its defaults are the defaults.
func TestConfigurationIsWholeAndItsDefaultsAreTrue(t *testing.T) {
	page, err := os.ReadFile("configuration.md")
	require.NoError(t, err)
	var text strings.Builder
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		text.WriteString(block[1])
	}
	for _, key := range keysRead(t) {
		require.Regexp(t, `(?m)(^|[ {])`+key+`:`, text.String(), "configuration.md lacks %s", key)
	}
	got, want := load(t, text.String()), load(t, "candidates: [{id: qwen, provider: siliconflow, model: m}]")
	got.Chat.DefaultModel, got.Chat.DeepThinkingModel = "", ""
	require.Equal(t, want.Breaker, got.Breaker)
	require.Equal(t, want.Retries, got.Retries)
	require.Equal(t, want.Budget, got.Budget)
	require.Equal(t, want.Chat, got.Chat)
	require.Equal(t, want.ContentPolicy, got.ContentPolicy)
	require.Equal(t, want.Limits, got.Limits)
	require.Equal(t, want.Cache, got.Cache)
	require.Equal(t, want.Fallback, got.Fallback)
	require.Equal(t, want.Auth.Anonymous, got.Auth.Anonymous)
	a, b := got.Candidates[0], want.Candidates[0]
	a.Model, a.ContextWindow, a.Features, a.Tenants, a.Price, a.Options.Allow = b.Model, 0, nil, nil, nil, nil
	require.Equal(t, b, a)
}

// keysRead are the keys in the code that reads a configuration.
func keysRead(t *testing.T) (keys []string) {
	for _, file := range []string{"sections.go", "candidates.go"} {
		code, err := os.ReadFile(filepath.Join("..", "internal", "config", file))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"([a-z_0-9]+)":\s+(d\.|status)`).FindAllStringSubmatch(string(code), -1) {
			keys = append(keys, m[1])
		}
	}
	require.Greater(t, len(keys), 80)
	return keys
}

func load(t *testing.T, text string) *config.Config {
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	c, _, err := config.Load(t.Context(), config.Source{Location: path})
	require.NoError(t, err)
	return c
}

// failures.md says of each kind of failure what it does.
func TestFailuresNameEveryKind(t *testing.T) {
	page, err := os.ReadFile("failures.md")
	require.NoError(t, err)
	for k := providers.KindNone + 1; k.String() != ""; k++ {
		require.Contains(t, string(page), "\n| `"+k.String()+"` |")
	}
}
