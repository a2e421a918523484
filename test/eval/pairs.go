package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// pair is two questions, and whether one answer serves both.
type pair struct {
	A, B, Set, Tag string
	Same           bool
}

// set is the pairs of one kind.
type set struct {
	name      string
	pairs     []pair // in different words
	identical count
}

// count is how many were served and how many of those rightly.
type count struct{ right, all int }

func (c *count) add(right bool) {
	c.all++
	if right {
		c.right++
	}
}

func (s *set) same() int {
	n := 0
	for _, p := range s.pairs {
		if p.Same {
			n++
		}
	}
	return n
}

// readPairs reads the sets of a file in the order of their first pairs.
func readPairs(path string) ([]*set, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var sets []*set
	byName := map[string]*set{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var p pair
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		name := cmp.Or(p.Set, "pairs")
		s := byName[name]
		if s == nil {
			s = &set{name: name}
			byName[name], sets = s, append(sets, s)
		}
		if strings.TrimSpace(p.A) == strings.TrimSpace(p.B) {
			s.identical.add(p.Same)
			continue
		}
		s.pairs = append(s.pairs, p)
	}
	return sets, lines.Err()
}
