package lambdahttp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	maxPrelude = 256 << 10
	chunkSize  = 32 << 10
	slowCaller = 30 * time.Second // for a request to come, and for one chunk of its answer to leave
)

// invocation is one request on its way through an instance. Who claims it answers the caller; from then on w is his
// until he ends it.
type invocation struct {
	id, trace string
	event     []byte
	deadline  time.Time // of the instance's work on it
	overrun   *time.Timer
	timedOut  atomic.Bool
	claimed   atomic.Bool

	w         http.ResponseWriter
	started   bool          // the caller has a status
	left      bool          // the caller is gone; the function isn't told
	err       error         // why the answer was broken off
	answered  chan struct{} // closed when the caller has all he gets
	completed chan struct{} // closed when the instance is free again
}

func (inv *invocation) claim() bool { return inv.claimed.CompareAndSwap(false, true) }

// end lets the caller go; with an error he sees his connection broken, unless a status can still say it.
func (inv *invocation) end(err error) {
	if err != nil && !inv.started {
		err = inv.fail(http.StatusBadGateway, functionError())
	}
	inv.err = err
	close(inv.answered)
}

// complete is the instance's next poll: work after the response is over.
func (inv *invocation) complete() {
	inv.stopClock()
	if inv.claim() {
		inv.end(errors.New("the function asked for the next event without having answered"))
	}
	close(inv.completed)
}

// crash is the end of the instance. A response that was being read ends by itself, for its connection is gone.
func (inv *invocation) crash() {
	inv.stopClock()
	if inv.claim() {
		if inv.timedOut.Load() {
			inv.end(inv.fail(http.StatusGatewayTimeout, errorBody("The function took too long.", "server_error", "function_timeout")))
		} else {
			inv.end(errors.New("the function's process ended"))
		}
	}
	close(inv.completed)
}

func (inv *invocation) stopClock() {
	if inv.overrun != nil {
		inv.overrun.Stop()
	}
}

func (inv *invocation) fail(status int, body []byte) error {
	inv.started = true
	writeError(inv.w, status, body)
	return nil
}

// stream passes an answer on as it comes: a JSON prelude with status and headers, eight NULs, the body.
func (inv *invocation) stream(r io.Reader) error {
	buf := make([]byte, chunkSize)
	var held []byte
	for {
		n, err := r.Read(buf)
		chunk := buf[:n]
		if !inv.started {
			held = append(held, chunk...)
			if chunk, err = inv.prelude(held, err); chunk == nil && err == nil {
				continue
			}
		}
		if len(chunk) > 0 && inv.started {
			inv.send(chunk)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// prelude starts the answer once held has all of it, and gives what of the body came with it. err is the reader's.
func (inv *invocation) prelude(held []byte, err error) ([]byte, error) {
	head, body, found := bytes.Cut(held, make([]byte, 8))
	if !found {
		if errors.Is(err, io.EOF) || err == nil && len(held) > maxPrelude {
			err = errors.New("the streamed answer has no prelude")
		}
		return nil, err
	}
	var e Envelope
	if json.Unmarshal(head, &e) != nil || !e.valid() {
		return nil, errors.New("the streamed answer's prelude isn't that of an HTTP response")
	}
	inv.start(e)
	return body, err
}

// valid reports whether net/http can send the status; a missing one means 200.
func (e Envelope) valid() bool {
	return e.StatusCode == 0 || e.StatusCode >= 200 && e.StatusCode <= 999
}

func (inv *invocation) start(e Envelope) {
	h := inv.w.Header()
	for name, value := range e.Headers {
		h.Set(name, value)
	}
	for name, values := range e.MultiValueHeaders {
		h[http.CanonicalHeaderKey(name)] = values
	}
	for _, c := range e.Cookies {
		h.Add("Set-Cookie", c)
	}
	inv.started = true
	inv.w.WriteHeader(cmp.Or(e.StatusCode, http.StatusOK))
	inv.flush()
}

func (inv *invocation) send(p []byte) {
	if inv.left {
		return
	}
	rc := http.NewResponseController(inv.w)
	_ = rc.SetWriteDeadline(time.Now().Add(slowCaller))
	_, err := inv.w.Write(p)
	inv.left = err != nil && !errors.Is(err, http.ErrBodyNotAllowed)
	inv.flush()
}

func (inv *invocation) flush() {
	if err := http.NewResponseController(inv.w).Flush(); err != nil {
		inv.left = true
	}
}

// whole turns a buffered answer into HTTP as a BUFFERED URL does: an envelope by its fields, other JSON as a 200.
func (inv *invocation) whole(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxEnvelope+1))
	if err != nil {
		return err
	}
	if len(b) > maxEnvelope {
		_, _ = io.Copy(io.Discard, r)
		return errors.New("the buffered answer is larger than 6 MB")
	}
	e, body, err := decodeEnvelope(b)
	if err != nil {
		return err
	}
	inv.start(e)
	inv.send(body)
	return nil
}

// hasStatus tells an envelope from other JSON.
func hasStatus(b []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(b, &fields) == nil && fields["statusCode"] != nil
}

func decodeEnvelope(b []byte) (Envelope, []byte, error) {
	var e Envelope
	if !hasStatus(b) {
		return Envelope{StatusCode: http.StatusOK, Headers: map[string]string{"Content-Type": "application/json"}}, b, nil
	}
	if err := json.Unmarshal(b, &e); err != nil || !e.valid() {
		return e, nil, errors.New("the buffered answer isn't the envelope of an HTTP response")
	}
	if !e.IsBase64Encoded {
		return e, []byte(e.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(e.Body)
	if err != nil {
		err = errors.New("the buffered answer's body isn't base64")
	}
	return e, body, err
}
