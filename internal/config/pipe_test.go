//go:build unix

package config

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pipe in the file's place, with nobody or somebody silent at its other end, keeps no reader for ever: whoever waits
// for the reader would wait with it.
func TestFeedOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	put(t, path, candidateNamed("a"))
	f := NewFeed(Source{Location: path})
	require.Equal(t, "a", news(t, f))
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	age(t, path, long)
	next := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _, err := f.Next(ctx)
		return err
	}
	require.ErrorContains(t, next(), "the configuration is empty", "nobody writes")
	silent, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	require.ErrorContains(t, next(), path+": reading: i/o timeout", "somebody may")
}
