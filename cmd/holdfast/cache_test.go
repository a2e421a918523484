package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCacheUse(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no verb", []string{"cache"}, "purge or forget has to be said"},
		{"another verb", []string{"cache", "drop"}, "purge or forget has to be said"},
		{"no tenant", []string{"cache", "purge", "--database-url", nowhere}, "a tenant has to be named"},
		{"forget everything", []string{"cache", "forget", "--tenant", "t", "--database-url", nowhere}, "a question or a key has to be named"},
		{"forget a user", []string{"cache", "forget", "--tenant", "t", "--user", "u"}, "flag provided but not defined: -user"},
		{"no database", []string{"cache", "purge", "--tenant", "t"}, "which database?"},
		{"forget for no time", []string{"cache", "forget", "--tenant", "t", "--question", "q", "--for", "soon"}, "--for \"soon\": a time such as 90m or 720h"},
		{"no key", []string{"cache", "purge", "--tenant", "t", "--key", "12", "--database-url", nowhere}, "a key has 64 digits of hex"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := call(t, tt.args)
			require.Equal(t, exitRefused, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.Contains(t, stderr, "usage: holdfast cache purge")
		})
	}
}

const nowhere = "postgres://u:CANARY@127.0.0.1:1/none?connect_timeout=1"

func TestCachePurgeThatFails(t *testing.T) {
	for _, args := range [][]string{
		{"cache", "purge", "--tenant", "t", "--database-url", nowhere},
		{"cache", "forget", "--tenant", "t", "--question", "my question", "--database-url", nowhere},
	} {
		status, stdout, stderr := call(t, args)
		require.Equal(t, exitFailed, status, stderr)
		require.Empty(t, stdout)
		require.NotContains(t, stderr, "CANARY")
		require.NotContains(t, stderr, "my question")
	}
}
