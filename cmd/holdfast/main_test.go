package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// surroundings are an environment that keeps what a command says.
type surroundings struct {
	stdout, stderr bytes.Buffer
	variables      map[string]string
}

func (s *surroundings) environment() environment {
	return environment{&s.stdout, &s.stderr, func(name string) (string, bool) { v, ok := s.variables[name]; return v, ok }}
}

// call runs holdfast with arguments; variables are NAME=value.
func call(t *testing.T, args []string, variables ...string) (status int, stdout, stderr string) {
	t.Helper()
	s := surroundings{variables: map[string]string{}}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		s.variables[name] = value
	}
	status = run(t.Context(), args, s.environment())
	return status, s.stdout.String(), s.stderr.String()
}

// file writes a configuration and gives its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const broken = "chat:\n  default_model: a\n  frist_token_timeout: 3s\ncandidates:\n  - {id: a, provider: ollama, model: m}\n"

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}, {"help", "--help"}, {"help", "help"}} {
		status, stdout, stderr := call(t, args)
		require.Equal(t, exitOK, status)
		require.Empty(t, stderr)
		for _, word := range []string{"serve", "lambda", "check", "migrate", "HOLDFAST_CONFIG", "HOLDFAST_KEYS"} {
			require.Contains(t, stdout, word)
		}
	}
}

func TestHelpOfEachCommand(t *testing.T) {
	for _, c := range commands() {
		for _, args := range [][]string{{"help", c.name}, {c.name, "--help"}, {c.name, "-h"}} {
			status, stdout, stderr := call(t, args)
			require.Equal(t, exitOK, status, args)
			require.Empty(t, stderr, args)
			require.Equal(t, c.help, stdout)
			require.True(t, strings.HasPrefix(stdout, "usage: holdfast "+c.name), args)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "usage: holdfast COMMAND"},
		{"unknown command", []string{"frobnicate"}, `there is no command "frobnicate"`},
		{"help of an unknown command", []string{"help", "frobnicate"}, `there is no command "frobnicate"`},
		{"unknown flag", []string{"serve", "--bogus"}, "flag provided but not defined: -bogus"},
		{"flag of another command", []string{"check", "--listen", "x"}, "flag provided but not defined: -listen"},
		{"flag without value", []string{"check", "--config"}, "flag needs an argument: -config"},
		{"too many words", []string{"check", "a.yaml"}, `unexpected argument "a.yaml"`},
		{"lambda without a bootstrap", []string{"lambda"}, "usage: holdfast lambda BOOTSTRAP"},
		{"no address", []string{"serve", "--listen", "8080"}, `"8080" is no address to listen at`},
		{"wrong keys", []string{"serve", "--keys", "hk-CANARY"}, "HOLDFAST_KEYS: item 1 has no tenant"},
		{"open to all", []string{"serve", "--listen", ":8080"}, "the embedded configuration lets anyone in, so it is served on this machine only"},
		{"open to the network", []string{"serve", "--listen", "0.0.0.0:8080"}, "on this machine only"},
		{"open by a name", []string{"serve", "--listen", "example.com:80"}, "on this machine only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := call(t, tt.args)
			require.Equal(t, exitRefused, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.NotContains(t, stderr, "CANARY")
		})
	}
}

func TestBrokenConfigurationIsRefused(t *testing.T) {
	path := file(t, broken)
	for _, tt := range []struct {
		name string
		args []string
		vars []string
		want string
	}{
		{"check", []string{"check", "--config", path}, nil, path + `:3: unknown key "frist_token_timeout" in chat (did you mean first_token_timeout?)`},
		{"serve", []string{"serve", "--config", path, "--listen", "127.0.0.1:0"}, nil, path + ":3: "},
		{"by the environment", []string{"check"}, []string{"HOLDFAST_CONFIG=" + path}, path + ":3: "},
		{"flag wins", []string{"check", "--config", "nowhere.yaml"}, []string{"HOLDFAST_CONFIG=" + path}, "nowhere.yaml: no such file or directory"},
		{"missing file", []string{"serve", "--config", "nowhere.yaml", "--listen", "127.0.0.1:0"}, nil, "nowhere.yaml: no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := call(t, tt.args, tt.vars...)
			require.Equal(t, exitRefused, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one reason, one line: %s", stderr)
		})
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"-version"}, {"-v"}} {
		status, stdout, _ := call(t, args)
		require.Equal(t, exitOK, status)
		require.Equal(t, "holdfast "+buildVersion()+"\n", stdout)
		require.Regexp(t, `^holdfast (dev|\S*\d)`, stdout)
	}
}

func TestMigrateOfNothing(t *testing.T) {
	status, stdout, stderr := call(t, []string{"migrate"})
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "Nothing to do: neither HOLDFAST_DATABASE_URL nor HOLDFAST_TABLE")
}

func TestMigrateThatFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := surroundings{variables: map[string]string{"HOLDFAST_DATABASE_URL": "postgres://u:CANARY@127.0.0.1:1/none?connect_timeout=1"}}
	require.Equal(t, exitFailed, run(ctx, []string{"migrate"}, s.environment()))
	require.Contains(t, s.stderr.String(), "holdfast migrate: ")
	require.NotContains(t, s.stderr.String(), "CANARY")
}
