package providers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ndjsonReader reads one JSON document a line.
type ndjsonReader struct {
	r    *bufio.Reader
	long []byte // a line longer than r's buffer
}

func newNDJSON(r io.Reader) *ndjsonReader { return &ndjsonReader{r: bufio.NewReaderSize(r, 32<<10)} }

// next gives the next line that isn't blank, without its end; valid until the next call. A last line that nothing
// ends is given if it is whole JSON, together with no error; else the error is KindTruncated, or what broke the
// body off. At the end of the body it is io.EOF, for a line above the cap KindMalformed.
func (n *ndjsonReader) next() ([]byte, error) {
	for {
		line, err := n.line()
		line = trimLine(line)
		switch {
		case len(line) > 0 && (err == nil || valid(line)):
			return line, nil
		case len(line) > 0 && errors.Is(err, io.EOF):
			return nil, undecodable(line[0] == '{')
		case err != nil:
			return nil, err
		}
	}
}

// trimLine takes off what says nothing: space at both ends, a byte order mark.
func trimLine(line []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
}

// line reads to the next LF. With an error it gives what was read before it.
func (n *ndjsonReader) line() ([]byte, error) {
	part, err := n.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	n.long = append(n.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = n.r.ReadSlice('\n')
		if n.long = append(n.long, part...); len(n.long) > maxEvent {
			return nil, tooLarge()
		}
	}
	return n.long, err
}
