// Package docs has no code: its tests check what the documents say of the code.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every test that the reports' pages name exists, with the row of its table where one is named.
func TestReportsNameTestsThatExist(t *testing.T) {
	for page, least := range map[string]int{"reports.md": 70, "breaker-reports.md": 80} {
		t.Run(page, func(t *testing.T) { testsExist(t, page, least) })
	}
}

func testsExist(t *testing.T, page string, least int) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	named := regexp.MustCompile("`([a-z/]+) (Test[A-Za-z0-9]+)(?:/([^`]+))?`").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(named), least)
	for _, n := range named {
		code := testsOf(t, n[1])
		require.Regexp(t, `func `+n[2]+`\(`, code, "%s has no %s", n[1], n[2])
		if n[3] != "" {
			require.Contains(t, code, `"`+n[3]+`"`, "%s in %s has no such row", n[2], n[1])
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "| [") {
			require.Regexp(t, "\\| `[a-z/]+ Test", line, "a report without a test")
		}
	}
}

// testsOf is the text of all tests of a package below internal, or of one that stands beside it.
func testsOf(t *testing.T, dir string) string {
	if dir != "functions" {
		dir = filepath.Join("internal", dir)
	}
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, dir)
	var all strings.Builder
	for _, f := range files {
		code, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(code)
	}
	return all.String()
}
