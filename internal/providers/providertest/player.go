package providertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errCut asks for the connection to be cut.
var errCut = errors.New("cut")

const page = "<!DOCTYPE html><html><body><h1>It works</h1></body></html>"

// player plays one behaviour to one caller.
type player struct {
	ctx   context.Context
	w     http.ResponseWriter
	b     Behaviour
	words wire
	q     query
}

// play gives nil after a proper end of the body, errCut for a cut connection, else why it stopped: the caller left.
func (p player) play() error {
	if p.b.End == EndHangHeaders {
		return p.hang()
	}
	if err := p.pause(p.b.Delay); err != nil {
		return err
	}
	if p.b.End == EndDrop {
		return errCut
	}
	if kind, body, ok := p.plain(); ok {
		return p.body(kind, body)
	}
	if !p.q.Stream {
		return p.body("application/json", p.whole())
	}
	return p.stream()
}

// plain is the body of a behaviour that isn't an answer in the dialect.
func (p player) plain() (kind, body string, ok bool) {
	switch {
	case p.b.Body != "":
		return p.bodyKind(), p.b.Body, true
	case p.b.fails():
		return "application/json", p.words.refusal(p.b.Error), true
	case p.b.End == EndErrorBody:
		return "application/json", p.words.refusal(p.b.Error), true
	case p.b.End == EndHTML:
		return "text/html", page, true
	}
	return "", "", false
}

// whole is the answer to a caller who asked for no stream.
func (p player) whole() string {
	switch p.b.End {
	case EndOnlyDone:
		return "{}"
	case EndErrorEvent:
		return p.words.refusal(p.b.Error)
	default:
		return p.words.whole(answer(p.b, false), p.b.Finish)
	}
}

func (p player) bodyKind() string {
	if p.b.fails() || !p.q.Stream {
		return "application/json"
	}
	return p.words.media()
}

// body sends a body given as a whole; one that is to be cut, is to hang or lacks its end stops half way, unless it is
// the test's own.
func (p player) body(kind, body string) error {
	p.header(kind)
	half := p.b.End == EndCut || p.b.End == EndHang || p.b.End == EndEOF
	if half && p.b.Body == "" {
		body = body[:len(body)/2]
	}
	if err := p.write(body); err != nil {
		return err
	}
	return p.end()
}

func (p player) stream() error {
	p.header(p.words.media())
	if err := p.write(""); err != nil { // the headers travel before any pause
		return err
	}
	for _, s := range steps(p.b, p.words, p.q) {
		if err := p.pause(s.after); err != nil {
			return err
		}
		if err := p.write(s.data); err != nil {
			return err
		}
	}
	return p.end()
}

func (p player) end() error {
	switch p.b.End {
	case EndCut:
		return errCut
	case EndHang:
		return p.hang()
	default:
		return nil
	}
}

func (p player) header(kind string) {
	p.w.Header().Set("Content-Type", kind)
	for k, v := range p.b.Headers {
		p.w.Header().Set(k, v)
	}
	status := p.b.Status
	if status == 0 {
		status = http.StatusOK
	}
	p.w.WriteHeader(status)
}

// write sends data in pieces and flushes each.
func (p player) write(data string) error {
	for {
		n := len(data)
		if p.b.Piece > 0 {
			n = min(n, p.b.Piece)
		}
		if _, err := io.WriteString(p.w, data[:n]); err != nil {
			return err
		}
		if err := http.NewResponseController(p.w).Flush(); err != nil {
			return err
		}
		if data = data[n:]; data == "" {
			return nil
		}
	}
}

func (p player) pause(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p player) hang() error {
	<-p.ctx.Done()
	return p.ctx.Err()
}
