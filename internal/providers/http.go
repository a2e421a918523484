package providers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxErrorBody is as much of an error's body as is read.
const maxErrorBody = 64 << 10

// client is the HTTP side of one provider: a transport of its own, its headers, and errors turned into *Error.
// It never follows a redirect, which could take the key elsewhere, and never retries but for a dead idle connection.
type client struct {
	rt      http.RoundTripper
	header  http.Header
	secrets []string // what must not stand in an error's message
}

// newClient makes the client of one provider. auth is the header that carries the key: "Authorization" has it as a
// bearer token, any other as it is; without a key nothing is sent.
func newClient(s Settings, auth string) *client {
	c := &client{rt: s.Transport, header: http.Header{"Content-Type": {"application/json"}}}
	if c.rt == nil {
		c.rt = newTransport()
	}
	switch {
	case s.APIKey == "":
	case auth == "Authorization":
		c.header.Set(auth, "Bearer "+s.APIKey)
	default:
		c.header.Set(auth, s.APIKey)
	}
	for k, v := range s.Headers {
		c.header.Set(k, v)
	}
	for _, secret := range append(slices.Collect(maps.Values(s.Headers)), s.APIKey) {
		if len(secret) >= 8 {
			c.secrets = append(c.secrets, secret)
		}
	}
	return c
}

// scrub takes the client's own secrets out of an error's texts.
func (c *client) scrub(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	for _, secret := range c.secrets {
		e.Message = strings.ReplaceAll(e.Message, secret, removed)
		e.Code = strings.ReplaceAll(e.Code, secret, "")
		e.Param = strings.ReplaceAll(e.Param, secret, "")
	}
	return err
}

// newTransport has no wait for headers: routing owns that clock. The dial's own limits only keep abandoned dials
// from lingering; candidates' connect clocks are shorter.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    30 * time.Second,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// post sends a JSON body and gives the response of a 2xx, whose body is to be closed. header is added to the
// client's own; connect bounds the wait for a connection, 0 does not. Every failure is an *Error: of a connection,
// of a clock, of ctx, or what the error response says. Reading the body fails with *Error too, but for io.EOF.
func (c *client) post(ctx context.Context, url string, body []byte, header http.Header, connect time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	resp, err := c.send(ctx, cancel, request{url, body, header, connect})
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body = &respBody{ctx: ctx, cancel: cancel, rc: resp.Body}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.scrub(refusal(ctx, resp))
}

// request is what post sends.
type request struct {
	url     string
	body    []byte
	header  http.Header
	connect time.Duration
}

// refusal is the error that a response of another status than 2xx is.
func refusal(ctx context.Context, resp *http.Response) *Error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil && ctx.Err() != nil {
		return ended(ctx)
	}
	e := classify(resp.StatusCode, resp.Header, text)
	if resp.StatusCode < 400 { // a redirect: no status of an error
		e = &Error{Kind: KindMalformed, Code: "http_" + strconv.Itoa(resp.StatusCode)}
	}
	return e
}

// send makes the call, and makes it once more if an idle connection turns out to be dead.
func (c *client) send(ctx context.Context, cancel context.CancelCauseFunc, q request) (*http.Response, error) {
	for first := true; ; first = false {
		t := &tracing{connect: q.connect, cancel: cancel}
		resp, err := c.roundTrip(ctx, q, t)
		t.stop()
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		if !first || !t.diedIdle(err) {
			return nil, t.failure(err)
		}
		c.dropIdle()
	}
}

func (c *client) roundTrip(ctx context.Context, q request, t *tracing) (*http.Response, error) {
	ctx = httptrace.WithClientTrace(ctx, t.hooks())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.url, bytes.NewReader(q.body))
	if err != nil {
		return nil, errURL // the parser's own error quotes the URL, which may hold credentials
	}
	maps.Copy(req.Header, c.header)
	maps.Copy(req.Header, q.header)
	if u := req.URL.User; u != nil && req.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	return c.rt.RoundTrip(req)
}

// dropIdle closes the idle connections: where one died (a frozen process, a restarted server) the others did too.
func (c *client) dropIdle() {
	if t, ok := c.rt.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

var (
	errConnectClock = errors.New("no connection in time")
	errURL          = errors.New("base URL is not one")
	errNotHTTP      = errors.New("answer is not HTTP")
)

// tracing watches the connection of one round trip and runs the connect clock: from asking for a connection until
// there is one. net/http may do so again for the same request, and the clock with it.
type tracing struct {
	connect time.Duration
	cancel  context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer
	reused bool
	byte   bool // of the response
}

func (t *tracing) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:              func(string) { t.start() },
		GotConn:              func(info httptrace.GotConnInfo) { t.got(info.Reused) },
		GotFirstResponseByte: func() { t.mu.Lock(); t.byte = true; t.mu.Unlock() },
	}
}

func (t *tracing) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.connect <= 0 {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = time.AfterFunc(t.connect, func() { t.cancel(errConnectClock) })
}

func (t *tracing) got(reused bool) {
	t.stop()
	t.mu.Lock()
	t.reused = reused
	t.mu.Unlock()
}

func (t *tracing) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// diedIdle says whether err is that of a connection which had died while it was idle: it was used before, and the
// answer has not begun.
func (t *tracing) diedIdle(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reused && !t.byte && connectionLost(err)
}

// connectionLost is true for the errors of a connection that the other side has closed.
func connectionLost(err error) bool {
	lost := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, net.ErrClosed}
	if slices.ContainsFunc(lost, func(target error) bool { return errors.Is(err, target) }) {
		return true
	}
	// net/http has no values for these two.
	return err.Error() == "http: server closed idle connection" || err.Error() == "http2: client connection lost"
}

// failure is the *Error for a round trip that gave no response though nobody cancelled it.
func (t *tracing) failure(err error) *Error {
	t.mu.Lock()
	begun := t.byte
	t.mu.Unlock()
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, errURL):
		return &Error{Kind: KindConnect, Err: err}
	case begun && !connectionLost(err): // net/http's text quotes what came
		return &Error{Kind: KindMalformed, Err: errNotHTTP}
	case errors.As(err, &timeout) && timeout.Timeout() && !errors.As(err, &dns):
		return &Error{Kind: KindTimeout, Err: err}
	}
	return &Error{Kind: KindConnect, Err: err}
}

// ended is the *Error of a context that is done: our connect clock's, else one that wraps the caller's cause.
func ended(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errConnectClock) {
		return &Error{Kind: KindTimeout, Err: cause}
	}
	return &Error{Kind: KindCanceled, Err: cause}
}

// respBody is a response's body whose errors are *Error: of the context if it is done, else KindTruncated, as an
// answer had begun. Closing it ends the call.
type respBody struct {
	ctx    context.Context //nolint:containedctx // it lives exactly as long as the body
	cancel context.CancelCauseFunc
	rc     io.ReadCloser
}

func (b *respBody) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case b.ctx.Err() != nil:
		return n, ended(b.ctx)
	}
	return n, &Error{Kind: KindTruncated, Err: err}
}

// drain reads what is left of a body that has said all, so that its connection can serve again. A provider that
// keeps it open is not waited for.
func drain(body io.ReadCloser) {
	t := time.AfterFunc(100*time.Millisecond, func() { _ = body.Close() })
	defer t.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxErrorBody))
}

// Close cancels before it closes: closing first would read the rest of an HTTP/1 body.
func (b *respBody) Close() error {
	b.cancel(context.Canceled)
	return b.rc.Close()
}
