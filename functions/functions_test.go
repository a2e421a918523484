package functions_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/lambdahttp"
)

const (
	maxBinary = 20_000_000 // bytes

	// Scripted models need no key and no network.
	configuration = `
auth: {anonymous: true}
candidates:
  - {id: local, provider: script, model: echo}
`
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names are the three bootstraps.
func names() []string { return []string{"chat", "stream", "upkeep"} }

// build compiles packages as make build does; each becomes dir/NAME/bootstrap.
func build(tb testing.TB, dir string, packages ...string) {
	tb.Helper()
	for _, p := range packages {
		c := exec.Command("go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", bootstrap(dir, filepath.Base(p)), "./"+p)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		require.NoError(tb, err, "%s", out)
	}
}

func bootstrap(dir, name string) string { return filepath.Join(dir, name, "bootstrap") }

// start prepares a process of a function, without any of this machine's own Holdfast or AWS settings.
func start(ctx context.Context, program string, env ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program)
	c.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "HOLDFAST_") || strings.HasPrefix(e, "AWS_")
	}), env...)
	return c
}

// text/template and net/rpc reach methods by name, which makes the linker keep every method of every type.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-tags", "lambda.norpc", "./chat", "./stream", "./upkeep").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "holdfast/internal/lambdahttp")
	for _, banned := range []string{"text/template", "html/template", "net/rpc", "testing"} {
		require.NotContains(t, deps, banned)
	}
}

func TestBootstraps(t *testing.T) {
	dir := t.TempDir()
	build(t, dir, names()...)
	t.Run("small and static", func(t *testing.T) {
		for _, name := range names() {
			info, err := os.Stat(bootstrap(dir, name))
			require.NoError(t, err)
			t.Logf("%s: %.1f MB", name, float64(info.Size())/1e6)
			require.LessOrEqual(t, info.Size(), int64(maxBinary), name)
			f, err := elf.Open(bootstrap(dir, name))
			require.NoError(t, err)
			require.False(t, slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), "%s needs a dynamic linker", name)
			require.NoError(t, f.Close())
		}
	})
	t.Run("refuse", func(t *testing.T) { refuse(t, dir) })
	t.Run("answer", func(t *testing.T) { answer(t, dir) })
}

// refuse: a configuration that is missing, wrong, or open to anyone without saying so starts nothing.
func refuse(t *testing.T, dir string) {
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "holdfast.yaml")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return "HOLDFAST_CONFIG=" + path
	}
	for _, tt := range []struct{ name, env, reason string }{
		{"no configuration", "HOLDFAST_CONFIG=", "a configuration is required"},
		{"missing", "HOLDFAST_CONFIG=/nowhere/holdfast.yaml", "/nowhere/holdfast.yaml"},
		{"nobody at the URL", "HOLDFAST_CONFIG=http://127.0.0.1:1/c", "http://127.0.0.1:1/c: can't be reached: connect: connection refused"},
		{"unknown key", file(configuration + "frob: 1\n"), "holdfast.yaml:5"},
		{"no keys", file(strings.Replace(configuration, "auth: {anonymous: true}", "", 1)), "anonymous"},
	} {
		for _, name := range names() {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					t.Error("it took part in the runtime API")
					w.WriteHeader(http.StatusGone)
				}))
				defer api.Close()
				var stderr bytes.Buffer
				c := start(t.Context(), bootstrap(dir, name), tt.env, "AWS_LAMBDA_RUNTIME_API="+api.Listener.Addr().String())
				c.Stderr = &stderr
				var exit *exec.ExitError
				require.ErrorAs(t, c.Run(), &exit)
				require.Equal(t, 2, exit.ExitCode(), "%s", &stderr)
				require.Contains(t, stderr.String(), tt.reason)
			})
		}
	}
}

// answer runs each function under the local Function URL server, its configuration beside the binary.
func answer(t *testing.T, dir string) {
	const question = `{"messages":[{"role":"user","content":"hi"}],"stream":true}`
	for _, name := range names() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "holdfast.yaml"), []byte(configuration), 0o600))
	}
	for _, name := range []string{"chat", "stream"} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, bootstrap(dir, name))
			resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(question))
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 200, resp.StatusCode, "%s", body)
			require.Equal(t, "model", resp.Header.Get("Holdfast-Tier"))
			require.True(t, strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"))
			require.True(t, bytes.HasSuffix(body, []byte("data: [DONE]\n\n")), "%s", body)
		})
	}
	t.Run("upkeep", func(t *testing.T) {
		url := serve(t, bootstrap(dir, "upkeep"))
		resp, err := http.Get(url) // an event without an action, as a schedule's
		require.NoError(t, err)
		defer resp.Body.Close()
		var report map[string]any
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&report))
		require.Equal(t, map[string]any{"action": "expire", "expired": 0.0}, report)
	})
}

// A function takes a newer configuration after its answers, whether it is a file or a URL's.
func TestFunctionsTakeANewerConfiguration(t *testing.T) {
	dir := t.TempDir()
	build(t, dir, "stream")
	other := strings.Replace(configuration, "id: local", "id: other", 1)
	var text atomic.Value
	text.Store(configuration)
	place := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text.Load().(string))
	}))
	t.Cleanup(place.Close)
	file := filepath.Join(dir, "holdfast.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configuration), 0o600))
	for _, tt := range []struct {
		name, location string
		change         func() error
		within         time.Duration
	}{
		{"file", file, func() error { return os.WriteFile(file, []byte(other), 0o600) }, 5 * time.Second},
		{"URL", place.URL, func() error { text.Store(other); return nil }, 20 * time.Second}, // it is asked once in 10 s
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, bootstrap(dir, "stream"), "HOLDFAST_CONFIG="+tt.location)
			candidate := func() string {
				resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
				require.NoError(t, err)
				defer resp.Body.Close()
				return resp.Header.Get("Holdfast-Candidate")
			}
			require.Equal(t, "local", candidate())
			require.NoError(t, tt.change())
			require.Eventually(t, func() bool { return candidate() == "other" }, tt.within, 50*time.Millisecond)
		})
	}
}

// An extension that serves the configuration may be up a moment after the function.
func TestTheConfigurationsServerMayBeLate(t *testing.T) {
	dir := t.TempDir()
	build(t, dir, "stream")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	place := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, configuration)
	})}
	up := make(chan error, 1)
	time.AfterFunc(500*time.Millisecond, func() {
		l, err := net.Listen("tcp", address)
		if err == nil {
			err = place.Serve(l)
		}
		up <- err
	})
	resp, err := http.Get(serve(t, bootstrap(dir, "stream"), "HOLDFAST_CONFIG=http://"+address) + "/healthz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	require.NoError(t, place.Close())
	require.ErrorIs(t, <-up, http.ErrServerClosed)
}

func serve(t *testing.T, program string, env ...string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s := lambdahttp.Server{Bootstrap: program, Env: start(ctx, "", env...).Env, Stdout: t.Output(), Stderr: t.Output()}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String()
}

// BenchmarkFirstPoll is the time from a process's start to its first poll of the runtime API: what INIT costs beside
// an empty Go function, on this machine.
func BenchmarkFirstPoll(b *testing.B) {
	dir := b.TempDir()
	build(b, dir, append(names(), "testdata/empty")...)
	config := filepath.Join(dir, "holdfast.yaml")
	require.NoError(b, os.WriteFile(config, []byte(configuration), 0o600))
	for _, name := range append([]string{"empty"}, names()...) {
		b.Run(name, func(b *testing.B) {
			polled := make(chan struct{}, 1)
			api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/invocation/next") {
					polled <- struct{}{}
				}
				if strings.HasSuffix(r.URL.Path, "/next") {
					<-r.Context().Done()
				}
			}))
			defer api.Close()
			fastest := time.Hour
			for b.Loop() {
				begin := time.Now()
				c := start(b.Context(), bootstrap(dir, name), "HOLDFAST_CONFIG="+config, "AWS_LAMBDA_RUNTIME_API="+api.Listener.Addr().String())
				require.NoError(b, c.Start())
				<-polled
				fastest = min(fastest, time.Since(begin))
				b.StopTimer()
				require.NoError(b, c.Process.Kill())
				require.Error(b, c.Wait())
				b.StartTimer()
			}
			b.ReportMetric(float64(fastest.Microseconds())/1000, "min-ms")
		})
	}
}
