package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const twoCandidates = "auth: {anonymous: true}\ncandidates:\n" +
	"  - {id: openai-main, provider: ollama, model: m}\n  - {id: openai-mini, provider: ollama, model: n}\n"

func TestBreakerRefusesWrongUse(t *testing.T) {
	path := file(t, twoCandidates)
	for _, tt := range []struct {
		name string
		args string
		want string
	}{
		{"no table", "open openai-main", "there is nobody to tell"},
		{"no candidate", "open --table t", "open is for one candidate"},
		{"two candidates", "close a b --table t", "close is for one candidate"},
		{"no such verb", "opne a --table t", `"opne" is none of list, open, close, reset`},
		{"a slip", "open openai-mian --table t --config " + path, `has no candidate "openai-mian" (did you mean openai-main?)`},
		{"a slip in a list", "list openai-mian --table t --config " + path, "did you mean openai-main?"},
		{"no id", "open a#b --table t", `"a#b" is no id`},
		{"a list of nothing", "--table t", "of which candidates?"},
		{"a list with a reason", "list a --why x --table t", "list takes neither"},
		{"a reset with an end", "reset a --for 10m --table t", "a reset has no end"},
		{"an end that is no time", "open a --for soon --table t", `--for "soon"`},
		{"an end in the past", "open a --for -1m --table t", `--for "-1m"`},
		{"an end of nothing", "open a --for 0s --table t", `--for "0s"`},
		{"an end far away", "open a --for 721h --table t", "at most 720h"},
		{"a long reason", "open a --table t --why " + strings.Repeat("x", 201), "200 characters at most"},
		{"a reason of two lines", "open a --table t --why one\ntwo", "one line"},
		{"a configuration that isn't right", "open a --table t --config " + file(t, broken), `unknown key "frist_token_timeout"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := call(t, append([]string{"breaker"}, strings.Split(tt.args, " ")...))
			require.Equal(t, exitRefused, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
		})
	}
}

func TestBreakerSaysThatThereIsNoTable(t *testing.T) {
	dynamo(t)
	status, stdout, stderr := call(t, []string{"breaker", "open", "a", "--table", "no-such-table"})
	require.Equal(t, exitFailed, status)
	require.Empty(t, stdout)
	require.Equal(t, "holdfast breaker: there is no table no-such-table in this account and region\n", stderr)
}

func TestBreakerSaysWhatOfAWSIsMissing(t *testing.T) {
	for want, set := range map[string]map[string]string{
		"there are no AWS credentials": {"AWS_REGION": "eu-central-1"},
		"set AWS_REGION":               {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
	} {
		t.Run(want, func(t *testing.T) {
			for _, name := range []string{
				"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE",
				"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
			} {
				t.Setenv(name, set[name])
			}
			none := file(t, "")
			t.Setenv("AWS_CONFIG_FILE", none)
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
			status, stdout, stderr := call(t, []string{"breaker", "list", "a", "--table", "t"})
			require.Equal(t, exitFailed, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, want)
		})
	}
}

func TestBreakerSaysThatNobodyAnswers(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	credentials(t)
	status, _, stderr := call(t, []string{"breaker", "list", "a", "--table", "t"})
	require.Equal(t, exitFailed, status)
	require.Contains(t, stderr, "connection refused")
}

func TestBreakerForcesAndShows(t *testing.T) {
	table := dynamo(t)
	path := file(t, twoCandidates)
	ask := func(args ...string) string {
		t.Helper()
		status, stdout, stderr := call(t, append(append([]string{"breaker"}, args...), "--config", path), "HOLDFAST_TABLE="+table)
		require.Equal(t, exitOK, status, stderr)
		require.Empty(t, stderr)
		return stdout
	}
	require.Equal(t, "openai-main  closed\nopenai-mini  closed\n", ask())

	out := ask("open", "openai-main", "--for", "10m", "--why", "vendor incident")
	require.Regexp(t, `^openai-main was closed, and is forced-open until 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(operator: vendor incident\) now\.\n`, out)
	require.Contains(t, out, "Every process that serves with the table "+table+" sees it within 5s.\n")
	require.Regexp(t, `^openai-main  forced-open until .* \(operator: vendor incident\)\nopenai-mini  closed\n$`, ask("list"))

	out = ask("--why", "it lies", "close", "openai-main")
	require.Regexp(t, `^openai-main was forced-open until .*, and is forced-closed \(operator: it lies\) now\.`, out)
	require.Equal(t, "openai-main  forced-closed (operator: it lies)\n", ask("list", "openai-main"))

	require.Regexp(t, `^openai-main was forced-closed .*, and is closed now\.`, ask("reset", "openai-main"))
	ask("open", "openai-mini", "--for", "1s")
	require.Eventually(t, func() bool { return ask("list", "openai-mini") == "openai-mini  closed\n" }, 10*time.Second, 50*time.Millisecond)
}

// Where no configuration is named, any id is taken: the operator's machine may not have it.
func TestBreakerWithoutAConfiguration(t *testing.T) {
	table := dynamo(t)
	status, stdout, stderr := call(t, []string{"breaker", "open", "any.id", "--table", table})
	require.Equal(t, exitOK, status, stderr)
	require.Contains(t, stdout, "any.id was closed, and is forced-open (operator) now.")
}

// An order nobody looks at is said to be one.
func TestBreakerTellsWhoDoesNotLook(t *testing.T) {
	table := dynamo(t)
	for setting, want := range map[string]string{
		"enabled: false": "breaker.enabled is false there", "observe: true": "breaker.observe is true there",
	} {
		path := file(t, twoCandidates+"breaker: {"+setting+"}\n")
		status, stdout, stderr := call(t, []string{"breaker", "open", "openai-main", "--table", table, "--config", path})
		require.Equal(t, exitOK, status, stderr)
		require.Contains(t, stdout, want)
	}
}
