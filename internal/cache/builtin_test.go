package cache

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuiltinReproducesItsTestVectors(t *testing.T) {
	table, err := readTable(builtinPieces, builtinTable)
	require.NoError(t, err)
	file, err := os.Open("testdata/testvectors.jsonl")
	require.NoError(t, err)
	defer file.Close()
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		var want struct {
			A, B string
			Cos8 float64
			Ids  []int32
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &want))
		require.Equal(t, want.Ids, table.segment(want.A), want.A)
		require.InDelta(t, want.Cos8, cosine(table.embed(want.A).Values, table.embed(want.B).Values), 1e-4, want.A)
	}
	require.Equal(t, 360, count)
}

func TestBuiltinHasNoVectorWithoutAPiece(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "punctuation": "?! …", "unknown runes": "ꙮꙮ"} {
		t.Run(name, func(t *testing.T) {
			v, err := NewBuiltin().Embed(context.Background(), text)
			require.NoError(t, err)
			require.Nil(t, v.Values)
		})
	}
	v, err := NewBuiltin().Embed(context.Background(), "ꙮꙮ")
	require.NoError(t, err)
	require.Equal(t, 2, v.Unknown)
}

func TestReadTableRefusesWhatIsNone(t *testing.T) {
	for name, table := range map[string]string{
		"empty":       "",
		"other magic": "ABCD" + builtinTable[4:],
		"cut":         builtinTable[:len(builtinTable)-1],
		"header only": builtinTable[:tableHeader],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readTable(builtinPieces, table)
			require.Error(t, err)
		})
	}
	_, err := readTable("▁ -3.9\n", builtinTable)
	require.ErrorContains(t, err, "line 1")
}

func BenchmarkBuiltinLoad(b *testing.B) {
	for b.Loop() {
		if _, err := readTable(builtinPieces, builtinTable); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuiltinEmbed(b *testing.B) {
	table, err := readTable(builtinPieces, builtinTable)
	require.NoError(b, err)
	for b.Loop() {
		table.embed("怎么把信用卡的还款日改到每个月的十五号")
	}
}
