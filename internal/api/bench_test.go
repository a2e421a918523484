package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

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

// endless is a provider whose one answer never ends.
type endless struct {
	first, again string
	at           int
}

func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: e, Request: r}, nil
}

func (e *endless) Read(p []byte) (n int, err error) {
	if e.first != "" {
		n = copy(p, e.first)
		e.first = e.first[n:]
		return n, nil
	}
	n = copy(p, e.again[e.at:])
	e.at = (e.at + n) % len(e.again)
	return n, nil
}

func (e *endless) Close() error { return nil }

// committed is a chunk's whole way behind the commit: read from the provider, through routing, to the caller.
func committed(tb testing.TB, delta string) (func() error, func()) {
	e := &endless{
		first: "data: " + chunkJSON(`{"role":"assistant","content":"a"}`, "") + "\n\n",
		again: "data: " + chunkJSON(delta, "") + "\n\n",
	}
	req := &routing.Request{
		Request: &providers.Request{Raw: []byte(`{"messages":[]}`)}, RouteID: "r", Received: time.Now(),
	}
	answer := through(tb, "http://provider.test", e).Answer(context.Background(), req)
	require.Nil(tb, answer.Failure)
	x := &exchange{w: &writer{ResponseWriter: discard{http.Header{}}}, draft: &draft{}, answer: answer}
	out := openSink(x.w, func() { tb.Error("the caller is gone") })
	x.tally.text = make([]byte, 0, 2*maxText)
	step := func() error {
		chunk, err := x.next(out)
		if err != nil {
			return err
		}
		x.tally.add(chunk)
		return x.pass(out, chunk, false)
	}
	return step, func() {
		out.close()
		answer.Close()
	}
}

// TestACommittedChunkCostsNoAllocation is the same gate for the whole way.
func TestACommittedChunkCostsNoAllocation(t *testing.T) {
	for name, delta := range rightChunks {
		t.Run(name, func(t *testing.T) {
			step, end := committed(t, delta)
			defer end()
			for range 100 { // buffers grow
				require.NoError(t, step())
			}
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				if err := step(); err != nil {
					t.Error(err)
				}
			}))
		})
	}
}

// BenchmarkCommitted is what a chunk of OpenAI's costs from the provider's bytes to the caller's.
func BenchmarkCommitted(b *testing.B) {
	for name, delta := range rightChunks {
		b.Run(name, func(b *testing.B) {
			step, end := committed(b, delta)
			defer end()
			b.ReportAllocs()
			for b.Loop() {
				if err := step(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChunk is what a chunk costs here: read for the tally, framed, written.
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
