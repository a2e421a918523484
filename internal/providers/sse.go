package providers

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxEvent is the most that one event, or one body read whole, may hold.
const maxEvent = 16 << 20

// event is one server-sent event. Its slices are valid until the next call of next.
type event struct {
	name   []byte // of the event: field; "error" also for the raw error: lines of llama-box
	data   []byte // data lines joined by LF
	status int    // DashScope's :HTTP_STATUS/N comment before the data; 0 for none
	open   bool   // the body ended before the blank line that ends an event
}

// sseReader reads server-sent events. It is our own because what failing providers write is beyond the standard:
// error: lines that are no field, a status in a comment, a last event without its blank line. It gives an event as
// soon as its last byte is there and allocates nothing once its buffers have grown.
type sseReader struct {
	r      io.Reader
	buf    []byte
	pos    int // where the next line starts in buf
	end    int // where what was read ends in buf
	skipLF bool
	begun  bool // the first line, which may have a byte order mark, is behind us
	alien  bool // a line came that is nothing of SSE
	err    error

	name, data []byte
	status     int
	lines      int // data lines of the event so far
}

func newSSE(r io.Reader) *sseReader {
	return &sseReader{r: r, buf: make([]byte, 0, 8<<10)}
}

// next gives the next event. Its error is io.EOF at the end of the body, an *Error of KindMalformed for an event
// above the cap, else what reading gave.
func (s *sseReader) next() (event, error) {
	s.name, s.data, s.status, s.lines = s.name[:0], s.data[:0], 0, 0
	for {
		line, ok := s.line()
		switch {
		case !ok:
			return s.last()
		case isErrorLine(line) && s.lines > 0: // an event stands before it: that one first
			s.pos -= len(line) + 1
			s.skipLF = false
			return s.event(false), nil
		case isErrorLine(line), len(line) == 0 && s.ready():
			s.field(line)
			return s.event(false), nil
		case len(line) == 0:
			s.name, s.status = s.name[:0], 0
		default:
			s.field(line)
		}
		if len(s.data) > maxEvent {
			s.pos, s.end, s.err = 0, 0, tooLarge()
			return event{}, s.err
		}
	}
}

// last gives what was left unterminated when the body ended, then the reason why it ended.
func (s *sseReader) last() (event, error) {
	if s.pos < s.end && errors.Is(s.err, io.EOF) {
		rest, alien := s.unmark(s.buf[s.pos:s.end]), s.alien
		s.field(rest)
		s.pos = s.end
		s.alien = alien || s.alien && !beginsField(rest) // half a field's name is nothing strange
	}
	if s.ready() {
		return s.event(true), nil
	}
	return event{}, s.err
}

// beginsField says whether a field's name begins so.
func beginsField(b []byte) bool {
	return slices.ContainsFunc([]string{"data", "event", "error", "id", "retry"}, func(name string) bool {
		return strings.HasPrefix(name, string(b))
	})
}

// ready says whether a blank line would give an event. One named error counts without data.
func (s *sseReader) ready() bool { return s.lines > 0 || string(s.name) == "error" }

func (s *sseReader) event(open bool) event {
	return event{name: s.name, data: s.data, status: s.status, open: open}
}

// field takes one line of an event.
func (s *sseReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch string(name) {
	case "data":
		s.add(value)
	case "event":
		s.name = append(s.name[:0], bytes.TrimPrefix(value, []byte(" "))...)
	case "error":
		s.name = append(s.name[:0], "error"...)
		s.add(value)
	case "":
		if n, ok := bytes.CutPrefix(value, []byte("HTTP_STATUS/")); ok {
			s.status, _ = strconv.Atoi(string(bytes.TrimSpace(n)))
		}
	case "id", "retry":
	default:
		s.alien = true
	}
}

func (s *sseReader) add(value []byte) {
	if s.lines++; s.lines > 1 {
		s.data = append(s.data, '\n')
	}
	s.data = append(s.data, bytes.TrimPrefix(value, []byte(" "))...)
}

func isErrorLine(line []byte) bool { return bytes.HasPrefix(line, []byte("error:")) }

// line gives the next whole line without its end, which may be LF, CR or both. It is false at the end of the body;
// an unterminated rest then stands between pos and end.
func (s *sseReader) line() ([]byte, bool) {
	scanned := s.pos
	for {
		if s.skipLF && s.pos < s.end {
			s.skipLF = false
			if s.buf[s.pos] == '\n' {
				s.pos++
			}
			scanned = max(scanned, s.pos)
		}
		if i := lineEnd(s.buf[scanned:s.end]); i >= 0 {
			line := s.buf[s.pos : scanned+i]
			s.skipLF = s.buf[scanned+i] == '\r'
			s.pos = scanned + i + 1
			return s.unmark(line), true
		}
		scanned = s.end - s.pos
		if s.err != nil || !s.fill() {
			return nil, false
		}
		scanned += s.pos
	}
}

// first gives the first byte that is not white space, before any event was read, and leaves it there.
func (s *sseReader) first() (byte, error) {
	for {
		if !s.begun && s.end-s.pos >= 3 {
			s.pos = s.end - len(s.unmark(s.buf[s.pos:s.end]))
		}
		rest := bytes.TrimLeft(s.buf[s.pos:s.end], " \t\r\n")
		if len(rest) > 0 && (s.begun || rest[0] != '\xef') {
			s.begun, s.pos = true, s.end-len(rest)
			return rest[0], nil
		}
		if s.err != nil || !s.fill() {
			return 0, s.err
		}
	}
}

// rest gives all that is left of the body.
func (s *sseReader) rest() ([]byte, error) {
	for s.err == nil {
		s.fill()
	}
	if !errors.Is(s.err, io.EOF) {
		return nil, s.err
	}
	return s.buf[s.pos:s.end], nil
}

// raw is all that is left of the body, as it comes. The reader is of no use after it.
func (s *sseReader) raw() io.Reader {
	return io.MultiReader(bytes.NewReader(s.buf[s.pos:s.end]), stopped{s.r, s.err})
}

// stopped reads on, unless reading has failed already.
type stopped struct {
	r   io.Reader
	err error
}

func (s stopped) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	return s.r.Read(p)
}

// unmark takes the byte order mark off the first line.
func (s *sseReader) unmark(line []byte) []byte {
	if s.begun {
		return line
	}
	s.begun = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}

// lineEnd is the index of the first CR or LF, or -1.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n >= 0 {
		b = b[:n]
	}
	if r := bytes.IndexByte(b, '\r'); r >= 0 {
		return r
	}
	return n
}

// fill reads more, moving what is left to the front of the buffer; false when there is no more.
func (s *sseReader) fill() bool {
	if s.end-s.pos > maxEvent {
		s.pos, s.end, s.err = 0, 0, tooLarge()
		s.lines, s.name = 0, s.name[:0]
		return false
	}
	if s.pos > 0 {
		copy(s.buf[:cap(s.buf)], s.buf[s.pos:s.end])
		s.end -= s.pos
		s.pos = 0
	}
	if s.end == cap(s.buf) {
		grown := make([]byte, 2*cap(s.buf))
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	s.buf = s.buf[:cap(s.buf)]
	n, err := readSome(s.r, s.buf[s.end:])
	s.end += n
	s.err = err
	return n > 0
}

// readSome reads at least one byte, or says why not. A reader that keeps giving nothing is one that is stuck.
func readSome(r io.Reader, p []byte) (int, error) {
	for range 100 {
		if n, err := r.Read(p); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

func tooLarge() *Error { return &Error{Kind: KindMalformed, Code: "too_large"} }
