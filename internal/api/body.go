package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	bodyTime  = 60 * time.Second // for a body to arrive
	drainTime = 5 * time.Second  // for a body that is too large, or that nobody wants
	drainMost = 64 << 20
)

// read reads the whole body, so that the server sees at once when the caller leaves.
func (h *handler) read(w *writer, r *http.Request) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, &fault{
			status: http.StatusUnsupportedMediaType, code: "unsupported_content_encoding",
			message: "The body must not be compressed: send it without Content-Encoding.",
		}
	}
	if r.ContentLength > h.settings.MaxBody {
		return nil, h.tooLarge(w, r)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // not every server has one
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), 256<<10)) + bytes.MinRead)
	_, err := body.ReadFrom(io.LimitReader(r.Body, h.settings.MaxBody+1))
	if err != nil {
		w.Header().Set("Connection", "close")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, &fault{status: http.StatusRequestTimeout, code: "request_timeout", message: "The body didn't arrive in time."}
		}
		return nil, &misuse{text: "The body broke off on its way here."}
	}
	_ = control.SetReadDeadline(time.Time{})
	if int64(body.Len()) > h.settings.MaxBody {
		return nil, h.tooLarge(w, r)
	}
	return body.Bytes(), nil
}

// tooLarge refuses a body. It takes what still comes, within limits: a client that is cut off while it sends never
// reads the answer. One that waits for leave to send gets the answer instead.
func (h *handler) tooLarge(w *writer, r *http.Request) error {
	if r.Header.Get("Expect") == "" {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.CopyN(io.Discard, r.Body, drainMost)
	}
	w.Header().Set("Connection", "close")
	return &fault{
		status: http.StatusRequestEntityTooLarge, code: "request_too_large",
		message: fmt.Sprintf("The body is larger than %d bytes, which is the limit here: shorten the conversation or its attachments.", h.settings.MaxBody),
	}
}
