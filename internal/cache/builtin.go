package cache

import (
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// builtinID is the built-in embedder's: a static table for Chinese and English that needs no network.
const builtinID = "e5s-128-int8-v1"

// Compressed, since every cold start loads the binary and few need this.
var (
	//go:embed builtin/tokens.tsv.gz
	builtinPieces string
	//go:embed builtin/static-e5s-128-int8.bin.gz
	builtinTable string
)

// NewBuiltin makes the embedder that needs no network. Its data is read at the first text, off the way of a healthy request.
func NewBuiltin() Embedder {
	return builtin{load: sync.OnceValues(loadBuiltin)}
}

func loadBuiltin() (*staticTable, error) {
	pieces, err := inflate(builtinPieces)
	if err != nil {
		return nil, err
	}
	table, err := inflate(builtinTable)
	if err != nil {
		return nil, err
	}
	return readTable(pieces, table)
}

func inflate(data string) (string, error) {
	zipped, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.Grow(len(data) + len(data)/4)
	_, err = io.Copy(&out, zipped)
	return out.String(), err
}

type builtin struct{ load func() (*staticTable, error) }

func (builtin) ID() string { return builtinID }

func (b builtin) Embed(_ context.Context, text string) (Vector, error) {
	t, err := b.load()
	if err != nil {
		return Vector{}, err
	}
	return t.embed(text), nil
}

// staticTable holds a vocabulary with a log-probability and a row a piece. A row is scale × int8s.
type staticTable struct {
	pieces  map[string]int32
	logs    []float32
	longest int // in runes
	unknown float32
	scales  []float32
	rows    string // dims bytes a row
	dims    int
}

const (
	tableMagic  = "HFSE"
	tableHeader = 4 + 4*4 // magic, then version, rows, dims, bits
	wordStart   = "▁"
	noPiece     = -1 // the id of a rune that no piece has
)

func readTable(pieces, table string) (*staticTable, error) {
	t := &staticTable{}
	if err := t.readPieces(pieces); err != nil {
		return nil, err
	}
	if len(table) < tableHeader || table[:4] != tableMagic {
		return nil, errors.New("read embedder table: not a table")
	}
	number := func(i int) int { return int(binary.LittleEndian.Uint32([]byte(table[4+4*i : 8+4*i]))) }
	version, rows, dims, bits := number(0), number(1), number(2), number(3)
	if version != 1 || bits != 8 || rows != len(t.logs) || len(table) != tableHeader+rows*(4+dims) {
		return nil, fmt.Errorf("read embedder table: version %d, %d rows of %d × %d bits don't fit", version, rows, dims, bits)
	}
	t.dims, t.scales = dims, make([]float32, rows)
	for i := range t.scales {
		at := tableHeader + 4*i
		t.scales[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(table[at : at+4])))
	}
	t.rows = table[tableHeader+4*rows:]
	return t, nil
}

func (t *staticTable) readPieces(text string) error {
	n := strings.Count(text, "\n")
	t.pieces, t.logs = make(map[string]int32, n), make([]float32, 0, n)
	lowest := float32(0)
	for line := range strings.Lines(text) {
		piece, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		logp, err := strconv.ParseFloat(value, 32)
		if !found || err != nil {
			return fmt.Errorf("read embedder pieces: line %d", len(t.logs)+1)
		}
		t.pieces[piece] = int32(len(t.logs))
		t.logs = append(t.logs, float32(logp))
		t.longest = max(t.longest, utf8.RuneCountInString(piece))
		lowest = min(lowest, float32(logp))
	}
	t.unknown = lowest - 10
	return nil
}

// embed sums the rows of the text's pieces.
func (t *staticTable) embed(text string) Vector {
	sum, unknown := make([]float32, t.dims), 0
	for _, id := range t.segment(text) {
		if id == noPiece {
			unknown++
			continue
		}
		row, scale := t.rows[int(id)*t.dims:int(id+1)*t.dims], t.scales[id]
		for i := range sum {
			sum[i] += scale * float32(int8(row[i]))
		}
	}
	return Vector{Values: unit(sum), Unknown: unknown}
}

// segment is unigram Viterbi: the pieces with the largest sum of log-probabilities.
func (t *staticTable) segment(text string) []int32 {
	text = pieceText(text)
	starts := make([]int, 0, len(text)) // byte offsets of the runes, and the end
	for i := range text {
		starts = append(starts, i)
	}
	starts = append(starts, len(text))
	n := len(starts) - 1
	type step struct {
		score float32
		from  int
		id    int32
	}
	best := make([]step, n+1)
	for end := 1; end <= n; end++ {
		best[end] = step{score: best[end-1].score + t.unknown, from: end - 1, id: noPiece}
		for from := max(0, end-t.longest); from < end; from++ {
			id, ok := t.pieces[text[starts[from]:starts[end]]]
			if score := best[from].score; ok && score+t.logs[id] > best[end].score {
				best[end] = step{score: score + t.logs[id], from: from, id: id}
			}
		}
	}
	var ids []int32
	for at := n; at > 0; at = best[at].from {
		ids = append(ids, best[at].id)
	}
	slices.Reverse(ids)
	return ids
}

// pieceText is how the vocabulary sees a text: lower case, letters and numbers only, each word with its mark.
func pieceText(text string) string {
	folded := strings.ToLower(norm.NFKC.String(text))
	words := strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(words) == 0 {
		return ""
	}
	return wordStart + strings.Join(words, wordStart)
}
