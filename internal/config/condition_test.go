package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func facts() *Facts {
	return &Facts{
		Tokens: 3001, Messages: 3, Tools: 2, Images: 1, Hour: 22, Thinking: true,
		Task: "classify", Tenant: "team-a", Model: "auto", Tags: map[string]string{"team": "search", "task": "classify"},
	}
}

func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		when string
		want bool
	}{
		{"tokens > 3000", true},
		{"tokens > 3001", false},
		{"tokens >= 3001 and messages <= 3", true},
		{"tools == 2 and images != 1", false},
		{"tools - images == 1 and tools * 3 + 1 == 7", true},
		{"tokens < -1", false},
		{"hour >= 22 or hour < 6", true},
		{"hour in [1, 2, 22]", true},
		{"hour not in (1, 2)", true},
		{"thinking", true},
		{"stream", false},
		{"not stream and thinking", true},
		{"stream == thinking", false},
		{"stream != true", true},
		{"True", true},
		{"false", false},
		{`task in ["classify", "extract"]`, true},
		{`task not in ["classify", "extract"]`, false},
		{`tenant == "team-a"`, true},
		{`tenant < "team-b"`, true},
		{`tenant.startswith("team-") and model.endswith("o")`, true},
		{`tenant.startswith("x")`, false},
		{`"eam" in tenant`, true},
		{`"team" in tags`, true},
		{`"nobody" in tags`, false},
		{`"nobody" not in tags`, true},
		{`tags["team"] == "search"`, true},
		{`tags.team in ["search"]`, true},
		{`tags["nobody"] == ""`, true},
		{`tags[task] == ""`, true},
		{`tags["task"] == task`, true},
		{"stream and thinking or tokens > 0", true},
		{"stream and (thinking or tokens > 0)", false},
		{"tokens > 3000 && !stream", true},
		{"stream||thinking&&tools>0", true},
		{"!(thinking || stream) || images != 1", false},
		{`task == "a && b" || tags.team != 'x || !y'`, true},
		{`tenant == "\"&&" || !thinking`, false},
		{"\n  tokens > 1 # long\n  and messages > 1\n", true},
	} {
		t.Run(tt.when, func(t *testing.T) {
			matches, err := compile(tt.when)
			require.NoError(t, err)
			f := facts()
			require.Equal(t, tt.want, matches(f))
			require.Zero(t, testing.AllocsPerRun(10, func() { matches(f) }))
		})
	}
}

func TestConditionsOfNoTags(t *testing.T) {
	matches, err := compile(`tags["team"] == "" and "team" not in tags and tags.team == ""`)
	require.NoError(t, err)
	require.True(t, matches(&Facts{}))
}

func TestRefusedConditions(t *testing.T) {
	for _, tt := range []struct{ name, when, want string }{
		{"cut off", "tokens >", "column 9: got end of file, want primary expression"},
		{"two", "tokens > 1 tools > 1", "column 17: got identifier after expression, want EOF"},
		{"half an and", "tokens > 1 & stream", "& is not for"},
		{"a text that doesn't end", `task == "a && b`, "column"},
		{"assignment", "tokens = 1", "got '=' after expression"},
		{"two comparisons", "1 < tokens < 5", "column 13: < does not associate with <"},
		{"unknown name", "nonsense > 3", `column 1: there is no "nonsense"`},
		{"unknown name in the second line", "stream and\n  nonsense", `line 2, column 3: there is no "nonsense"`},
		{"number and text", `tokens == "many"`, "column 1: == is not for a number and a text"},
		{"text and number", `tenant > 3`, "column 1: > is not for a text and a number"},
		{"truth in order", "stream < thinking", "< is not for true or false and true or false"},
		{"and of numbers", "tokens and tools", "and is not for a number and a number"},
		{"not of a number", "not tokens", "not is not for a number"},
		{"minus of a text", "-task == task", "- is not for a text"},
		{"plus of a text", `task + "x" == task`, "+ is not for a text and a text"},
		{"division", "tokens / 0 == 1", "/ is not for a number and a number"},
		{"number among texts", `hour in ["a"]`, "in is not for a number and a list"},
		{"text among tags", `3 in tags`, "in is not for a number and the tags"},
		{"mixed list", `hour in [1, "a"]`, "a list holds texts or numbers, not both"},
		{"empty list", `hour in []`, "at least one"},
		{"list of names", `hour in [tokens]`, "as they stand"},
		{"bytes", `task == b"a"`, "neither a text nor a whole number"},
		{"fraction", "tokens > 1.5", "neither a text nor a whole number"},
		{"large", "tokens > 99999999999999999999", "neither a text nor a whole number"},
		{"a number", "tokens", "gives a number, and has to give true or false"},
		{"a text", "task", "gives a text"},
		{"tags", "tags", "gives the tags"},
		{"a list", "[1]", "gives a list"},
		{"tag by number", "tags[1] == task", "is for the tags"},
		{"letter", "task[0] == task", "is for the tags"},
		{"field of a text", "task.size == 1", `a text has no "size"`},
		{"other call", `task.upper() == "A"`, "the calls are"},
		{"function", `len(task) > 1`, "the calls are"},
		{"start of a number", `tokens.startswith("1")`, "startswith is for texts"},
		{"comprehension", "[t for t in tags]", "conditions have comparisons"},
		{"choice", "stream if thinking else stream", "conditions have comparisons"},
		{"function of its own", "lambda: stream", "conditions have comparisons"},
		{"long", strings.Repeat("(", maxCondition+1), "is longer than 2000 bytes"},
		{"deep", strings.Repeat("(", maxCondition), "excessive nesting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compile(tt.when)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestRules(t *testing.T) {
	c := mustLoad(t, both+`chains: [{primary: a}]
rules:
  - {name: gray, when: 'tenant == "team-a"', use: [b, a], force: true, message: {zh: 灰}}
  - {name: long, when: tokens > 1, use: {chain: a}}
  - {name: alone, when: 'stream and task == "${TASK}"', use: [a], only: true}
`, "TASK=CANARY")
	require.Len(t, c.Rules, 3)
	require.True(t, c.Rules[0].Matches(facts()))
	require.True(t, c.Rules[1].Matches(facts()))
	require.False(t, c.Rules[2].Matches(facts()))
	require.True(t, c.Rules[2].Matches(&Facts{Stream: true, Task: "CANARY"}))
	for i := range c.Rules {
		c.Rules[i].Matches = nil // functions can't be compared
	}
	require.Equal(t, []Rule{
		{Name: "gray", When: `tenant == "team-a"`, Use: []string{"b", "a"}, Force: true, Message: map[string]string{"zh": "灰"}},
		{Name: "long", When: "tokens > 1", UseChain: "a", Message: map[string]string{}},
		{Name: "alone", When: `stream and task == "${TASK}"`, Use: []string{"a"}, Only: true, Message: map[string]string{}},
	}, c.Rules)
}

func FuzzCondition(f *testing.F) {
	for _, when := range []string{`tokens > 1 and task in ["a"]`, "tags.a == tags[task]", "not (stream or 1 in (1,))", "(((", `"\x00`} {
		f.Add(when)
	}
	f.Fuzz(func(t *testing.T, when string) {
		matches, err := compile(when)
		require.Equal(t, err == nil, matches != nil)
		if err == nil {
			first, second := matches(facts()), matches(facts())
			require.Equal(t, first, second)
		}
	})
}
