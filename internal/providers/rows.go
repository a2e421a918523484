package providers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Ways of asking for thinking: the values of Settings.Thinking.
const (
	ThinkingByEffort   = "reasoning_effort" // OpenAI's field
	ThinkingByEnable   = "enable_thinking"  // Qwen's field, also SiliconFlow's
	ThinkingByTemplate = "chat_template"    // chat_template_kwargs.enable_thinking: vLLM, SGLang, llama.cpp
	ThinkingByType     = "thinking"         // thinking.type enabled or disabled: DeepSeek, Zhipu, Moonshot, Volcengine
	ThinkingByNone     = "none"             // not asked for: the model thinks or doesn't
)

// dialect is one way to speak to a provider.
type dialect struct {
	defaults Settings // of a name that has no row
	make     func(Settings) Provider
}

// dialects is the table of what New can make.
func dialects() map[string]dialect {
	return map[string]dialect{
		"openai":    {Settings{BaseURL: "https://api.openai.com/v1", Thinking: ThinkingByEffort}, newOpenAI},
		"azure":     {Settings{APIVersion: "2024-10-21", Thinking: ThinkingByEffort}, newAzure},
		"dashscope": {Settings{BaseURL: "https://dashscope.aliyuncs.com", Thinking: ThinkingByEnable}, newDashScope},
		"ollama":    {Settings{BaseURL: "http://localhost:11434"}, newOllama},
		"anthropic": {Settings{BaseURL: "https://api.anthropic.com"}, newAnthropic},
		"bedrock":   {Settings{}, newBedrock}, // its base URL is that of the region
		"gemini":    {Settings{BaseURL: "https://generativelanguage.googleapis.com"}, newGemini},
		"script":    {Settings{}, func(s Settings) Provider { return NewScript(s) }},
	}
}

// rows are the providers known by name. An OpenAI-compatible provider is a row here, nothing else.
func rows() map[string]Settings {
	openai := func(base, thinking string) Settings {
		return Settings{Dialect: "openai", BaseURL: base, Thinking: thinking}
	}
	return map[string]Settings{
		"openai":      openai("https://api.openai.com/v1", ThinkingByEffort),
		"siliconflow": openai("https://api.siliconflow.cn/v1", ThinkingByEnable),
		"deepseek":    openai("https://api.deepseek.com", ThinkingByType),
		"vllm":        openai("http://localhost:8000/v1", ThinkingByTemplate),
		"llama.cpp":   openai("http://localhost:8080/v1", ThinkingByTemplate),
		"moonshot":    openai("https://api.moonshot.cn/v1", ThinkingByType),
		"zhipu":       openai("https://open.bigmodel.cn/api/paas/v4", ThinkingByType),
		"zai":         openai("https://api.z.ai/api/paas/v4", ThinkingByType),
		"volcengine":  openai("https://ark.cn-beijing.volces.com/api/v3", ThinkingByType),
		"mistral":     openai("https://api.mistral.ai/v1", ThinkingByNone),
		"groq":        openai("https://api.groq.com/openai/v1", ThinkingByEffort),
		"xai":         openai("https://api.x.ai/v1", ThinkingByEffort),
		"openrouter":  openai("https://openrouter.ai/api/v1", ThinkingByEffort),
		"azure":       {Dialect: "azure"},
		"dashscope":   {Dialect: "dashscope"},
		"ollama":      {Dialect: "ollama"},
		"anthropic":   {Dialect: "anthropic"},
		"bedrock":     {Dialect: "bedrock"},
		"gemini":      {Dialect: "gemini"},
		"script":      {Dialect: "script"},
	}
}

// compatible are the OpenAI-compatible addresses of providers whose row has another dialect.
func compatible() map[string]Settings {
	return map[string]Settings{
		"dashscope": {BaseURL: "https://dashscope.aliyuncs.com/compatible-mode/v1", Thinking: ThinkingByEnable},
		"ollama":    {BaseURL: "http://localhost:11434/v1", Thinking: ThinkingByEffort},
	}
}

// Row is the built-in settings of a provider's name, those of its dialect included; false if there are none.
func Row(name string) (Settings, bool) {
	row, ok := rows()[name]
	if !ok {
		return Settings{}, false
	}
	row.Name = name
	return Complete(row), true
}

// Dialects lists the dialects that New knows, sorted.
func Dialects() []string { return slices.Sorted(maps.Keys(dialects())) }

// Complete fills in what settings leave empty: from the built-in row of Name, as far as the dialect is the same,
// then from the dialect. A name with neither row nor dialect stays as it is.
func Complete(s Settings) Settings {
	row := rows()[s.Name]
	s.Dialect = cmp.Or(s.Dialect, row.Dialect)
	if s.Dialect != row.Dialect {
		row = Settings{}
		if s.Dialect == "openai" {
			row = compatible()[s.Name]
		}
	}
	defaults := dialects()[s.Dialect].defaults
	s.BaseURL = cmp.Or(s.BaseURL, row.BaseURL, defaults.BaseURL)
	s.APIVersion = cmp.Or(s.APIVersion, row.APIVersion, defaults.APIVersion)
	s.Thinking = cmp.Or(s.Thinking, row.Thinking, defaults.Thinking)
	return s
}

// New makes the provider that settings describe. What is empty comes from the built-in row of Name, then from the
// dialect.
func New(s Settings) (Provider, error) {
	s = Complete(s)
	d, ok := dialects()[s.Dialect]
	if !ok {
		return nil, fmt.Errorf("unknown dialect %q of provider %q", s.Dialect, s.Name)
	}
	return d.make(s), nil
}
