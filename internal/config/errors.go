package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds how many problems of one file are told.
const maxProblems = 50

// Problem is one thing that is wrong, or doubtful, in a configuration. Its text never holds a secret.
type Problem struct {
	File   string
	Line   int // 0: of the whole
	Reason string
}

// String is file:line: reason.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Reason
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Reason)
}

// Warning is a Problem with which one can still start.
type Warning = Problem

// Errors are all problems of a refused configuration, by line.
type Errors []Problem

// Error lists the problems, one a line.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, p := range e {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// inOrder sorts by line, drops repetitions and keeps what fits.
func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	problems = slices.Compact(problems)
	if more := len(problems) - maxProblems; more > 0 {
		last := problems[maxProblems]
		last.Reason = fmt.Sprintf("and %d more", more)
		problems = append(problems[:maxProblems:maxProblems], last)
	}
	return problems
}
