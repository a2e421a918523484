package providers

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// read is one event, kept.
type read struct {
	Name, Data string
	Status     int
	Open       bool
}

func readEvents(r io.Reader) ([]read, error) {
	s := newSSE(r)
	var out []read
	for {
		ev, err := s.next()
		if err != nil {
			return out, err
		}
		out = append(out, read{string(ev.name), string(ev.data), ev.status, ev.open})
	}
}

func TestSSEReadsWhatProvidersWrite(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []read
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", []read{{Data: "a"}}},
		{"no space after the colon", "data:a\n\n", []read{{Data: "a"}}},
		{"only one space goes", "data:  a \n\n", []read{{Data: " a "}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []read{{Data: "a"}, {Data: "b"}}},
		{"CR", "data: a\r\rdata: b\r\r", []read{{Data: "a"}, {Data: "b"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []read{{Data: "a"}}},
		{"a mark that stands alone", "\xef\xbb\xbf", nil},
		{"several lines", "data: a\ndata:\ndata: b\n\n", []read{{Data: "a\n\nb"}}},
		{"a field without colon", "data\n\n", []read{{Data: ""}}},
		{"comments", ": OPENROUTER PROCESSING\n\n: ping\ndata: a\n\n", []read{{Data: "a"}}},
		{"name", "event: x\ndata: a\n\ndata: b\n\n", []read{{Name: "x", Data: "a"}, {Data: "b"}}},
		{"a name without data is none", "event: ping\n\ndata: a\n\n", []read{{Data: "a"}}},
		{"but an error is one", "event: error\n\ndata: a\n\n", []read{{Name: "error"}, {Data: "a"}}},
		{"ids, retries and strangers", "id: 1\nretry: 5\nx: y\ndata: a\n\n", []read{{Data: "a"}}},
		{
			"DashScope's error", "id:1\nevent:error\n:HTTP_STATUS/400\ndata:{\"code\":\"X\"}\n\n",
			[]read{{Name: "error", Data: `{"code":"X"}`, Status: 400}},
		},
		{
			"a status is of its own event", ":HTTP_STATUS/200\ndata:a\n\ndata:b\n\n",
			[]read{{Data: "a", Status: 200}, {Data: "b"}},
		},
		{
			"a raw error line", "data: a\n\nerror: {\"detail\":1}\n\ndata: [DONE]\n\n",
			[]read{{Data: "a"}, {Name: "error", Data: `{"detail":1}`}, {Data: "[DONE]"}},
		},
		{
			"a raw error line amid an event", "data: a\nerror: b\ndata: c\n\n",
			[]read{{Data: "a"}, {Name: "error", Data: "b"}, {Data: "c"}},
		},
		{"no blank line at the end", "data: a\n\ndata: b\n", []read{{Data: "a"}, {Data: "b", Open: true}}},
		{"no line end at the end", "data: a\n\ndata: b", []read{{Data: "a"}, {Data: "b", Open: true}}},
		{"a raw error line at the end", "error: b", []read{{Name: "error", Data: "b", Open: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readEvents(strings.NewReader(tt.body))
			require.Equal(t, io.EOF, err)
			require.Equal(t, tt.want, got)
			for cut := range len(tt.body) {
				got, err := readEvents(io.MultiReader(strings.NewReader(tt.body[:cut]), strings.NewReader(tt.body[cut:])))
				require.Equal(t, io.EOF, err)
				require.Equal(t, tt.want, got, "split at byte %d", cut)
			}
			got, _ = readEvents(iotest.OneByteReader(strings.NewReader(tt.body)))
			require.Equal(t, tt.want, got, "byte by byte")
		})
	}
}

// An event is given when its last byte is there, not when the next one begins.
func TestSSEGivesAnEventAtOnce(t *testing.T) {
	for name, body := range map[string]string{"LF": "data: a\n\n", "CRLF": "data: a\r\n\r\n", "CR": "data: a\r\r"} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			defer r.Close()
			go w.Write([]byte(body))
			ev, err := newSSE(r).next() // the pipe stays open: a reader that looks ahead hangs here
			require.NoError(t, err)
			require.Equal(t, "a", string(ev.data))
		})
	}
}

func TestSSELongEvents(t *testing.T) {
	for name, n := range map[string]int{"100 KB": 100 << 10, "2 MB": 2 << 20, "just below the cap": maxEvent - 100} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat("x", n)
			got, err := readEvents(strings.NewReader("data: " + text + "\n\ndata: b\n\n"))
			require.Equal(t, io.EOF, err)
			require.Len(t, got, 2)
			require.Len(t, got[0].Data, n)
		})
	}
	many := strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17)
	for name, body := range map[string]string{
		"one line above the cap":    "data: " + strings.Repeat("x", maxEvent+1) + "\n\n",
		"many lines above the cap":  many + "\n",
		"a line that never ends":    strings.Repeat("x", maxEvent+8<<10),
		"an event that never ends ": many,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readEvents(strings.NewReader(body))
			require.Empty(t, got)
			require.Equal(t, KindMalformed, AsError(err).Kind)
			require.Equal(t, "too_large", AsError(err).Code)
		})
	}
}

func TestSSEPassesOnWhyReadingFailed(t *testing.T) {
	broken := errors.New("broken")
	body := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))
	got, err := readEvents(body)
	require.Equal(t, broken, err)
	require.Equal(t, []read{{Data: "a"}}, got, "half a line before a reset is no event")

	_, err = readEvents(stuck{})
	require.Equal(t, io.ErrNoProgress, err)
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestSSEFirst(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		first      byte
		rest       string
	}{
		{"JSON", "{}", '{', "{}"},
		{"white space before", "\n\n \t\r\n{} ", '{', "{} "},
		{"a mark before", "\xef\xbb\xbf {}", '{', "{}"},
		{"an event", "data: a\n\n", 'd', "data: a\n\n"},
		{"less than a mark", "{", '{', "{"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.body), iotest.OneByteReader(strings.NewReader(tt.body))} {
				s := newSSE(r)
				first, err := s.first()
				require.NoError(t, err)
				require.Equal(t, string(tt.first), string(first))
				rest, err := s.rest()
				require.NoError(t, err)
				require.Equal(t, tt.rest, string(rest))
			}
		})
	}
	for _, body := range []string{"", " \n", "\xef\xbb\xbf"} {
		_, err := newSSE(strings.NewReader(body)).first()
		require.Equal(t, io.EOF, err, "%q", body)
	}
	s := newSSE(strings.NewReader("{" + strings.Repeat(" ", maxEvent+8<<10)))
	_, err := s.first()
	require.NoError(t, err)
	_, err = s.rest()
	require.Equal(t, "too_large", AsError(err).Code)
}

// FuzzSSE holds the reader to what doesn't depend on how the bytes arrive, and to the standard's own words for a
// body of plain data events.
func FuzzSSE(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "\xef\xbb\xbfdata: a\r\n\r\n:c\rerror: b\r", "event: error\n\nid:1\n:HTTP_STATUS/429\ndata:x"} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, piece uint8) {
		want, err := readEvents(bytes.NewReader(body))
		require.Equal(t, io.EOF, err)
		got, err := readEvents(iotest.OneByteReader(bytes.NewReader(body)))
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, got)
		at := min(int(piece), len(body))
		got, _ = readEvents(io.MultiReader(bytes.NewReader(body[:at]), bytes.NewReader(body[at:])))
		require.Equal(t, want, got)
		for _, ev := range want {
			require.NotContains(t, ev.Data, "\r")
		}
	})
}

func TestSSEAllocatesNothingAnEvent(t *testing.T) {
	s := newSSE(&endless{text: []byte("data: {\"a\":1}\n\n")})
	_, err := s.next()
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := s.next(); err != nil {
			panic(err)
		}
	}))
}

// endless gives a text again and again.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}
