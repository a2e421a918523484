package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// heartbeat is how long a stream is silent: proxies and clients give up on a connection that says nothing.
const heartbeat = 15 * time.Second

// sink writes server-sent events, and comments while a model is silent. It waits for the caller to take them, but
// not for ever.
type sink struct {
	w       *writer
	control *http.ResponseController
	gone    context.CancelFunc // called when the caller can't be written to any more

	mu       sync.Mutex
	pulse    *time.Timer
	buf      []byte
	pending  bool // something was written and not flushed
	err      error
	closed   bool
	deadline time.Time
}

// openSink writes status and headers.
func openSink(w *writer, gone context.CancelFunc) *sink {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.streaming = true
	w.WriteHeader(http.StatusOK)
	s := &sink{w: w, control: http.NewResponseController(w), gone: gone}
	s.mu.Lock() // the first beat finds the timer set
	s.pulse = time.AfterFunc(heartbeat, s.beat)
	s.mu.Unlock()
	return s
}

// put writes one event; it may stay in the server's buffer until the next flush.
func (s *sink) put(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = frame(s.buf[:0], data)
	return s.write(s.buf)
}

// putSpliced is put for a chunk that carries the metadata.
func (s *sink) putSpliced(chunk []byte, meta *metadata, ours bool) error {
	return s.put(splice(nil, chunk, meta, ours))
}

// send writes one event, and all before it are on their way.
func (s *sink) send(data []byte) error {
	if err := s.put(data); err != nil {
		return err
	}
	return s.flush()
}

// flush sends off what was put.
func (s *sink) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push()
}

// write needs mu.
func (s *sink) write(b []byte) error {
	if s.err != nil || s.closed {
		return s.err
	}
	now := time.Now()
	if s.deadline.Sub(now) < stalled/2 {
		s.deadline = now.Add(stalled)
		_ = s.control.SetWriteDeadline(s.deadline) // not every server has one
	}
	s.pending = true
	_, err := s.w.Write(b)
	s.pulse.Reset(heartbeat)
	return s.failed(err)
}

// push needs mu.
func (s *sink) push() error {
	if s.err != nil || s.closed || !s.pending {
		return s.err
	}
	s.pending = false
	err := s.control.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return s.failed(err)
}

// failed notes that the caller can't be written to any more. It needs mu.
func (s *sink) failed(err error) error {
	if err != nil {
		s.err = err
		s.gone()
	}
	return err
}

func (s *sink) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.write([]byte(": still here\n\n")) == nil {
		_ = s.push() // noted in err
	}
}

// close ends the heartbeat; nothing is written after it.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.pulse.Stop()
}
