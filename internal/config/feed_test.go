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

// long is how long ago a settled file was written.
const long = time.Hour

// put writes a file that nobody has touched for a while.
func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	age(t, path, long)
}

func age(t *testing.T, path string, d time.Duration) {
	t.Helper()
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-d)))
}

func candidateNamed(id string) string {
	return "candidates: [{id: " + id + ", provider: script, model: echo}]\n"
}

// news is what a feed gives next: the first candidate's id, "" for nothing new, or the reason of a refusal.
func news(t *testing.T, f *Feed) string {
	t.Helper()
	c, _, err := f.Next(t.Context())
	switch {
	case err != nil:
		require.Nil(t, c)
		return err.Error()
	case c == nil:
		return ""
	}
	return c.Candidates[0].ID
}

func TestFeedOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	f := NewFeed(Source{Location: path})
	require.True(t, f.File())
	gone := path + ": no such file or directory"
	require.Equal(t, gone, news(t, f), "not there yet")
	require.Equal(t, gone, news(t, f), "there is nothing else to go by")
	require.True(t, f.Unread())
	put(t, path, candidateNamed("a"))
	require.Equal(t, "a", news(t, f))
	require.False(t, f.Unread())
	require.Empty(t, news(t, f))
	put(t, path, candidateNamed("a"))
	require.Empty(t, news(t, f), "touched, not changed")
	put(t, path, candidateNamed("b"))
	require.Equal(t, "b", news(t, f))

	for _, bad := range []string{"colour: red\n", "", "colour: blue\n", "\x00", candidateNamed("b") + candidateNamed("b")} {
		put(t, path, bad)
		require.Contains(t, news(t, f), path+":", "%q", bad)
		require.Empty(t, news(t, f), "%q is told once", bad)
	}
	put(t, path, candidateNamed("b"))
	require.Equal(t, "b", news(t, f), "what was right before is right again")
	require.NoError(t, os.Remove(path))
	require.Equal(t, gone, news(t, f))
	require.Empty(t, news(t, f))
	put(t, path, candidateNamed("b"))
	require.Empty(t, news(t, f), "back as it was")
	require.NoError(t, os.Remove(path))
	require.Equal(t, gone, news(t, f), "gone again")
}

// A file that is still being written is waited for, unless it is the first that is read.
func TestFeedWaitsForAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	f := NewFeed(Source{Location: path})
	require.NoError(t, os.WriteFile(path, []byte(candidateNamed("a")), 0o600))
	age(t, path, 0)
	require.Equal(t, "a", news(t, f))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	age(t, path, 0)
	require.Empty(t, news(t, f), "truncated, not written yet")
	require.NoError(t, os.WriteFile(path, []byte(candidateNamed("b")), 0o600))
	age(t, path, 0)
	require.Empty(t, news(t, f), "perhaps not all of it")
	age(t, path, settled)
	require.Equal(t, "b", news(t, f))
	require.NoError(t, os.WriteFile(path, []byte(candidateNamed("c")), 0o600))
	age(t, path, -time.Minute)
	require.Equal(t, "c", news(t, f), "written by a clock that is ahead")
}

// The ways in which a file gets another content without being written to.
func TestFeedOfAReplacedFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	point := func(link, target string) {
		require.NoError(t, os.Symlink(target, at("link.new")))
		require.NoError(t, os.Rename(at("link.new"), at(link)))
	}
	t.Run("rename", func(t *testing.T) {
		put(t, at("plain.yaml"), candidateNamed("a"))
		f := NewFeed(Source{Location: at("plain.yaml")})
		require.Equal(t, "a", news(t, f))
		put(t, at("new.yaml"), candidateNamed("b"))
		require.NoError(t, os.Rename(at("new.yaml"), at("plain.yaml")))
		require.Equal(t, "b", news(t, f))
	})
	t.Run("mounted as Kubernetes does", func(t *testing.T) { // holdfast.yaml → ..data/holdfast.yaml, ..data → one of the folders
		for _, id := range []string{"a", "b"} {
			require.NoError(t, os.Mkdir(at(id), 0o700))
			put(t, at(id+"/holdfast.yaml"), candidateNamed(id))
		}
		point("..data", "a")
		point("holdfast.yaml", "..data/holdfast.yaml")
		f := NewFeed(Source{Location: at("holdfast.yaml")})
		require.Equal(t, "a", news(t, f))
		point("..data", "b")
		require.Equal(t, "b", news(t, f))
		require.NoError(t, os.RemoveAll(at("a")))
		require.Empty(t, news(t, f))
		put(t, at("b/holdfast.yaml"), candidateNamed("c"))
		require.Equal(t, "c", news(t, f), "the link's target was written to")
	})
}

// desk serves a configuration, and counts how it was asked.
type desk struct {
	text, etag string
	status     int
	asked      []string // If-None-Match of each request
	whole      int      // answers with a body
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	match := r.Header.Get("If-None-Match")
	d.asked = append(d.asked, match)
	switch {
	case d.status != 0:
		w.WriteHeader(d.status)
		return
	case d.etag != "" && d.etag == match:
		w.WriteHeader(http.StatusNotModified)
		return
	case d.etag != "":
		w.Header().Set("ETag", d.etag)
	}
	d.whole++
	_, _ = w.Write([]byte(d.text))
}

func TestFeedOfAURL(t *testing.T) {
	for _, tags := range []bool{true, false} {
		d := &desk{}
		say := func(text, tag string) {
			if d.text = text; tags {
				d.etag = tag
			}
		}
		server := httptest.NewServer(d)
		defer server.Close()
		f := NewFeed(Source{Location: server.URL + "/c"})
		require.False(t, f.File())
		say(candidateNamed("a"), `"1"`)
		require.Equal(t, "a", news(t, f))
		require.Empty(t, news(t, f))
		say(candidateNamed("a"), `"2"`)
		require.Empty(t, news(t, f), "another tag for the same content")
		say(candidateNamed("b"), `W/"3"`)
		require.Equal(t, "b", news(t, f))

		d.status = http.StatusServiceUnavailable
		require.Equal(t, server.URL+"/c: answers with status 503", news(t, f))
		require.Empty(t, news(t, f))
		d.status = http.StatusForbidden
		require.Equal(t, server.URL+"/c: answers with status 403", news(t, f), "another trouble")
		d.status = 0
		require.Empty(t, news(t, f))
		say("colour: red\n", `"4"`)
		require.Contains(t, news(t, f), `/c:1: unknown key "colour"`)
		whole := d.whole
		require.Empty(t, news(t, f))
		if tags {
			require.Equal(t, whole, d.whole, "what was refused isn't sent again")
			require.Equal(t, []string{"", `"1"`, `"1"`, `"2"`, `W/"3"`, `W/"3"`, `W/"3"`, `W/"3"`, `W/"3"`, `"4"`}, d.asked)
		} else {
			require.Equal(t, make([]string, 10), d.asked)
		}
		d.status = http.StatusNotModified
		if !tags {
			require.Contains(t, news(t, f), "answers with status 304", "nobody asked for that")
		}
	}
}

// What fails for the same reason is told once, though each connection has a port of its own.
func TestFeedTellsOfALostServerOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "100")
		}
		_, _ = w.Write([]byte(minimal))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	cut := NewFeed(Source{Location: server.URL + "/cut"})
	require.Contains(t, news(t, cut), "/cut: reading: unexpected EOF")
	server.Close()
	for _, location := range []string{server.URL, "http://nowhere.invalid/c"} {
		f := NewFeed(Source{Location: location})
		f.seen[0] = 1 // it was there before
		require.Contains(t, news(t, f), "can't be reached: ")
		require.Empty(t, news(t, f))
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := NewFeed(Source{Location: "http://127.0.0.1:1/"}).Next(ctx)
	require.ErrorContains(t, err, "can't be reached: context canceled")
}

func TestFeedOfTheEmbedded(t *testing.T) {
	f := NewFeed(Source{Lookup: func(string) (string, bool) { return "", false }})
	require.False(t, f.File())
	c, _, err := f.Next(t.Context())
	require.NoError(t, err)
	require.True(t, c.Embedded)
	require.Empty(t, news(t, f))
}

// A changed environment is no change; a changed file sees it.
func TestFeedLooksUpTheEnvironmentAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	name := "echo"
	f := NewFeed(Source{Location: path, Lookup: func(string) (string, bool) { return name, true }})
	put(t, path, strings.Replace(candidateNamed("x"), "echo", `"${MODEL}"`, 1))
	require.Equal(t, "x", news(t, f))
	name = "text=hi"
	require.Empty(t, news(t, f))
	put(t, path, strings.Replace(candidateNamed("y"), "echo", `"${MODEL}"`, 1))
	c, _, err := f.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, name, c.Candidates[0].Model)
}
