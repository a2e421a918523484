package cache

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuiltinReproducesItsTestVectors(t *testing.T) {
	table, err := loadBuiltin()
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
			v, err := sharedBuiltin().Embed(context.Background(), text)
			require.NoError(t, err)
			require.Nil(t, v.Values)
		})
	}
	v, err := sharedBuiltin().Embed(context.Background(), "ꙮꙮ")
	require.NoError(t, err)
	require.Equal(t, 2, v.Unknown)
}

// The data is the one whose provenance NOTICE tells.
func TestBuiltinData(t *testing.T) {
	for data, want := range map[string]string{
		builtinPieces: "ea0f009d5adf36b43adb601cf9eb617b2fe1e9c2d2dbc847faaa303798e0a12a",
		builtinTable:  "4eafb388c98292374bb8f8e045e9b917b9d40bc5c350ef410b19123a489ac301",
	} {
		inflated, err := inflate(data)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("%x", sha256.Sum256([]byte(inflated))))
	}
	_, err := inflate("not gzip")
	require.Error(t, err)
}

func TestReadTableRefusesWhatIsNone(t *testing.T) {
	pieces, err := inflate(builtinPieces)
	require.NoError(t, err)
	whole, err := inflate(builtinTable)
	require.NoError(t, err)
	for name, table := range map[string]string{
		"empty":       "",
		"other magic": "ABCD" + whole[4:],
		"cut":         whole[:len(whole)-1],
		"header only": whole[:tableHeader],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readTable(pieces, table)
			require.Error(t, err)
		})
	}
	_, err = readTable("▁ -3.9\n", whole)
	require.ErrorContains(t, err, "line 1")
}

// What doesn't need the table doesn't read it: a cold start, English, what is found by its words.
func TestBuiltinIsReadWhenNeeded(t *testing.T) {
	loads := 0
	e := builtin{load: sync.OnceValues(func() (*staticTable, error) { loads++; return loadBuiltin() })}
	c := New(Settings{Accept: acceptSimilar}, NewMemory(0), e, slog.New(slog.DiscardHandler))
	store(t, c, text("How do bridges carry heavy loads?"))
	require.Empty(t, rule(t, c, text("How do cranes carry heavy loads?")))
	require.Zero(t, loads)
	store(t, c, text("怎么在网上选车牌号？"))
	require.Equal(t, 1, loads)
	require.Equal(t, ruleSimilar, rule(t, c, text("网上怎么选车牌号")))
	require.Equal(t, 1, loads)
}

func BenchmarkBuiltinLoad(b *testing.B) {
	for b.Loop() {
		if _, err := loadBuiltin(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuiltinEmbed(b *testing.B) {
	table, err := loadBuiltin()
	require.NoError(b, err)
	for b.Loop() {
		table.embed("怎么把信用卡的还款日改到每个月的十五号")
	}
}
