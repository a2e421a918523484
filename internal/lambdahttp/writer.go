package lambdahttp

import (
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
)

// writer is the http.ResponseWriter of both adapters. Status and headers are fixed by the first write, as a copy: what
// the handler does to its map later touches nothing. Like net/http's, it is for one goroutine at a time.
type writer struct {
	header    http.Header
	status    int         // 0 until the first write
	sent      http.Header // the copy
	committed chan struct{}
	head      bool // a HEAD request: the body is counted away
	body      io.Writer
	written   int64
	tail      [2]byte // the last two: whether an event is complete
}

func newWriter(method string, body io.Writer) *writer {
	return &writer{header: http.Header{}, committed: make(chan struct{}), head: method == http.MethodHead, body: body}
}

func (w *writer) Header() http.Header { return w.header }

// WriteHeader fixes status and headers. Informational statuses have no way through Lambda and are passed over.
func (w *writer) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %d", status)) // as net/http does
	}
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, endToEnd(w.header)
	close(w.committed)
}

func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.detect(p)
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.status == http.StatusNoContent || w.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case w.head || len(p) == 0:
		return len(p), nil
	}
	return w.send(p)
}

func (w *writer) send(p []byte) (int, error) {
	n, err := w.body.Write(p)
	w.written += int64(n)
	for _, b := range p[max(0, n-2):n] {
		w.tail = [2]byte{w.tail[1], b}
	}
	return n, err
}

func (w *writer) detect(p []byte) {
	if len(p) > 0 && !w.head && w.header.Get("Content-Type") == "" {
		w.header.Set("Content-Type", http.DetectContentType(p))
	}
}

// FlushError fixes the headers; every write is on its way already. [http.ResponseController] finds it.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return nil
}

// Flush makes the writer an [http.Flusher] for handlers that ask for one.
func (w *writer) Flush() { _ = w.FlushError() }

// finishStream completes what the handler left, and says with which error the stream must end.
func (w *writer) finishStream(err error) error {
	defer w.pad()
	if err == nil {
		return w.FlushError()
	}
	if w.status == 0 {
		w.fail()
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(w.sent.Get("Content-Type")); kind == "text/event-stream" && !w.head {
		_, _ = w.send([]byte(w.separator() + "data: " + string(internalError()) + "\n\n"))
	}
	return err
}

// pad writes the one byte without which callers of a streaming URL wait for a body for ever.
func (w *writer) pad() {
	if w.written == 0 {
		_, _ = w.send([]byte("\n"))
	}
}

// fail answers 500 with nothing of what the handler had prepared.
func (w *writer) fail() {
	clear(w.header)
	w.header.Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write(internalError())
}

// separator closes an event that was cut in the middle.
func (w *writer) separator() string {
	if w.written == 0 || w.tail == [2]byte{'\n', '\n'} {
		return ""
	}
	return "\n\n"
}

// flattened is how Lambda takes headers: one string a name, cookies apart.
func (w *writer) flattened() (headers map[string]string, cookies []string) {
	headers = make(map[string]string, len(w.sent))
	for name, values := range w.sent {
		if name == "Set-Cookie" {
			cookies = values
			continue
		}
		headers[name] = strings.Join(values, ", ")
	}
	return headers, cookies
}

// endToEnd copies the headers that are for the caller. The platform frames the body, so its length isn't ours to say.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{
		"Connection", "Content-Length", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade",
	} {
		out.Del(name)
	}
	maps.DeleteFunc(out, func(name string, values []string) bool {
		return len(values) == 0 || strings.HasPrefix(name, http.TrailerPrefix)
	})
	return out
}
