package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWilson(t *testing.T) {
	for _, c := range []struct {
		right, all int
		low, high  float64
	}{{1484, 1492, .9894, .9973}, {142, 142, .9737, 1}, {0, 10, 0, .2775}} {
		low, high := wilson(c.right, c.all)
		require.InDelta(t, c.low, low, 1e-3)
		require.InDelta(t, c.high, high, 1e-3)
	}
}

func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"a": "怎么做红烧肉", "b": "怎么做红烧肉", "same": true, "set": "x"}
{"a": "怎么做红烧肉", "b": "红烧肉怎么做？", "same": true, "set": "x"}
{"a": "怎么做红烧肉", "b": "如何做红烧鱼", "same": false, "set": "x"}
{"a": "今天吃什么好", "b": "今天吃点什么好", "same": true, "set": "x"}
{"a": "Is it safe to swim?", "b": "is it safe to swim", "same": false, "set": "y"}
`), 0o600))
	var out bytes.Buffer
	require.NoError(t, run(&out, path, shown{wrong: true, missed: true}))
	for _, line := range []string{
		"### x", "4 pairs, 3 the same; 1 of them, 1 the same, in identical words: left out below.",
		"Of 6 questions, 2 are never stored (33.3 %).",
		"| – | exact only | 0 / 0 | – | 0.000 |  |",
		"| – | and canonical | 1 / 1 | 1.0000 [0.207, 1.000] | 0.500 | canonical 1/1 |",
		"missed: 今天吃什么好 | 今天吃点什么好",
		"Retrieval, `strict`, all 2 first questions stored, all second ones asked: 1 hits: 0 in identical words, 1 labelled the same, 0 different, 0 of other pairs.",
		"### y", "wrong (strict, canonical): Is it safe to swim? | is it safe to swim",
		"| built-in | strict | 0 / 1 | 0.0000 [0.000, 0.793] | 0.000 | canonical 0/1 |",
	} {
		require.Contains(t, out.String(), line)
	}
}

func TestRunSaysWhatIsWrongWithAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	require.ErrorIs(t, run(&bytes.Buffer{}, path, shown{}), os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("{}\nnot JSON\n"), 0o600))
	require.ErrorContains(t, run(&bytes.Buffer{}, path, shown{}), "pairs.jsonl:2")
}
