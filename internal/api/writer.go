package api

import (
	"net/http"
	"slices"
	"time"
)

// stalled is how long a caller may take no bytes until he counts as gone.
const stalled = 60 * time.Second

// writer notes what of an answer has gone out.
type writer struct {
	http.ResponseWriter
	status    int  // 0: nothing yet
	streaming bool // the body is server-sent events
	bytes     int
}

// Unwrap lets http.ResponseController find what the server's writer can do.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += n
	return n, err
}

// deliver writes a whole body, as long as the caller takes it. The server takes the deadline back afterwards.
func (w *writer) deliver(body []byte) {
	control := http.NewResponseController(w)
	for piece := range slices.Chunk(body, 64<<10) {
		_ = control.SetWriteDeadline(time.Now().Add(stalled)) // not every server has one
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// event writes one last event, if the caller is still there.
func (w *writer) event(data []byte) {
	_, _ = w.Write(frame(nil, data))
	_ = http.NewResponseController(w).Flush()
}
