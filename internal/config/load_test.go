package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
)

// environ makes a lookup out of NAME=value pairs.
func environ(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// load parses a text as the file f.yaml.
func load(text string, pairs ...string) (*Config, []Warning, error) {
	return Source{Lookup: environ(pairs...)}.parse("f.yaml", []byte(text))
}

func mustLoad(t *testing.T, text string, pairs ...string) *Config {
	t.Helper()
	c, _, err := load(text, pairs...)
	require.NoError(t, err)
	return c
}

const minimal = "auth: {anonymous: true}\ncandidates: [{id: a, provider: ollama, model: m}]\n"

func TestEveryDefault(t *testing.T) {
	c, warnings, err := load(minimal)
	require.NoError(t, err)
	require.Empty(t, warnings)
	want := &Config{
		Version: c.Version,
		Source:  "f.yaml",
		Auth:    Auth{Anonymous: true},
		Providers: []Provider{{Settings: providers.Settings{
			Name: "ollama", Dialect: "ollama", BaseURL: "http://localhost:11434",
		}}},
		Breaker: Breaker{
			Enabled: true, Observe: false, Mode: "consecutive", FailureThreshold: 2,
			OpenDuration: 30 * time.Second, MaxOpenDuration: 2 * time.Minute,
			Sample:            Sample{Size: 20, MinCalls: 5, FailureRate: 0.5},
			HalfOpenSuccesses: 1, SlowCall: SlowCall{After: 0, Rate: 1}, AllOpen: "cache",
		},
		Retries: Retries{Max: 0, Last: 1, Base: 200 * time.Millisecond, Cap: 2 * time.Second},
		Budget:  Budget{Total: 180 * time.Second, Reserve: 2 * time.Second},
		Chat:    Chat{FirstTokenTimeout: 60 * time.Second, ThinkingTimeout: 120 * time.Second},
		Candidates: []Candidate{{
			ID: "a", Provider: "ollama", Model: "m", Enabled: true, Priority: 100, Weight: 1, Listed: true,
			Timeouts: Timeouts{
				Connect: 3 * time.Second, Header: 30 * time.Second, FirstToken: 60 * time.Second, Idle: 30 * time.Second, Total: 0,
			},
		}},
		ContentPolicy: "return",
		Limits:        Limits{Body: 10 << 20},
		Cache:         Cache{Mode: "fallback", Accept: "strict", TTL: 168 * time.Hour, MaxEntries: 10000},
		Fallback: Fallback{
			Status: 200, Structured: "error", RetryAfter: 30 * time.Second,
			Messages: map[string]string{
				"zh": "当前 AI 服务繁忙，请稍后再试。",
				"en": "The assistant is busy right now. Please try again shortly.",
			},
		},
	}
	require.Equal(t, want, c)
	require.Regexp(t, "^[0-9a-f]{8}$", c.Version)
}

func TestEveryKey(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	require.NoError(t, err)
	c, warnings, err := load(string(data), "PART=middle", "PRIORITY=7")
	require.NoError(t, err)
	no, zero := false, 0
	want := &Config{
		Version: c.Version,
		Source:  "f.yaml",
		Auth: Auth{Anonymous: true, Keys: []Key{
			{Tenant: "team-a", SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		}},
		Providers: c.Providers,
		Breaker: Breaker{
			Enabled: false, Observe: true, Mode: "hybrid", FailureThreshold: 3, OpenDuration: time.Minute,
			MaxOpenDuration: 5 * time.Minute, Sample: Sample{Size: 40, MinCalls: 10, FailureRate: 0.25},
			HalfOpenSuccesses: 2, SlowCall: SlowCall{After: 8 * time.Second, Rate: 0.5}, AllOpen: "earliest",
		},
		Retries: Retries{Max: 1, Last: 2, Base: 100 * time.Millisecond, Cap: time.Second},
		Budget:  Budget{Total: time.Minute, Reserve: time.Second},
		Chat: Chat{
			DefaultModel: "b", DeepThinkingModel: "a", FirstTokenTimeout: 10 * time.Second, ThinkingTimeout: 20 * time.Second,
		},
		Candidates: []Candidate{{
			ID: "a", Provider: "own", Model: "big", BaseURL: "http://10.0.0.7:8000/v1", Enabled: true, Priority: 7,
			SupportsThinking: true, ContextWindow: 32768, Features: &Features{Tools: true, JSON: true},
			Tenants: []string{"team-a"}, Price: &Price{Input: 1, CachedInput: 0.1, Output: 4},
			Timeouts: Timeouts{Connect: time.Second, FirstToken: 2 * time.Second, Idle: 4 * time.Second, Total: 5 * time.Second},
			Options:  providers.Options{NoStream: true, Allow: []string{"service_tier", "priority"}, ImageURLs: true},
		}, {
			ID: "b", Provider: "dashscope", Model: "qwen-plus", Priority: 100, Weight: 1, Listed: true,
			Timeouts: Timeouts{
				Connect: 3 * time.Second, Header: 30 * time.Second, FirstToken: 10 * time.Second, Idle: 30 * time.Second,
			},
			Options: providers.Options{Cumulative: true},
		}},
		Chains: []Chain{{Name: "careful", Primary: "a", Fallbacks: []Entry{
			{Model: "b", OnTimeout: &no, OnStatus: []int{}, MaxRetries: &zero},
		}}},
		Deny:          []Deny{{Candidate: "b", Reason: "slow today", Until: time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)}},
		Caps:          []Cap{{Tenant: "team-a", USDPerDay: 2.5}},
		ContentPolicy: "next",
		Limits:        Limits{Body: 5_000_000},
		Cache: Cache{
			Mode: "off", Accept: "similar", TTL: time.Hour, MaxEntries: 5, Shared: true, Corpus: "2026-01",
		},
		Fallback: Fallback{
			Status: 503, Structured: "message", RetryAfter: 5 * time.Second, Messages: map[string]string{"zh": "忙", "en": "busy"},
		},
	}
	require.Equal(t, want, c)
	require.Equal(t, providers.Settings{
		Name: "own", Dialect: "openai", BaseURL: "https://models.example.com/v1", APIKey: "sk-middle-end",
		Headers: map[string]string{"X-Team": "a", "X-Number": "5"}, Thinking: "chat_template",
	}, c.provider("own").Settings)
	require.Len(t, warnings, 2)
	require.Contains(t, warnings[0].String(), "f.yaml:26: chat.default_model: b takes no calls")
	require.Contains(t, warnings[1].String(), "f.yaml:43: provider dashscope has no api_key")
}

func TestExampleLoads(t *testing.T) {
	path := filepath.Join("testdata", "example.yaml")
	c, warnings, err := Load(t.Context(), Source{Location: path, Lookup: environ("SILICONFLOW_API_KEY=sk-1")})
	require.NoError(t, err)
	require.Equal(t, path, c.Source)
	require.False(t, c.Embedded)
	require.False(t, c.provider("siliconflow").NoClient)
	require.True(t, c.provider("dashscope").NoClient)
	require.Len(t, warnings, 1)
	require.Equal(t, path+":4: providers.dashscope.api_key: DASHSCOPE_API_KEY is not set, so the candidates of provider dashscope are skipped",
		warnings[0].String())
	require.Equal(t, "siliconflow-qwen", c.Chains[0].Name)
}

func TestEmbeddedLoads(t *testing.T) {
	c, warnings, err := Load(t.Context(), Source{Lookup: environ()})
	require.NoError(t, err)
	require.True(t, c.Embedded)
	require.True(t, c.Auth.Anonymous)
	require.Len(t, warnings, 4, "one for each provider without a key, nothing else: %v", warnings)
	scripted := 0
	for _, x := range c.Candidates {
		p := c.provider(x.Provider)
		require.Equal(t, p.Dialect != "script", p.NoClient, x.ID)
		if p.Dialect == "script" {
			require.GreaterOrEqual(t, x.Priority, 1000, "scripted candidates come last")
			scripted++
		}
	}
	require.Equal(t, 2, scripted)
}

func TestBuiltInRows(t *testing.T) {
	c := mustLoad(t, `
providers:
  dashscope: {dialect: openai}
  vllm-two: {dialect: openai, base_url: "http://10.0.0.5:8000/v1"}
candidates:
  - {id: a, provider: dashscope, model: m}
  - {id: b, provider: vllm-two, model: m}
  - {id: c, provider: deepseek, model: m}
`)
	require.Len(t, c.Providers, 3)
	require.Contains(t, c.provider("dashscope").BaseURL, "compatible-mode")
	require.Equal(t, "http://10.0.0.5:8000/v1", c.provider("vllm-two").BaseURL)
	require.Equal(t, "openai", c.provider("deepseek").Dialect)
}

func TestDefaultsThatFollow(t *testing.T) {
	c := mustLoad(t, minimal+"chat: {first_token_timeout: 5s}\nbreaker: {open_duration: 10m, sample: {size: 3}}\nretries: {base: 5s}\n")
	require.Equal(t, 5*time.Second, c.Candidates[0].Timeouts.FirstToken)
	require.Equal(t, 10*time.Minute, c.Breaker.MaxOpenDuration)
	require.Equal(t, 3, c.Breaker.Sample.MinCalls)
	require.Equal(t, 5*time.Second, c.Retries.Cap)
	c = mustLoad(t, "candidates: [{id: a, provider: ollama, model: m, price: {input: 2, output: 3}}]")
	require.Equal(t, &Price{Input: 2, CachedInput: 2, Output: 3}, c.Candidates[0].Price)
}

func TestTriggersKeepWhatIsAbsent(t *testing.T) {
	c := mustLoad(t, `
candidates: [{id: a, provider: ollama, model: m}, {id: b, provider: ollama, model: n}, {id: c, provider: ollama, model: o}]
chains:
  - primary: a
    fallbacks: [{model: b}, {model: c, on_timeout: true, on_status: [500]}]
  - primary: b
    fallbacks: []
  - primary: c
`)
	require.Nil(t, c.Chains[0].Fallbacks[0].OnTimeout)
	require.Nil(t, c.Chains[0].Fallbacks[0].OnStatus)
	require.Nil(t, c.Chains[0].Fallbacks[0].MaxRetries)
	require.True(t, *c.Chains[0].Fallbacks[1].OnTimeout)
	require.Equal(t, []int{500}, c.Chains[0].Fallbacks[1].OnStatus)
	require.Empty(t, c.Chains[1].Fallbacks)
	require.Empty(t, c.Chains[2].Fallbacks)
}

func TestSeveralChainsOfOnePrimary(t *testing.T) {
	c := mustLoad(t, `
candidates: [{id: a, provider: ollama, model: m}, {id: b, provider: ollama, model: n}]
chains:
  - {primary: a, fallbacks: [{model: b}]}
  - {name: alone, primary: a, fallbacks: []}
`)
	require.Equal(t, []string{"a", "alone"}, []string{c.Chains[0].Name, c.Chains[1].Name})
}

func TestAnchorsAndMerges(t *testing.T) {
	c := mustLoad(t, `
candidates:
  - &base {id: a, provider: ollama, model: m, weight: 3, timeouts: &clocks {connect: 1s}}
  - {<<: *base, id: b, timeouts: *clocks}
  - {<<: [{weight: 9}, *base], id: c}
`)
	require.Equal(t, 3, c.Candidates[1].Weight)
	require.Equal(t, time.Second, c.Candidates[1].Timeouts.Connect)
	require.Equal(t, "m", c.Candidates[2].Model)
	require.Equal(t, 9, c.Candidates[2].Weight)
}

func TestEmptySectionsAreDefaults(t *testing.T) {
	c := mustLoad(t, minimal+"chat:\nbreaker:\nproviders:\nchains:\nrules: []\ncaps:\ndeny:\ncache: {}\n")
	require.Equal(t, mustLoad(t, minimal).Breaker, c.Breaker)
}

func TestVersionFollowsTheFile(t *testing.T) {
	file := "providers: {openai: {api_key: \"${KEY}\"}}\ncandidates: [{id: a, provider: openai, model: m}]"
	one, two := mustLoad(t, file, "KEY=sk-1"), mustLoad(t, file, "KEY=sk-2")
	require.Equal(t, one.Version, two.Version, "what a reference stands for isn't in it")
	require.NotEqual(t, one.Version, mustLoad(t, file+"\n# changed", "KEY=sk-1").Version)
}

func TestWarnings(t *testing.T) {
	two := "candidates: [{id: a, provider: ollama, model: m, timeouts: {first_token: 90s}}, {id: b, provider: ollama, model: n, timeouts: {first_token: 89s}}]\n"
	for _, tt := range []struct{ name, text, want string }{
		{"nobody may call", "candidates: [{id: a, provider: ollama, model: m}]", "f.yaml: nobody may call"},
		{"no key at all", "auth: {anonymous: true}\ncandidates: [{id: a, provider: openai, model: m}, {id: b, provider: openai, model: n}]", "f.yaml:2: provider openai has no api_key"},
		{"Azure at no address", "auth: {anonymous: true}\ncandidates: [{id: a, provider: azure, model: m}]", "f.yaml:2: provider azure has no base_url"},
		{"key unset", minimal + "providers: {openai: {api_key: \"${NOPE}\"}}", "f.yaml:3: providers.openai.api_key: NOPE is not set"},
		{"key set but empty", minimal + "providers: {openai: {api_key: \"${EMPTY}\"}}", "f.yaml:3: providers.openai.api_key: EMPTY is not set"},
		{
			"chain longer than the budget", "auth: {anonymous: true}\n" + two + "chains:\n  - {primary: a, fallbacks: [{model: b}]}\n",
			"f.yaml:4: chain a: its first-token clocks add up to 2m59s, the budget leaves models 2m58s",
		},
		{"default order longer than the budget", two, "f.yaml:1: the default order: its first-token clocks add up to 2m59s"},
		{"default model denied", minimal + "chat: {default_model: a}\ndeny: [{candidate: a}]", "f.yaml:3: chat.default_model: a takes no calls"},
		{"rule to a denied candidate", both + "rules: [{name: r, when: stream, use: [a, b]}]\ndeny: [{candidate: b}]", "f.yaml:2: rules[0].use[1]: b takes no calls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, warnings, err := load(tt.text, "EMPTY=")
			require.NoError(t, err)
			var lines []string
			for _, w := range warnings {
				lines = append(lines, w.String())
			}
			require.Contains(t, strings.Join(lines, "\n"), tt.want)
		})
	}
}

func TestKeysFromElsewhereAreKeys(t *testing.T) {
	_, warnings, err := Source{Lookup: environ(), MoreKeys: true}.parse("f.yaml", []byte("candidates: [{id: a, provider: ollama, model: m}]"))
	require.NoError(t, err)
	require.Empty(t, warnings)
}

func TestProvidersThatNeedNoKey(t *testing.T) {
	for name, provider := range map[string]string{
		"on this machine":   "ollama: {}",
		"Bedrock":           "bedrock: {region: eu-west-1}",
		"key":               "openai: {api_key: k}",
		"key in a header":   "openai: {headers: {Authorization: Bearer k}}",
		"another address":   "openai: {base_url: \"https://proxy.example/v1\"}",
		"a name of our own": "own: {dialect: openai, base_url: \"https://own.example/v1\"}",
		"Azure":             "azure: {base_url: \"https://own.openai.azure.com\"}",
	} {
		t.Run(name, func(t *testing.T) {
			id, _, _ := strings.Cut(provider, ":")
			_, warnings, err := load("auth: {anonymous: true}\nproviders: {" + provider + "}\ncandidates: [{id: a, provider: " + id + ", model: m}]")
			require.NoError(t, err)
			require.Empty(t, warnings)
		})
	}
}

func TestBudgetThatSuffices(t *testing.T) {
	for name, more := range map[string]string{
		"one":                 "",
		"another, drained":    "  - {id: b, provider: ollama, model: n, weight: 0}\n",
		"another, not listed": "  - {id: b, provider: ollama, model: n, listed: false}\n",
		"another, disabled":   "  - {id: b, provider: ollama, model: n, enabled: false}\n",
		"another, denied":     "  - {id: b, provider: ollama, model: n}\ndeny: [{candidate: b}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := load("auth: {anonymous: true}\nbudget: {total: 10s}\ncandidates:\n" +
				"  - {id: a, provider: ollama, model: m, timeouts: {first_token: 8s}}\n" + more)
			require.NoError(t, err)
			require.Empty(t, warnings)
		})
	}
}
