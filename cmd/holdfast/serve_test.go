package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// served is a running `holdfast serve`.
type served struct {
	url    string
	stop   context.CancelFunc
	status chan int
	stdout *safeBuffer // what follows the first line
	stderr *safeBuffer
}

// safeBuffer is a buffer that a server may write while a test reads.
type safeBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var address = regexp.MustCompile(`http://[0-9.:]+`)

// start runs serve until it says where it listens.
func start(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	out, announced := io.Pipe()
	read := make(chan struct{})
	s := &served{stop: stop, status: make(chan int, 1), stdout: &safeBuffer{}, stderr: &safeBuffer{}}
	env := environment{announced, s.stderr, func(string) (string, bool) { return "", false }}
	go func() {
		status := run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), env)
		announced.Close()
		<-read
		s.status <- status
	}()
	rest := bufio.NewReader(out)
	line, err := rest.ReadString('\n')
	require.NoError(t, err, s.stderr)
	go func() {
		defer close(read)
		_, _ = io.Copy(s.stdout, rest)
	}()
	s.url = address.FindString(line)
	require.NotEmpty(t, s.url, line)
	return s
}

func (s *served) post(t *testing.T, body string) *http.Response {
	t.Helper()
	res, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

const (
	hi       = `{"messages":[{"role":"user","content":"hi"}]}`
	hiStream = `{"messages":[{"role":"user","content":"hi"}],"stream":true}`
)

func TestServeWithoutAnything(t *testing.T) {
	s := start(t)
	res, err := http.Get(s.url + "/healthz")
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)

	res = s.post(t, hi)
	require.Equal(t, http.StatusOK, res.StatusCode)
	var answer struct {
		Holdfast struct{ Tier, Candidate string }
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
	require.Equal(t, "model", answer.Holdfast.Tier)
	require.Equal(t, "demo-primary", answer.Holdfast.Candidate)

	s.stop()
	require.Equal(t, exitOK, <-s.status)
	require.Contains(t, s.stdout.String(), "No provider's key is set, so scripted models answer.")
	require.NotContains(t, s.stderr.String(), "WARN")
	_, err = net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.Error(t, err, "nobody listens any more")
}

func TestServeLetsAStreamEnd(t *testing.T) {
	s := start(t, "--config", file(t, `
auth: {anonymous: true}
candidates: [{id: slow, provider: script, model: "first=1ms,gap=20ms,text=one two three four five six seven eight nine ten"}]
`))
	body := bufio.NewReader(s.post(t, hiStream).Body)
	first, err := body.ReadString('\n')
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(first, "data: "), first)

	s.stop() // in the middle of the answer
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Contains(t, string(rest), "ten")
	require.True(t, strings.HasSuffix(strings.TrimSpace(string(rest)), "data: [DONE]"), "%s", rest)
	require.Equal(t, exitOK, <-s.status)
	require.Contains(t, s.stderr.String(), "running answers may end")
}

func TestServeAtAPortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	status, stdout, stderr := call(t, []string{"serve", "--listen", taken.Addr().String()})
	require.Equal(t, exitFailed, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "address already in use")
}

func TestServeWithKeys(t *testing.T) {
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of the key "test"
	s := start(t, "--keys", "team-a:"+hash, "--config", file(t, "candidates: [{id: a, provider: script, model: echo}]\n"))
	require.NotContains(t, s.stderr.String(), "nobody may call")
	require.Equal(t, http.StatusUnauthorized, s.post(t, hi).StatusCode)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(hi))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer test")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	s.stop()
	require.Equal(t, exitOK, <-s.status)
}

func TestServeWarns(t *testing.T) {
	s := start(t, "--config", file(t, "candidates: [{id: a, provider: script, model: echo}]\n"))
	require.Contains(t, s.stderr.String(), "nobody may call")
	require.Contains(t, s.stderr.String(), `"level":"WARN"`)
	s.stop()
	require.Equal(t, exitOK, <-s.status)
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "127.1.2.3:80": true, "localhost:1": true, "[::1]:80": true,
		":8080": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1:80": false, "example.com:80": false, "8080": false,
	} {
		require.Equal(t, want, loopback(address), address)
	}
}

// changed is how soon serve takes a changed file.
const changed = 2 * time.Second

// candidate asks and says who answered.
func (s *served) candidate(t *testing.T) string {
	t.Helper()
	res := s.post(t, hi)
	_, err := io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	return res.Header.Get("Holdfast-Candidate")
}

func of(id string) string {
	return "auth: {anonymous: true}\ncandidates: [{id: " + id + ", provider: script, model: echo}]\n"
}

// A configuration is rolled out by writing its file, renaming another over it, or turning a link, as Kubernetes does.
func TestServeTakesAChangedFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) { require.NoError(t, os.WriteFile(at(name), []byte(text), 0o600)) }
	turn := func(target string) {
		require.NoError(t, os.Symlink(target, at("next")))
		require.NoError(t, os.Rename(at("next"), at("holdfast.yaml")))
	}
	write("one.yaml", of("a"))
	turn("one.yaml")
	s := start(t, "--config", at("holdfast.yaml"))
	require.Equal(t, "a", s.candidate(t))
	for _, tt := range []struct {
		name, want string
		change     func()
	}{
		{"written in place", "b", func() { write("one.yaml", of("b")) }},
		{"another linked", "c", func() { write("two.yaml", of("c")); turn("two.yaml") }},
		{"the link replaced by a file", "d", func() {
			write("three.yaml", of("d"))
			require.NoError(t, os.Rename(at("three.yaml"), at("holdfast.yaml")))
		}},
		{"removed and written again", "e", func() {
			require.NoError(t, os.Remove(at("holdfast.yaml")))
			write("holdfast.yaml", of("e"))
		}},
	} {
		tt.change()
		require.Eventually(t, func() bool { return s.candidate(t) == tt.want }, changed, 20*time.Millisecond, tt.name)
	}

	write("holdfast.yaml", of("f")+"colour: red\n")
	require.Eventually(t, func() bool { return strings.Contains(s.stderr.String(), "configuration refused") }, changed, 20*time.Millisecond)
	require.Contains(t, s.stderr.String(), `unknown key \"colour\"`)
	require.Equal(t, "e", s.candidate(t))
	s.stop()
	require.Equal(t, exitOK, <-s.status)
	require.Equal(t, 4, strings.Count(s.stderr.String(), "configuration reloaded"), s.stderr)
	require.Equal(t, 1, strings.Count(s.stderr.String(), "configuration refused"), s.stderr)
}
