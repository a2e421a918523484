package config

import (
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds on what a file may make us do, whatever it says.
const (
	maxVisits = 50_000 // values looked at; aliases let a small file mean a huge one
	maxMerges = 8      // merge keys inside merge keys
)

// reader takes the value at a key path into its place, or says what is wrong with it.
type reader func(n *yaml.Node, path string)

// fields are the keys that a mapping may have.
type fields map[string]reader

// decoder walks the nodes of one file. Everything that is wrong is collected, so that one run tells all of it.
type decoder struct {
	file     string
	lookup   func(string) (string, bool)
	moreKeys bool                  // as in Source
	nodes    map[string]*yaml.Node // what was given, by key path: for checks that come later
	problems []Problem
	warnings []Warning
	visits   int
}

// fail notes what is wrong at a node. Beyond the bounds nothing more is said.
func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	if d.visits > maxVisits || len(d.problems) >= 10*maxProblems {
		return
	}
	line := 1
	if n != nil {
		line = n.Line
	}
	d.problems = append(d.problems, Problem{d.file, line, fmt.Sprintf(format, args...)})
}

// failAt notes what is wrong at a key path that was given.
func (d *decoder) failAt(path, format string, args ...any) {
	d.fail(d.nodes[path], "%s: %s", path, fmt.Sprintf(format, args...))
}

// warnAt notes what is doubtful at a key path; at the file as a whole where it wasn't given.
func (d *decoder) warnAt(path, format string, args ...any) {
	line := 0
	if n := d.nodes[path]; n != nil {
		line = n.Line
	}
	d.warnings = append(d.warnings, Warning{d.file, line, fmt.Sprintf(format, args...)})
}

// given says whether the file has a value at the key path.
func (d *decoder) given(path string) bool { return d.nodes[path] != nil }

// raw is the value at a key path as it stands in the file: what a reference stands for isn't told.
func (d *decoder) raw(path string) string {
	if n := d.nodes[path]; n != nil && n.Kind == yaml.ScalarNode {
		return brief(n.Value)
	}
	return ""
}

// follow gives the node that an alias stands for, and counts.
func (d *decoder) follow(n *yaml.Node) *yaml.Node {
	d.count(n)
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// count bounds the work that a file makes.
func (d *decoder) count(n *yaml.Node) {
	if d.visits++; d.visits == maxVisits {
		d.problems = nil // of a file of that size they would be as many
		d.fail(n, "the file means more than %d values", maxVisits)
		d.visits++
	}
}

func (d *decoder) exhausted() bool { return d.visits >= maxVisits }

// mapping reads a mapping whose keys are all known.
func (d *decoder) mapping(f fields) reader {
	return func(n *yaml.Node, path string) {
		for _, p := range d.pairs(n, path) {
			at := join(path, p.key)
			read, ok := f[p.key]
			if !ok {
				d.fail(p.keyNode, "unknown key %q%s%s", brief(p.key), inside(path), suggest(p.key, maps.Keys(f)))
				continue
			}
			d.visit(p.value, at, read)
		}
	}
}

// entries reads a mapping whose keys are names of the user's.
func (d *decoder) entries(read func(name string, n *yaml.Node, path string)) reader {
	return func(n *yaml.Node, path string) {
		for _, p := range d.pairs(n, path) {
			d.visit(p.value, join(path, p.key), func(n *yaml.Node, at string) { read(p.key, n, at) })
		}
	}
}

// list reads a list; read gets each item with its index.
func (d *decoder) list(read func(i int, n *yaml.Node, path string)) reader {
	return func(n *yaml.Node, path string) {
		if isNull(n) {
			return
		}
		if n.Kind != yaml.SequenceNode {
			d.fail(n, "%s wants a list, not %s", path, what(n))
			return
		}
		for i, item := range n.Content {
			d.visit(item, fmt.Sprintf("%s[%d]", path, i), func(n *yaml.Node, at string) { read(i, n, at) })
		}
	}
}

func (d *decoder) visit(n *yaml.Node, path string, read reader) {
	if n = d.follow(n); d.exhausted() {
		return
	}
	d.nodes[path] = n
	read(n, path)
}

// pair is one key of a mapping with its value.
type pair struct {
	key     string
	keyNode *yaml.Node
	value   *yaml.Node
}

// pairs gives the keys of a mapping in order, merge keys worked in. An empty value is an empty mapping.
func (d *decoder) pairs(n *yaml.Node, path string) []pair {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n, "%s wants a mapping of keys to values, not %s", named(path), what(n))
		return nil
	}
	return d.merged(n, path, 0)
}

func (d *decoder) merged(n *yaml.Node, path string, depth int) []pair {
	own, inherited := d.own(n, path)
	seen := map[string]bool{}
	for _, p := range own {
		seen[p.key] = true
	}
	for _, from := range inherited {
		if d.exhausted() {
			break
		}
		if from = d.follow(from); from.Kind != yaml.MappingNode || depth == maxMerges {
			d.fail(from, "%s: << wants a mapping, at most %d deep", named(path), maxMerges)
			continue
		}
		for _, p := range d.merged(from, path, depth+1) {
			if !seen[p.key] {
				seen[p.key] = true
				own = append(own, p)
			}
		}
	}
	return own
}

// own gives the keys that a mapping has itself, and the mappings that it merges.
func (d *decoder) own(n *yaml.Node, path string) (own []pair, inherited []*yaml.Node) {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content) && !d.exhausted(); i += 2 {
		d.count(n)
		key, value := n.Content[i], n.Content[i+1]
		switch first, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, "%s: a key must be plain text", named(path))
		case key.ShortTag() == "!!merge":
			inherited = append(inherited, sources(d.follow(value))...)
		case twice:
			d.fail(key, "key %q%s is given twice (first on line %d)", brief(key.Value), inside(path), first)
		default:
			lines[key.Value] = key.Line
			own = append(own, pair{key.Value, key, value})
		}
	}
	return own, inherited
}

// sources are the mappings that a merge key names: one, or a list.
func sources(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// join makes a key path. A key that is no plain word is quoted, so that a path stays one short line.
func join(path, key string) string {
	if !idPattern.MatchString(key) {
		key = strconv.Quote(brief(key))
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func inside(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

func named(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// what names the type of a node, never its value.
func what(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	}
	return "text"
}

// brief keeps a word of the file short enough for a message.
func brief(s string) string { return clip(s, 60) }

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// suggest gives the known name that was probably meant: the one with the fewest slips, two at most.
func suggest(key string, names iter.Seq[string]) string {
	const tooMany = 3
	best, slips := "", tooMany
	for known := range names {
		if n := edits(key, known, tooMany); n < slips || n == slips && known < best {
			best, slips = known, n
		}
	}
	if best == "" || slips >= len(best)-1 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// edits counts the letters to insert, drop or change until a is b, or gives limit where it is that many or more.
func edits(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return min(row[len(b)], limit)
}

// choices lists words for a message.
func choices(words []string) string { return strings.Join(words, ", ") }
