package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/app"
	"holdfast/internal/providers/providertest"
)

// dynamo creates a table on the DynamoDB API that the tests are given, and points this process and its children there.
func dynamo(t *testing.T) (table string) {
	t.Helper()
	endpoint := os.Getenv("HOLDFAST_TEST_DYNAMODB_URL")
	if endpoint == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") != "" {
			t.Fatal("HOLDFAST_TEST_DYNAMODB_URL is not set")
		}
		t.Skip("needs a DynamoDB API: make test brings one up and sets HOLDFAST_TEST_DYNAMODB_URL")
	}
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
	credentials(t)
	table = fmt.Sprintf("cmd-%d", time.Now().UnixNano())
	require.NoError(t, app.Migrate(t.Context(), app.Places{Table: table}, func(string) {}))
	return table
}

func credentials(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
}

// program is the real holdfast, built as make does.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// process starts `holdfast serve` as a process of its own and gives its URL.
func process(t *testing.T, program string, args ...string) (url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the cleanup outlives the test's own
	c := exec.CommandContext(ctx, program, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	log := &safeBuffer{}
	c.Stderr = log
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, lines) }()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-drained
		require.NoError(t, c.Wait())
		cancel()
		if t.Failed() {
			t.Log(log)
		}
	})
	return address.FindString(line)
}

// answered asks once and says who answered, and why the first candidate was left out.
func answered(t *testing.T, url string) (by, skipped string) {
	t.Helper()
	<-time.After(20 * time.Millisecond) // a fleet is asked now and then
	res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(hi))
	require.NoError(t, err)
	defer res.Body.Close()
	var answer struct {
		Holdfast struct {
			Candidate string
			Attempts  []struct{ Skipped string }
		}
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
	require.NotEmpty(t, answer.Holdfast.Attempts)
	return answer.Holdfast.Candidate, answer.Holdfast.Attempts[0].Skipped
}

// An operator's word reaches every process of the fleet within five seconds, and so does its end.
func TestOperatorIsHeardByTheFleet(t *testing.T) {
	table := dynamo(t)
	a := providertest.Start(t, providertest.OpenAI, providertest.Says("A"))
	b := providertest.Start(t, providertest.OpenAI, providertest.Says("B"))
	path := file(t, fmt.Sprintf(`
auth: {anonymous: true}
providers: {pa: {dialect: openai, base_url: %q}, pb: {dialect: openai, base_url: %q}}
candidates:
  - {id: a, provider: pa, model: m, priority: 1}
  - {id: b, provider: pb, model: m, priority: 2}
`, a.URL+"/v1", b.URL+"/v1"))
	holdfast := program(t)
	fleet := []string{process(t, holdfast, "--config", path, "--table", table), process(t, holdfast, "--config", path, "--table", table)}
	operate := func(args ...string) time.Time {
		t.Helper()
		out, err := exec.Command(holdfast, append(append([]string{"breaker"}, args...), "--config", path, "--table", table)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return time.Now()
	}
	// heard waits until every process answers by the candidate. A second is for this machine.
	heard := func(by string, since time.Time) {
		t.Helper()
		for _, url := range fleet {
			for got := ""; got != by; got, _ = answered(t, url) {
				require.Less(t, time.Since(since), 6*time.Second, "%s is not heard of", by)
			}
		}
	}
	heard("a", time.Now())

	ordered := operate("open", "a", "--for", "8s", "--why", "drill")
	heard("b", ordered)
	calls := a.Calls()
	for time.Since(ordered) < 7*time.Second {
		for _, url := range fleet {
			by, skipped := answered(t, url)
			require.Equal(t, "b breaker_open", by+" "+skipped)
		}
	}
	require.Equal(t, calls, a.Calls(), "no trial either")
	heard("a", ordered.Add(8*time.Second))

	a.Play(providertest.Fails(500))
	ordered = operate("close", "a")
	for time.Since(ordered) < 5*time.Second {
		answered(t, fleet[0])
		answered(t, fleet[1])
	}
	calls = a.Calls()
	for range 3 {
		answered(t, fleet[0])
		answered(t, fleet[1])
	}
	require.Equal(t, calls+6, a.Calls(), "whatever fails, each call goes there")

	a.Play(providertest.Says("A"))
	heard("a", operate("reset", "a"))
}
