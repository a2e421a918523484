package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
)

const (
	one  = "candidates: [{id: a, provider: ollama, model: m}]\n"
	both = "candidates: [{id: a, provider: ollama, model: m}, {id: b, provider: ollama, model: n}]\n"
)

// broken are configurations with what must be said of them, all of it.
func broken() []struct{ name, text, want string } {
	return []struct{ name, text, want string }{
		// the file
		{"empty", "", `f.yaml:1: the configuration is empty`},
		{"only comments", "# nothing\n", `f.yaml:1: the configuration is empty`},
		{"null", "~\n", `f.yaml:1: the configuration is empty`},
		{"a list", "- a\n", `f.yaml:1: the configuration is a mapping of keys to values, not a list`},
		{"two documents", one + "---\n" + one, `f.yaml:2: a second document begins here; there may be only one`},
		{"no YAML", "candidates: [{\n  id: a\n", `f.yaml:2: did not find expected ',' or '}'`},
		{"tab", "chat:\n\tdefault_model: a\n", `f.yaml:2: found character that cannot start any token`},
		{"unknown anchor", "chat: *nowhere\n", `f.yaml:1: unknown anchor 'nowhere' referenced`},
		{"binary", "\x00\x01\x02", `f.yaml:1: control characters are not allowed`},

		// keys
		{"unknown section", one + "candidate: []\n", `f.yaml:2: unknown key "candidate" (did you mean candidates?)`},
		{"unknown key", one + "chat:\n  frist_token_timeout: 3s\n", `f.yaml:3: unknown key "frist_token_timeout" in chat (did you mean first_token_timeout?)`},
		{"unknown key, nothing like it", one + "chat: {colour: red}\n", `f.yaml:2: unknown key "colour" in chat`},
		{"unknown key of a candidate", "candidates:\n  - id: a\n    provider: ollama\n    model: m\n    wieght: 3\n", `f.yaml:5: unknown key "wieght" in candidates[0] (did you mean weight?)`},
		{"unknown key of a timeout", "candidates:\n  - {id: a, provider: ollama, model: m, timeouts: {read: 3s}}\n", `f.yaml:2: unknown key "read" in candidates[0].timeouts`},
		{"duplicate key", one + "chat: {}\nchat: {}\n", `f.yaml:3: key "chat" is given twice (first on line 2)`},
		{"duplicate key of a candidate", "candidates:\n  - id: a\n    provider: ollama\n    model: m\n    id: b\n", `f.yaml:5: key "id" in candidates[0] is given twice (first on line 2)`},
		{"a key that is a list", one + "chat:\n  [a]: b\n", `f.yaml:3: chat: a key must be plain text`},

		// types
		{"text for a number", "candidates:\n  - id: a\n    provider: ollama\n    model: m\n    priority: first\n", `f.yaml:5: candidates[0].priority: "first" is no whole number`},
		{"quoted number", "candidates:\n  - {id: a, provider: ollama, model: m, priority: \"1\"}\n", `f.yaml:2: candidates[0].priority: "1" is no whole number`},
		{"fraction for a whole number", one + "retries: {max: 1.5}\n", `f.yaml:2: retries.max: "1.5" is no whole number`},
		{"number for text", "candidates: [{id: a, provider: ollama, model: 4}]\n", `f.yaml:1: candidates[0].model wants text, not a number (put it in quotes)`},
		{"text for yes or no", one + "auth: {anonymous: yes}\n", `f.yaml:2: auth.anonymous: "yes" is neither true nor false`},
		{"nothing for a value", one + "budget: {total: }\n", `f.yaml:2: budget.total wants a value, not nothing`},
		{"list for a mapping", one + "chat: [a]\n", `f.yaml:2: chat wants a mapping of keys to values, not a list`},
		{"mapping for a list", "candidates: {id: a}\n", `f.yaml:1: candidates wants a list, not a mapping` + "\n" + `f.yaml:1: there is no candidate`},
		{"text for a mapping", one + "providers: {openai: sk-CANARY}\n", `f.yaml:2: providers.openai wants a mapping of keys to values, not text`},
		{"list for a key", one + "providers: {openai: {api_key: [sk-CANARY]}}\n", `f.yaml:2: providers.openai.api_key wants a value, not a list`},

		// durations, sizes, numbers
		{"no duration", one + "breaker:\n  open_duration: fast\n", `f.yaml:3: breaker.open_duration: "fast" is no duration (such as 500ms, 30s, 2m)`},
		{"duration without unit", one + "budget: {total: 30}\n", `f.yaml:2: budget.total: "30" is no duration (such as 500ms, 30s, 2m)`},
		{"negative duration", one + "budget: {reserve: -1s}\n", `f.yaml:2: budget.reserve: -1s can't be negative`},
		{"zero idle", "candidates: [{id: a, provider: ollama, model: m, timeouts: {idle: 0s}}]\n", `f.yaml:1: candidates[0].timeouts.idle: 0s must be more than 0`},
		{"no size", one + "limits: {body: big}\n", `f.yaml:2: limits.body: "big" is no size (such as 512KiB, 10MiB, 5MB)`},
		{"size without unit", one + "limits: {body: 1000}\n", `f.yaml:2: limits.body: "1000" is no size (such as 512KiB, 10MiB, 5MB)`},
		{"huge size", one + "limits: {body: 9999999GiB}\n", `f.yaml:2: limits.body: "9999999GiB" is no size (such as 512KiB, 10MiB, 5MB)`},
		{"negative weight", "candidates:\n  - id: a\n    provider: ollama\n    model: m\n    weight: -1\n", `f.yaml:5: candidates[0].weight: -1 is not between 0 and 1000000`},
		{"negative price", "candidates: [{id: a, provider: ollama, model: m, price: {input: -1, output: 1}}]\n", `f.yaml:1: candidates[0].price.input: -1 is out of range`},
		{"infinite price", "candidates: [{id: a, provider: ollama, model: m, price: {input: .inf, output: 1}}]\n", `f.yaml:1: candidates[0].price.input: ".inf" is no number`},
		{"rate above one", one + "breaker: {sample: {failure_rate: 1.5}}\n", `f.yaml:2: breaker.sample.failure_rate: 1.5 is out of range`},
		{"rate of nothing", one + "breaker: {sample: {failure_rate: 0}}\n", `f.yaml:2: breaker.sample.failure_rate: 0 is out of range`},
		{"many retries", one + "retries: {max: 1000}\n", `f.yaml:2: retries.max: 1000 is not between 0 and 10`},
		{"status of a message", one + "fallback: {status: 404}\n", `f.yaml:2: fallback.status is 200 or 503`},
		{"no time", one + "deny: [{candidate: a, until: tomorrow}]\n", `f.yaml:2: deny[0].until: "tomorrow" is no time (such as 2026-01-31T18:00:00Z)`},

		// words
		{"unknown mode", one + "breaker: {mode: fast}\n", `f.yaml:2: breaker.mode: "fast" is none of consecutive, window, hybrid`},
		{"unknown cache mode", one + "cache: {mode: on}\n", `f.yaml:2: cache.mode: "on" is none of off, fallback, front`},
		{"unknown policy", one + "content_policy: ignore\n", `f.yaml:2: content_policy: "ignore" is none of return, next`},
		{"unknown feature", "candidates: [{id: a, provider: ollama, model: m, features: [sight]}]\n", `f.yaml:1: candidates[0].features[0]: "sight" is none of tools, vision, json`},
		{"unknown language", one + "fallback: {messages: {fr: non}}\n", `f.yaml:2: unknown key "fr" in fallback.messages`},
		{"empty message", one + "fallback: {messages: {en: \" \"}}\n", `f.yaml:2: fallback.messages.en is empty`},

		// ids
		{"no id at all", "candidates: [{id: \"a b\", provider: ollama, model: m}]\n", `f.yaml:1: candidates[0].id: "a b" is no id: 1 to 64 of A-Z a-z 0-9 . _ -`},
		{"long id", "candidates: [{id: " + strings.Repeat("x", 65) + ", provider: ollama, model: m}]\n", `f.yaml:1: candidates[0].id: "` + strings.Repeat("x", 60) + `…" is no id: 1 to 64 of A-Z a-z 0-9 . _ -`},
		{"id auto", "candidates: [{id: auto, provider: ollama, model: m}]\n", `f.yaml:1: candidates[0].id: auto means that the rules choose`},
		{"id twice", "candidates:\n  - {id: a, provider: ollama, model: m}\n  - {id: a, provider: ollama, model: n}\n", `f.yaml:3: candidates[1].id: "a" is given twice (first on line 2)`},
		{"chain twice", both + "chains:\n  - {primary: a}\n  - {primary: a}\n", `f.yaml:4: chains[1]: a chain of this name is there already (on line 3)`},
		{"chain named like another candidate", both + "chains: [{name: b, primary: a}]\n", `f.yaml:2: chains[0].name: "b" is a candidate's id, but not of this chain's primary`},
		{"chain auto", one + "chains: [{name: auto, primary: a}]\n", `f.yaml:2: chains[0].name: auto means that the rules choose`},
		{"denied twice", one + "deny: [{candidate: a}, {candidate: a}]\n", `f.yaml:2: deny[1].candidate: "a" is denied twice`},
		{"tenant twice", "candidates: [{id: a, provider: ollama, model: m, tenants: [x, x]}]\n", `f.yaml:1: candidates[0].tenants: "x" is listed twice`},

		// what is missing
		{"no candidate", "chat: {}\n", `f.yaml:1: there is no candidate`},
		{"candidates without one", "chat: {}\ncandidates: []\n", `f.yaml:2: there is no candidate`},
		{"all disabled", "candidates: [{id: a, provider: ollama, model: m, enabled: false}]\n", `f.yaml:1: candidates: every candidate is disabled`},
		{"candidate without anything", "candidates:\n  -\n", "f.yaml:2: candidates[0] has no id\nf.yaml:2: candidates[0] has no provider\nf.yaml:2: candidates[0] has no model"},
		{"chain without primary", one + "chains: [{fallbacks: []}]\n", `f.yaml:2: chains[0] has no primary`},
		{"entry without model", one + "chains:\n  - primary: a\n    fallbacks:\n      - {on_timeout: true}\n", `f.yaml:5: chains[0].fallbacks[0] has no model`},
		{"tenants of nobody", "candidates: [{id: a, provider: ollama, model: m, tenants: []}]\n", `f.yaml:1: candidates[0].tenants is empty`},
		{"half a price", "candidates: [{id: a, provider: ollama, model: m, price: {input: 1}}]\n", `f.yaml:1: candidates[0].price has no output`},
		{"key without tenant", one + "auth: {keys: [{sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}]}\n", `f.yaml:2: auth.keys[0] has no tenant`},

		// references to nowhere
		{"unknown provider", "candidates:\n  - id: a\n    provider: nowhere\n    model: m\n", `f.yaml:3: candidates[0].provider: there is no provider "nowhere", neither built in nor under providers`},
		{"unknown default", one + "chat:\n  default_model: ghost\n", `f.yaml:3: chat.default_model: there is no candidate "ghost"`},
		{"unknown thinking model", one + "chat:\n  deep_thinking_model: ghost\n", `f.yaml:3: chat.deep_thinking_model: there is no candidate "ghost"`},
		{"unknown primary", one + "chains:\n  - primary: ghost\n    fallbacks: []\n", `f.yaml:3: chains[0].primary: there is no candidate "ghost"`},
		{"unknown fallback", one + "chains:\n  - primary: a\n    fallbacks:\n      - {model: ghost}\n", `f.yaml:5: chains[0].fallbacks[0].model: there is no candidate "ghost"`},
		{"unknown denied", one + "deny: [{candidate: ghost}]\n", `f.yaml:2: deny[0].candidate: there is no candidate "ghost"`},

		// contradictions
		{"thinking model that doesn't think", one + "chat: {deep_thinking_model: a}\n", `f.yaml:2: chat.deep_thinking_model: "a" has not supports_thinking: true`},
		{"primary after itself", one + "chains: [{primary: a, fallbacks: [{model: a}]}]\n", `f.yaml:2: chains[0].fallbacks[0].model: "a" is in this chain already`},
		{"fallback twice", both + "chains: [{primary: a, fallbacks: [{model: b}, {model: b}]}]\n", `f.yaml:2: chains[0].fallbacks[1].model: "b" is in this chain already`},
		{"statuses that are none", both + "chains: [{primary: a, fallbacks: [{model: b, on_status: [9999]}]}]\n", `f.yaml:2: chains[0].fallbacks[0].on_status[0]: 9999 is not between 400 and 599`},
		{"first token after the end", "candidates: [{id: a, provider: ollama, model: m, timeouts: {first_token: 9s, total: 5s}}]\n", `f.yaml:1: candidates[0].timeouts.first_token: is longer than total`},
		{"open longer than longest", one + "breaker: {open_duration: 3m, max_open_duration: 2m}\n", `f.yaml:2: breaker.max_open_duration: is shorter than open_duration`},
		{"more calls than the sample", one + "breaker: {sample: {size: 5, min_calls: 6}}\n", `f.yaml:2: breaker.sample.min_calls: is more than size`},
		{"cap below base", one + "retries: {base: 2s, cap: 1s}\n", `f.yaml:2: retries.cap: is shorter than base`},
		{"reserve of everything", one + "budget: {total: 2s, reserve: 2s}\n", `f.yaml:2: budget.reserve: leaves nothing of total`},
		{"region of OpenAI", one + "providers: {openai: {region: eu-west-1}}\n", `f.yaml:2: providers.openai.region: is for the dialect bedrock only`},
		{"version of OpenAI", one + "providers: {openai: {api_version: 2024-10-21}}\n", `f.yaml:2: providers.openai.api_version: is for the dialect azure only`},
		{"repeated text of OpenAI", "candidates: [{id: a, provider: openai, model: m, options: {incremental_output: false}}]\n", `f.yaml:1: candidates[0].options.incremental_output: is for the dialect dashscope only`},
		{"one key for two", one + "auth:\n  keys:\n    - {tenant: a, sha256: " + strings.Repeat("ab", 32) + "}\n    - {tenant: b, sha256: " + strings.Repeat("AB", 32) + "}\n", `f.yaml:5: auth.keys[1]: the same key is there already`},

		// providers
		{"unknown dialect", one + "providers:\n  own:\n    dialect: klingon\n", `f.yaml:4: providers.own.dialect: "klingon" is none of anthropic, azure, bedrock, dashscope, gemini, ollama, openai, script`},
		{"no dialect", one + "providers:\n  own: {base_url: \"http://10.0.0.1/v1\"}\n", `f.yaml:3: providers.own: is no built-in provider, so it needs a dialect`},
		{"bad name", one + "providers: {\"a b\": {dialect: openai}}\n", `f.yaml:2: providers."a b": a provider's name is 1 to 64 of A-Z a-z 0-9 . _ -`},
		{"no URL", one + "providers: {openai: {base_url: CANARY}}\n", `f.yaml:2: providers.openai.base_url is no http or https URL`},
		{"another scheme", one + "providers: {openai: {base_url: \"ftp://u:CANARY@x\"}}\n", `f.yaml:2: providers.openai.base_url is no http or https URL`},
		{"no URL of a candidate", "candidates: [{id: a, provider: ollama, model: m, base_url: here}]\n", `f.yaml:1: candidates[0].base_url is no http or https URL`},
		{"key with a line break", one + "providers: {openai: {api_key: \"CANARY\\nX: y\"}}\n", `f.yaml:2: providers.openai.api_key has a space or a character that no key has`},
		{"header with a line break", one + "providers: {openai: {headers: {X-A: \"CANARY\\r\\nX: y\"}}}\n", `f.yaml:2: providers.openai.headers.X-A has a line break or another control character`},
		{"bad header", one + "providers: {openai: {headers: {\"X A\": y}}}\n", `f.yaml:2: providers.openai.headers."X A": no name of a header`},
		{"unknown way of thinking", one + "providers: {openai: {thinking: hard}}\n", `f.yaml:2: providers.openai.thinking: "hard" is none of reasoning_effort, enable_thinking, chat_template, thinking, none`},
		{"no script", "candidates: [{id: a, provider: script, model: dance}]\n", `f.yaml:1: candidates[0].model: script: unknown setting "dance"; a script does one of echo, text=, hang, cut, empty, status=`},
		{"key in clear", one + "auth: {keys: [{tenant: a, sha256: hk-CANARY}]}\n", `f.yaml:2: auth.keys[0].sha256 wants 64 hex digits: the SHA-256 of the key, never the key itself`},

		// references in values
		{"variable unset", one + "providers: {openai: {base_url: \"${NOPE}\"}}\n", `f.yaml:2: providers.openai.base_url: the environment variable NOPE is not set`},
		{"variable unset in a header", one + "providers: {openai: {headers: {X-A: \"a${NOPE}\"}}}\n", `f.yaml:2: providers.openai.headers.X-A: the environment variable NOPE is not set`},
		{"variable without name", one + "providers: {openai: {api_key: \"${a b}\"}}\n", `f.yaml:2: providers.openai.api_key: ${…} wants the name of an environment variable`},
		{"variable without end", one + "cache: {corpus: \"${SECRET\"}\n", `f.yaml:2: cache.corpus: ${…} wants the name of an environment variable`},
		{"secret for a number", one + "retries: {max: \"${SECRET}\"}\n", `f.yaml:2: retries.max: "${SECRET}" is no whole number`},
		{"secret for a name", one + "chat: {default_model: \"${SECRET}\"}\n", `f.yaml:2: chat.default_model: there is no candidate "${SECRET}"`},
		{"secret for a script", "candidates: [{id: a, provider: script, model: \"${SECRET}\"}]\n", `f.yaml:1: candidates[0].model: is no script`},
		{"parameter without path", one + "providers: {openai: {api_key: \"ssm:key\"}}\n", `f.yaml:2: providers.openai.api_key wants ssm:/ and the path of a parameter`},
		{"parameter where none can be", one + "cache: {corpus: \"ssm:/a\"}\n", `f.yaml:2: cache.corpus can't be an ssm: reference (those are for providers and auth.keys)`},

		// rules
		{"condition missing", one + "rules: [{name: r, use: [a]}]\n", "f.yaml:2: rules[0] has no when"},
		{"rule to nowhere", one + "rules:\n  - name: r\n    when: 'tokens > 1'\n    use: [ghost]\n", `f.yaml:5: rules[0].use[0]: there is no candidate "ghost"`},
		{"rule to no chain", one + "rules: [{name: r, when: stream, use: {chain: ghost}}]\n", `f.yaml:2: rules[0].use.chain: there is no chain "ghost"`},
		{"rule to text", one + "rules: [{name: r, when: stream, use: a}]\n", `f.yaml:2: rules[0].use wants a list of candidates or {chain: name}, not text`},
		{"rule twice", one + "rules:\n  - {name: r, when: stream, use: [a]}\n  - {name: r, when: stream, use: [a]}\n", `f.yaml:4: rules[1].name: "r" is given twice (first on line 3)`},
		{"condition cut off", one + "rules:\n  - name: r\n    when: 'tokens >'\n    use: [a]\n", `f.yaml:4: rules[0].when: column 9: got end of file, want primary expression`},
		{"condition of a number", one + "rules: [{name: r, when: tokens + 1, use: [a]}]\n", `f.yaml:2: rules[0].when: gives a number, and has to give true or false`},
		{"condition with an unknown name", one + "rules: [{name: r, when: nonsense > 3, use: [a]}]\n", `f.yaml:2: rules[0].when: column 1: there is no "nonsense": conditions see ` + factNames},
		{"condition of two types", one + "rules: [{name: r, when: 'tokens == \"many\"', use: [a]}]\n", `f.yaml:2: rules[0].when: column 1: == is not for a number and a text`},
		{"condition with a secret", one + "rules: [{name: r, when: '${SECRET} > 1', use: [a]}]\n", `f.yaml:2: rules[0].when: is no condition`},
		{"only a chain", one + "chains: [{primary: a}]\nrules: [{name: r, when: stream, use: {chain: a}, only: true}]\n", `f.yaml:3: rules[0].only: nothing follows a chain anyway`},

		// shapes of what comes later
		{"two caps", one + "caps:\n  - {tenant: x, usd_per_day: 5}\n  - {tenant: x, usd_per_day: 6}\n", `f.yaml:4: caps[1].tenant: "x" has two caps`},
		{"cap below zero", one + "caps: [{tenant: x, usd_per_day: -1}]\n", `f.yaml:2: caps[0].usd_per_day: -1 is out of range`},
		{"cap without amount", one + "caps: [{tenant: x}]\n", "f.yaml:2: caps[0] has no usd_per_day"},
		{"slow calls in a run", one + "breaker: {slow_call: {after: 10s}}\n", `f.yaml:2: breaker.slow_call.after: is for the modes window and hybrid: a run counts failures only`},
		{"shadow above all", one + "cache: {shadow: 1.1}\n", `f.yaml:2: cache.shadow: 1.1 is out of range`},
		{"merge of nothing", "candidates:\n  - {<<: 5, id: a, provider: ollama, model: m}\n", `f.yaml:2: candidates[0]: << wants a mapping, at most 8 deep`},
	}
}

func TestBroken(t *testing.T) {
	for _, tt := range broken() {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := load(tt.text, "SECRET=CANARY")
			require.Nil(t, c)
			require.Equal(t, tt.want, fmt.Sprint(err))
			require.NotContains(t, fmt.Sprint(err), "CANARY")
			var problems Errors
			require.ErrorAs(t, err, &problems)
		})
	}
}

func TestEverythingIsToldAtOnce(t *testing.T) {
	_, _, err := load("chat: {default_model: ghost, colour: red}\nretries: {max: -1}\ncandidates: [{id: a, provider: nowhere, model: m}]\n")
	require.EqualError(t, err, `f.yaml:1: unknown key "colour" in chat
f.yaml:1: chat.default_model: there is no candidate "ghost"
f.yaml:2: retries.max: -1 is not between 0 and 10
f.yaml:3: candidates[0].provider: there is no provider "nowhere", neither built in nor under providers`)
}

func TestEveryDialectMayBeNamed(t *testing.T) {
	for _, dialect := range providers.Dialects() {
		_, _, err := load(one + "providers:\n  own: {dialect: " + dialect + "}\n")
		require.NoError(t, err, dialect)
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	_, _, err := load(b.String())
	var problems Errors
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, maxProblems+1)
	require.Equal(t, "and 151 more", problems[maxProblems].Reason)
}

func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("candidates:\n  - &a {id: a, provider: ollama, model: m, timeouts: {connect: 1s, header: 2s}}\n")
	for range 10_000 {
		b.WriteString("  - *a\n")
	}
	_, _, err := load(b.String())
	require.EqualError(t, err, "f.yaml:2: the file means more than 50000 values")
}

func TestMergeBomb(t *testing.T) {
	bomb := "candidates:\n  - &m0 {id: a, provider: ollama, model: m}\n"
	for i := 1; i < 9; i++ {
		bomb += fmt.Sprintf("  - &m%d {<<: [%s]}\n", i, strings.Repeat(fmt.Sprintf("*m%d, ", i-1), 20))
	}
	_, _, err := load(bomb)
	require.ErrorContains(t, err, "the file means more than 50000 values")
	require.Equal(t, 0, strings.Count(err.Error(), "\n"))
}

func TestMergeLoop(t *testing.T) {
	_, _, err := load("candidates:\n  - &a {id: a, provider: ollama, model: m, <<: *a}\n")
	require.ErrorContains(t, err, "f.yaml:2")
}
