package providers

import "fmt"

// Ways of asking for thinking: the values of Settings.Thinking.
const (
	ThinkingByEffort   = "reasoning_effort" // OpenAI's field
	ThinkingByEnable   = "enable_thinking"  // Qwen's field
	ThinkingByTemplate = "chat_template"    // chat_template_kwargs.enable_thinking, for vLLM and SGLang
	ThinkingByNone     = "none"             // not asked for: the model thinks or doesn't
)

// Row is the built-in settings of a provider's name; false if there are none.
func Row(name string) (Settings, bool) { return Settings{}, false }

// Dialects lists the dialects that New knows.
func Dialects() []string { return []string{"openai", "dashscope", "ollama", "script"} }

// New makes the provider that settings describe. What is empty comes from the built-in row of Name, then from the
// dialect.
func New(s Settings) (Provider, error) {
	switch s.Dialect {
	}
	return nil, fmt.Errorf("unknown dialect %q", s.Dialect)
}
