// Command eval judges what the cache serves on pairs of questions of which people said whether one answer serves
// both. It asks the cache as the service does: the first question of a pair is stored, the second looked up.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"holdfast/internal/cache"
)

func main() {
	path := flag.String("pairs", "internal/cache/testdata/pairs.jsonl", "file of pairs, one JSON object a line: a, b, same, set, tag")
	wrong := flag.Bool("wrong", false, "name what was served and shouldn't have been")
	missed := flag.Bool("missed", false, "name what was missed, in mode similar")
	flag.Parse()
	if err := run(os.Stdout, *path, shown{*wrong, *missed}); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

// shown says which pairs are named.
type shown struct{ wrong, missed bool }

func run(out io.Writer, path string, show shown) error {
	sets, err := readPairs(path)
	if err != nil {
		return err
	}
	embedders := []embedder{{"built-in", cache.NewBuiltin()}, {"hashed", cache.NewHashed()}}
	for _, s := range sets {
		fmt.Fprintf(out, "\n### %s\n\n", s.name)
		fmt.Fprintf(out, "%d pairs, %d the same; %d of them, %d the same, in identical words: left out below.\n",
			len(s.pairs)+s.identical.all, s.same()+s.identical.right, s.identical.all, s.identical.right)
		n, err := s.refused()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Of %d questions, %d are never stored (%.1f %%).\n\n", 2*len(s.pairs), n, percent(n, 2*len(s.pairs)))
		fmt.Fprintln(out, "| embedder | rule | right / served | precision [95 %] | recall | by rule |")
		fmt.Fprintln(out, "|---|---|---|---|---|---|")
		for i, e := range embedders {
			if err := s.judge(out, e, i == 0, show); err != nil {
				return err
			}
		}
		if err := s.retrieve(out, embedders[0]); err != nil {
			return err
		}
	}
	return nil
}

type embedder struct {
	name string
	cache.Embedder
}

// open makes a cache as the service does.
func (e embedder) open(accept string, entries int) *cache.Cache {
	settings := cache.Settings{Accept: accept, MaxEntries: entries}
	return cache.New(settings, cache.NewMemory(entries), e.Embedder, slog.New(slog.DiscardHandler))
}

func question(text string) cache.Question { return cache.Question{Tenant: "eval", Text: text} }

// ask stores the first question and looks the second one up; "" is a miss.
func ask(c *cache.Cache, p pair) (rule string, err error) {
	if err := c.Store(context.Background(), question(p.A), "an answer"); err != nil {
		return "", err
	}
	hit, _, err := c.Lookup(context.Background(), question(p.B))
	return hit.Rule, err
}
