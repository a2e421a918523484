package config

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, tt := range []struct{ name, path, want string }{
		{"right", write("right.yaml", minimal), ""},
		{"missing", filepath.Join(dir, "nowhere.yaml"), "nowhere.yaml: no such file or directory"},
		{"a folder", dir, dir + ": is no file"},
		{"too large", write("large.yaml", minimal+strings.Repeat("# padding\n", maxFile/10)), "large.yaml: is larger than 1024 KiB"},
		{"wrong", write("wrong.yaml", minimal+"colour: red\n"), `wrong.yaml:3: unknown key "colour"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := Load(t.Context(), Source{Location: tt.path})
			if tt.want == "" {
				require.NoError(t, err)
				require.Equal(t, tt.path, c.Source)
				return
			}
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, 1, strings.Count(err.Error(), dir), "the path is named once: %v", err)
		})
	}
}

func TestReadURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/right":
			if user, password, _ := r.BasicAuth(); user != "reader" || password != "CANARY" || r.URL.Query().Get("token") != "CANARY" {
				w.WriteHeader(http.StatusForbidden)
			}
			_, _ = w.Write([]byte(minimal))
		case "/large":
			_, _ = w.Write(make([]byte, maxFile+1))
		case "/wrong":
			_, _ = w.Write([]byte("colour: red\n"))
		case "/moved":
			http.Redirect(w, r, "/right?token=CANARY", http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, tt := range []struct{ name, url, want string }{
		{"right", "/right", ""},
		{"missing", "/nowhere", "/nowhere: answers with status 404"},
		{"too large", "/large", "/large: is larger than 1024 KiB"},
		{"wrong", "/wrong", `/wrong:1: unknown key "colour"`},
		{"elsewhere", "/moved", "/moved: answers with status 302"},
		{"no answer", "/hang", "/hang: no answer in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			c, _, err := Load(ctx, Source{Location: "http://reader:CANARY@" + host + tt.url + "?token=CANARY"})
			if tt.want == "" {
				require.NoError(t, err)
				require.Equal(t, server.URL+tt.url, c.Source)
				return
			}
			require.ErrorContains(t, err, server.URL+tt.want)
			require.NotContains(t, err.Error(), "CANARY")
		})
	}
}

func TestURLsThatLeadNowhere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	gone := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	for _, location := range []string{"http://u:CANARY@" + gone, "http://u:CANARY@%zz", "https://u:CANARY@", "http://u:CANARY@h:port"} {
		t.Run(location, func(t *testing.T) {
			_, _, err := Load(t.Context(), Source{Location: location})
			require.Error(t, err)
			require.NotContains(t, err.Error(), "CANARY")
		})
	}
}

func TestProcessEnvironment(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_MODEL", "from-the-environment")
	path := filepath.Join(t.TempDir(), "f.yaml")
	require.NoError(t, os.WriteFile(path, []byte("candidates: [{id: a, provider: ollama, model: \"${HOLDFAST_TEST_MODEL}\"}]"), 0o600))
	c, _, err := Load(t.Context(), Source{Location: path})
	require.NoError(t, err)
	require.Equal(t, "from-the-environment", c.Candidates[0].Model)
}
