package providers

import (
	"bytes"
	"encoding/binary"
)

// Buffering is implemented by streams that know whether more is in memory already.
type Buffering interface {
	// Buffered says that Next will not wait for the provider. Once it has been asked, Next may give an empty Chunk,
	// where what was in memory brought nothing after all: that keeps the word. It leaves the last chunk as it is.
	Buffered() bool
}

// ahead makes a stream a [Buffering] and keeps its word.
type ahead struct {
	more     func() bool // an event, to its end, is in memory
	promised bool
}

func (a *ahead) Buffered() bool {
	a.promised = a.more()
	return a.promised
}

// spent says that the next read might wait though it was said that Next would not.
func (a *ahead) spent() bool { return a.promised && !a.more() }

// buffered says whether next will give an event without reading on.
func (s *sseReader) buffered() bool {
	if !s.begun {
		return false
	}
	rest := s.buf[s.pos:s.end]
	if s.skipLF {
		rest = bytes.TrimPrefix(rest, []byte("\n"))
	}
	for some := false; ; {
		i := lineEnd(rest)
		if i < 0 {
			return false
		}
		line, end := rest[:i], rest[i]
		if rest = rest[i+1:]; end == '\r' {
			rest = bytes.TrimPrefix(rest, []byte("\n"))
		}
		switch name, _, _ := bytes.Cut(line, []byte(":")); {
		case isErrorLine(line), len(line) == 0 && some:
			return true
		case string(name) == "data":
			some = true
		}
	}
}

// buffered says whether next will give a document without reading on. An array's decoder doesn't tell.
func (d *documents) buffered() bool { return d.array == nil && d.events.buffered() }

// buffered says whether next will give a line without reading on.
func (n *ndjsonReader) buffered() bool {
	rest, _ := n.r.Peek(n.r.Buffered())
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		if !found || len(trimLine(line)) > 0 {
			return found
		}
		rest = after
	}
}

// buffered says whether next will give a frame without reading on.
func (r *frameReader) buffered() bool {
	head, _ := r.in.Peek(min(r.in.Buffered(), 4))
	return len(head) == 4 && r.in.Buffered() >= max(int(binary.BigEndian.Uint32(head)), 12)
}
