package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// discard is a writer that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}

// passing is an exchange in the middle of a stream.
func passing(tb testing.TB) (func(providers.Chunk) error, func()) {
	w := &writer{ResponseWriter: discard{http.Header{}}}
	x := &exchange{w: w, draft: &draft{}, answer: routing.NewAnswer(routing.Trace{}, nil)}
	out := openSink(w, func() { tb.Error("the caller is gone") })
	x.tally.text = make([]byte, 0, 2*maxText)
	return func(c providers.Chunk) error {
		x.tally.add(c)
		return x.pass(out, c, false)
	}, out.close
}

var rightChunks = map[string]string{
	"plain":   `{"content":" answer"}`,
	"escapes": `{"content":"\n\u4f60\"好 "}`,
	"tools":   `{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \"Par"}}]}`,
}

// TestAChunkCostsNoAllocation is the gate of the hot path.
func TestAChunkCostsNoAllocation(t *testing.T) {
	for name, delta := range rightChunks {
		t.Run(name, func(t *testing.T) {
			pass, end := passing(t)
			defer end()
			c := data(delta, "").chunk
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				if err := pass(c); err != nil {
					t.Error(err)
				}
			}))
		})
	}
}

func BenchmarkChunk(b *testing.B) {
	for name, delta := range rightChunks {
		b.Run(name, func(b *testing.B) {
			pass, end := passing(b)
			defer end()
			c := data(delta, "").chunk
			b.SetBytes(int64(len(c.Data)))
			b.ReportAllocs()
			for b.Loop() {
				_ = pass(c)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	turn := `{"role":"user","content":"` + strings.Repeat("How do bridges carry heavy loads? ", 30) + `"},`
	body := []byte(`{"stream":true,"messages":[` + strings.Repeat(turn, 20) + turn[:len(turn)-1] + `]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCollect(b *testing.B) {
	var chunks [][]byte
	for range 500 {
		chunks = append(chunks, []byte(chunkJSON(`{"content":" answer"}`, "")))
	}
	b.ReportAllocs()
	for b.Loop() {
		c := newCollector()
		for _, chunk := range chunks {
			c.add(chunk)
		}
		c.render([]byte(`{}`), describeTrace(&routing.Trace{}))
	}
}
