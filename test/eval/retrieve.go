package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
)

// retrieve stores all first questions in one scope and looks all second ones up. A hit on another pair's question is
// judged by nobody.
func (s *set) retrieve(out io.Writer, e embedder) error {
	for _, accept := range []string{"strict", "similar"} {
		c := e.open(accept, len(s.pairs)+1)
		places := map[string][]int{} // of the pairs whose first question has these words
		for i, p := range s.pairs {
			places[p.A] = append(places[p.A], i)
			if err := c.Store(context.Background(), question(p.A), strconv.Itoa(i)); err != nil {
				return err
			}
		}
		var hits, identical, same, different int
		for i, p := range s.pairs {
			hit, found, err := c.Lookup(context.Background(), question(p.B))
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			hits++
			at, _ := strconv.Atoi(hit.Text)
			switch own := s.pairs[at].A == p.A; {
			case hit.Rule == "exact":
				identical++
			case own && s.pairs[i].Same:
				same++
			case own:
				different++
			}
		}
		fmt.Fprintf(out, "\nRetrieval, `%s`, all %d first questions stored, all second ones asked: %d hits: %d in identical words, %d labelled the same, %d different, %d of other pairs.\n",
			accept, len(places), hits, identical, same, different, hits-identical-same-different)
	}
	return nil
}
