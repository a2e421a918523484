package main

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLambdaArguments(t *testing.T) {
	dir := t.TempDir()
	program, text := filepath.Join(dir, "bootstrap"), filepath.Join(dir, "notes")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/true\n"), 0o755))
	require.NoError(t, os.WriteFile(text, nil, 0o644))
	for _, tt := range []struct {
		name      string
		args      []string
		env       map[string]string
		listen    string
		timeout   time.Duration
		instances int
		wrong     string
	}{
		{"defaults", []string{program}, nil, defaultListen, 30 * time.Second, 1, ""},
		{"environment", []string{program}, map[string]string{"HOLDFAST_LISTEN": "127.0.0.1:1"}, "127.0.0.1:1", 30 * time.Second, 1, ""},
		{"empty environment", []string{program}, map[string]string{"HOLDFAST_LISTEN": ""}, defaultListen, 30 * time.Second, 1, ""},
		{"flags first", []string{"--listen", "127.0.0.1:2", "--timeout=5s", program}, map[string]string{"HOLDFAST_LISTEN": "x"}, "127.0.0.1:2", 5 * time.Second, 1, ""},
		{"flags last", []string{program, "--instances", "3", "--listen=127.0.0.1:2"}, nil, "127.0.0.1:2", 30 * time.Second, 3, ""},
		{"flags around", []string{"--instances", "3", program, "--timeout", "1m"}, nil, defaultListen, time.Minute, 3, ""},
		{"no bootstrap", []string{"--timeout", "1m"}, nil, "", 0, 0, "want one bootstrap"},
		{"two", []string{program, program}, nil, "", 0, 0, "want one bootstrap"},
		{"missing", []string{filepath.Join(dir, "nowhere")}, nil, "", 0, 0, "make build"},
		{"no program", []string{text}, nil, "", 0, 0, "is no program"},
		{"a folder", []string{dir}, nil, "", 0, 0, "is no program"},
		{"unknown flag", []string{program, "--frob"}, nil, "", 0, 0, "frob"},
		{"too short", []string{program, "--timeout", "10ms"}, nil, "", 0, 0, "--timeout"},
		{"no instances", []string{program, "--instances", "0"}, nil, "", 0, 0, "--instances"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := parseLambda(tt.args, environment{lookup: func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }})
			if tt.wrong != "" {
				require.ErrorContains(t, err, tt.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, program, c.server.Bootstrap)
			require.Equal(t, tt.listen, c.listen)
			require.Equal(t, tt.timeout, c.server.Timeout)
			require.Equal(t, tt.instances, c.server.Instances)
		})
	}
}

func TestLambdaExitStatus(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		status       int
		stderr       string
	}{
		{"refuses its configuration", "#!/bin/sh\necho holdfast.yaml:3: wrong >&2\nexit 2\n", exitRefused, "holdfast.yaml:3: wrong\n"},
		{"crashes", "#!/bin/sh\nexit 7\n", exitFailed, "doesn't start (3 attempts): it exited: exit status 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "bootstrap")
			require.NoError(t, os.WriteFile(program, []byte(tt.script), 0o755))
			var stdout, stderr lambdaOutput
			env := environment{stdout: &stdout, stderr: &stderr, lookup: func(string) (string, bool) { return "", false }}
			status := run(t.Context(), []string{"lambda", program, "--listen", "127.0.0.1:0"}, env)
			require.Equal(t, tt.status, status)
			require.Contains(t, stderr.String(), tt.stderr)
			require.Contains(t, stdout.String(), "Function URL http://127.0.0.1:")
		})
	}
}

// lambdaOutput is what the command and its processes print at the same time.
type lambdaOutput struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *lambdaOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *lambdaOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
