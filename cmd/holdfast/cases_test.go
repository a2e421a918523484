package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCases(t *testing.T) {
	const good = `cases:
  - {name: gray, request: {tenant: team-a, model: alpha, hour: 3, tools: 1, stream: true}, want: {rule: gray, candidates: [gamma, alpha]}}
  - {name: long, request: {tokens: 30001}, want: {candidates: [beta, alpha]}}
  - {name: cheap, request: {task: classify, tags: {task: classify}}, want: {rule: cheap}}
  - {name: none, want: {rule: "", candidates: [alpha]}}
  - {name: thinking, request: {thinking: true}, want: {rule: "", candidates: [beta]}}
`
	for _, tt := range []struct {
		name, text string
		status     int
		says       string
	}{
		{"all hold", good, exitOK, "Cases      5 of 5 hold"},
		{"another rule", "cases:\n- {name: x, want: {rule: gray}}\n", exitFailed, `:2: x: the rule is "", not "gray"`},
		{"other candidates", "cases:\n- {name: x, request: {images: 4}, want: {candidates: [alpha]}}\n", exitFailed, `:2: x: the candidates are beta, alpha, not alpha first`},
		{"more candidates than there are", "cases:\n- {name: x, request: {images: 4}, want: {candidates: [beta, alpha, gamma]}}\n", exitFailed, `not beta, alpha, gamma first`},
		{"another's model", "cases:\n- {name: x, request: {model: gamma}, want: {rule: \"\"}}\n", exitFailed, `there is no model "gamma" for the tenant "anonymous"`},
		{"unknown fact", "cases:\n- {name: x, request: {token: 1}, want: {rule: r}}\n", exitRefused, `unknown key "token" in cases[0].request (did you mean tokens?)`},
		{"nothing wanted", "cases:\n- {name: x, want: {}}\n", exitRefused, `:2: cases[0] wants nothing`},
		{"no case", "cases: []\n", exitRefused, "there is no case"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := call(t, []string{"check", "--config", "testdata/check.yaml", "--cases", file(t, tt.text)})
			require.Equal(t, tt.status, status, stderr)
			require.Contains(t, stdout+stderr, tt.says)
		})
	}
	status, _, stderr := call(t, []string{"check", "--config", "testdata/check.yaml", "--cases", "testdata/nowhere.yaml"})
	require.Equal(t, exitRefused, status)
	require.Contains(t, stderr, "testdata/nowhere.yaml: ")
}
