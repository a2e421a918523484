package providers

import (
	"encoding/json"
	"errors"
	"io"
)

// document is one JSON object of an answer. An event named error may hold anything.
type document struct {
	data   []byte // valid until the next call of next
	name   string // of the event that it came in, "" for none
	status int    // DashScope's: that of a comment before it, 0 for none
	whole  bool   // it is all there is
}

// documents reads the objects of an answer, however they are framed: one a server-sent event, the elements of an
// array, or one body: that of a model that doesn't stream, or of an error that came too late for a status.
type documents struct {
	events *sseReader
	array  *arrayReader // nil unless the body is an array
	begun  bool         // the first byte was looked at
	whole  bool         // the body was one object, and is read
	some   bool         // an event came
}

func newDocuments(body io.Reader) *documents { return &documents{events: newSSE(body)} }

// next gives the next document. Its error is io.EOF at the end of the body or at [DONE], KindTruncated for half a
// document, KindMalformed for what is none, else what reading gave.
func (d *documents) next() (document, error) {
	if !d.begun {
		d.begun = true
		switch first, err := d.events.first(); {
		case err != nil:
			return document{}, err
		case first == '{':
			return d.body()
		case first == '[':
			d.array = newArray(d.events.raw())
		case first == '<':
			return document{}, &Error{Kind: KindMalformed, Code: "html"}
		}
	}
	switch {
	case d.whole:
		return document{}, io.EOF
	case d.array != nil:
		data, err := d.array.next()
		return document{data: data}, err
	}
	return d.event()
}

// body gives a body that is one object.
func (d *documents) body() (document, error) {
	data, err := d.events.rest()
	if err != nil {
		return document{}, err
	}
	if !validObject(data) {
		return document{}, undecodable(true)
	}
	d.whole = true
	return document{data: data, whole: true}, nil
}

// event gives the next event. A body without a single line of SSE is not the protocol.
func (d *documents) event() (document, error) {
	ev, err := d.events.next()
	if errors.Is(err, io.EOF) && d.events.alien && !d.some {
		return document{}, undecodable(false)
	}
	if err != nil {
		return document{}, err
	}
	d.some = true
	named := string(ev.name) == "error" && !ev.open
	switch {
	case string(ev.data) == "[DONE]":
		return document{}, io.EOF
	case !named && !validObject(ev.data):
		return document{}, undecodable(ev.open)
	}
	return document{data: ev.data, name: string(ev.name), status: ev.status}, nil
}

// arrayReader reads a JSON array of objects, each as soon as its last byte is there.
type arrayReader struct {
	in    *cappedReader
	dec   *json.Decoder
	begun bool
}

func newArray(r io.Reader) *arrayReader {
	in := &cappedReader{r: r}
	return &arrayReader{in: in, dec: json.NewDecoder(in)}
}

// next gives the next element, io.EOF behind the closing bracket. An array without one is truncated.
func (a *arrayReader) next() ([]byte, error) {
	a.in.left = maxEvent
	if !a.begun {
		a.begun = true
		if _, err := a.dec.Token(); err != nil {
			return nil, a.broken(err)
		}
	}
	if !a.dec.More() {
		if _, err := a.dec.Token(); err != nil {
			return nil, a.broken(err)
		}
		return nil, io.EOF
	}
	var element json.RawMessage
	if err := a.dec.Decode(&element); err != nil {
		return nil, a.broken(err)
	}
	if !isObject(element) {
		return nil, undecodable(false)
	}
	return element, nil
}

// broken is what a decoder's error means.
func (a *arrayReader) broken(err error) error {
	var ours *Error
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return undecodable(true)
	}
	return undecodable(false)
}

// cappedReader gives left bytes, then refuses.
type cappedReader struct {
	r    io.Reader
	left int
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, tooLarge()
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
