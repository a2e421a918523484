package providers

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRows(t *testing.T) {
	for name := range rows() {
		row, ok := Row(name)
		require.True(t, ok)
		require.Equal(t, name, row.Name)
		require.Contains(t, Dialects(), row.Dialect, name)
		p, err := New(Settings{Name: name})
		require.NoError(t, err, name)
		require.NotNil(t, p, name)
		if row.BaseURL == "" {
			require.Contains(t, []string{"azure", "bedrock", "script"}, row.Dialect, "%s has no base URL", name)
			continue
		}
		u, err := url.Parse(row.BaseURL)
		require.NoError(t, err)
		require.NotEmpty(t, u.Host, name)
		require.False(t, strings.HasSuffix(row.BaseURL, "/"), name)
		require.True(t, u.Scheme == "https" || private(row.BaseURL), "%s sends its key in the clear", name)
	}
	_, ok := Row("nobody")
	require.False(t, ok)
}

func TestDialects(t *testing.T) {
	for _, d := range []string{"anthropic", "azure", "dashscope", "gemini", "ollama", "openai", "script"} {
		require.Contains(t, Dialects(), d)
	}
	require.IsIncreasing(t, Dialects())
}

func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in, want Settings
	}{
		{"a row", Settings{Name: "siliconflow", APIKey: "k"}, Settings{Name: "siliconflow", APIKey: "k", Dialect: "openai", BaseURL: "https://api.siliconflow.cn/v1", Thinking: ThinkingByEnable}},
		{"what is set wins", Settings{Name: "siliconflow", BaseURL: "https://x", Thinking: ThinkingByNone}, Settings{Name: "siliconflow", Dialect: "openai", BaseURL: "https://x", Thinking: ThinkingByNone}},
		{"a name of one's own", Settings{Name: "mine", Dialect: "openai", BaseURL: "http://10.0.0.5/v1"}, Settings{Name: "mine", Dialect: "openai", BaseURL: "http://10.0.0.5/v1", Thinking: ThinkingByEffort}},
		{"DashScope's compatible mode", Settings{Name: "dashscope", Dialect: "openai"}, Settings{Name: "dashscope", Dialect: "openai", BaseURL: "https://dashscope.aliyuncs.com/compatible-mode/v1", Thinking: ThinkingByEnable}},
		{"Ollama's /v1", Settings{Name: "ollama", Dialect: "openai"}, Settings{Name: "ollama", Dialect: "openai", BaseURL: "http://localhost:11434/v1", Thinking: ThinkingByEffort}},
		{"a row in another dialect", Settings{Name: "deepseek", Dialect: "ollama"}, Settings{Name: "deepseek", Dialect: "ollama", BaseURL: "http://localhost:11434"}},
		{"Azure", Settings{Name: "azure", BaseURL: "https://r"}, Settings{Name: "azure", Dialect: "azure", BaseURL: "https://r", APIVersion: "2024-10-21", Thinking: ThinkingByEffort}},
		{"nothing is known", Settings{Name: "mine"}, Settings{Name: "mine"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Complete(tt.in)
			if tt.want.Dialect == "ollama" { // its way of thinking is its own
				got.Thinking = ""
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestNewRefusesAnUnknownDialect(t *testing.T) {
	_, err := New(Settings{Name: "mine", Dialect: "cobol", APIKey: "secret"})
	require.ErrorContains(t, err, `"cobol"`)
	require.NotContains(t, err.Error(), "secret")
	_, err = New(Settings{Name: "mine"})
	require.Error(t, err)
}
