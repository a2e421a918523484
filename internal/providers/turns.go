package providers

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// block is one part of a turn in a native dialect.
type block = map[string]any

// turn is what one side says until the other does.
type turn struct {
	role   string
	blocks []block
}

// turns are a conversation whose sides alternate, as native dialects demand.
type turns []turn

// add lets a side say more. What is empty is not said.
func (t *turns) add(role string, blocks ...block) {
	if len(blocks) == 0 {
		return
	}
	if last := len(*t) - 1; last >= 0 && (*t)[last].role == role {
		(*t)[last].blocks = append((*t)[last].blocks, blocks...)
		return
	}
	*t = append(*t, turn{role, blocks})
}

// goOn is what the user says first where he says nothing: native dialects demand that he begins, also where only the
// system prompt is there.
const goOn = "Continue."

// opened are turns that begin with the user, at least with first.
func (t turns) opened(first block) turns {
	if len(t) > 0 && t[0].role == "user" {
		return t
	}
	return append(turns{{"user", []block{first}}}, t...)
}

// objects are the turns as JSON has them, the blocks under the given name.
func (t turns) objects(name string) []block {
	out := make([]block, len(t))
	for i, turn := range t {
		out[i] = block{"role": turn.role, name: turn.blocks}
	}
	return out
}

// callIDs gives the tool calls of a history ids that any target takes: of plain characters, none twice. A call and its
// result get the same.
type callIDs struct {
	taken map[string]bool
	open  map[string][]string // calls without a result yet, by their id in the history
}

func newCallIDs() *callIDs {
	return &callIDs{taken: map[string]bool{}, open: map[string][]string{}}
}

// call is the id of a new call.
func (c *callIDs) call(id string) string {
	clean := plainID(id)
	for n := len(c.taken); clean == "" || c.taken[clean]; n++ {
		clean = fmt.Sprintf("call_%d", n)
	}
	c.taken[clean] = true
	c.open[id] = append(c.open[id], clean)
	return clean
}

// result is the id of the call that a result is for: the oldest that has none.
func (c *callIDs) result(id string) string {
	if open := c.open[id]; len(open) > 0 {
		c.open[id] = open[1:]
		return open[0]
	}
	return plainID(id)
}

// plainID makes _ of all but letters, digits, _ and -.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if isWord(r) || r == '-' {
			return r
		}
		return '_'
	}, id)
}

// newest is the version of a model of a family whose name tells none.
const newest = math.MaxInt

// modelVersion reads the version out of a model's name, as 100 × major + minor: 405 for claude-sonnet-4-5-20250929, 205
// for gemini-2.5-pro. 0 for a model of another family.
func modelVersion(name, family string) int {
	_, rest, ok := strings.Cut(strings.ToLower(name), family)
	if !ok {
		return 0
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return !isWord(r) || r == '_' })
	for i, word := range words {
		major, ok := versionNumber(word)
		if !ok {
			continue
		}
		minor := 0
		if i+1 < len(words) {
			minor, _ = versionNumber(words[i+1])
		}
		return 100*major + minor
	}
	return newest
}

// versionNumber is a number of at most two digits: longer ones are dates.
func versionNumber(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	if err != nil || len(word) > 2 {
		return 0, false
	}
	return n, true
}
