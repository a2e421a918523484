package cache

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sample in testdata judges what is served; it isn't to be tuned to. Identical texts are left out.
func TestPrecisionOnPairs(t *testing.T) {
	embedder, log := sharedBuiltin(), slog.New(slog.DiscardHandler)
	type figures struct{ right, wrong, same int }
	got := map[string]*figures{}
	for _, p := range pairs(t) {
		if literal(p.A) == literal(p.B) {
			continue
		}
		memory := NewMemory(1)
		for _, accept := range []string{"strict", acceptSimilar} {
			cache := New(Settings{Accept: accept}, memory, embedder, log)
			store(t, cache, text(p.A))
			f := got[accept+" "+p.Set]
			if f == nil {
				f = &figures{}
				got[accept+" "+p.Set] = f
			}
			if p.Same {
				f.same++
			}
			switch served := rule(t, cache, text(p.B)) != ""; {
			case served && p.Same:
				f.right++
			case served:
				f.wrong++
				t.Logf("wrong: %s | %s", p.A, p.B)
			}
		}
	}
	for name, want := range map[string]struct {
		precision float64
		hits      int // at least, so that the precision means something
	}{
		"strict paws-x-zh":      {0.95, 3},
		"strict checklist-qqp":  {0.99, 30},
		"strict faq-zh":         {0.99, 100},
		"strict fresh-zh":       {0.95, 20},
		"strict faq-en":         {0.99, 25},
		"similar paws-x-zh":     {0.95, 3},
		"similar checklist-qqp": {0.99, 30},
		"similar faq-zh":        {0.97, 100},
		"similar fresh-zh":      {0.95, 20},
		"similar faq-en":        {0.99, 25},
	} {
		t.Run(name, func(t *testing.T) {
			f := got[name]
			t.Logf("right %d, wrong %d, of %d that are the same", f.right, f.wrong, f.same)
			require.GreaterOrEqual(t, f.right+f.wrong, want.hits)
			require.GreaterOrEqual(t, float64(f.right)/float64(f.right+f.wrong), want.precision)
		})
	}
}

type pair struct {
	A, B, Set, Tag string
	Same           bool
}

func pairs(t *testing.T) []pair {
	file, err := os.Open("testdata/pairs.jsonl")
	require.NoError(t, err)
	defer file.Close()
	var out []pair
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var p pair
		require.NoError(t, json.Unmarshal(lines.Bytes(), &p))
		out = append(out, p)
	}
	return out
}
