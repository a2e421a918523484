package lambdahttp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"
)

const maxRequest = 6 << 20 // of a body, and of the event that carries it

// front is the URL's public side: it makes an event of each request and waits for an instance to answer it.
type front struct {
	queue   chan *invocation
	gone    chan struct{} // closed when there will be no instance any more
	timeout time.Duration
	log     *slog.Logger
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inv, err := newInvocation(w, r)
	if err != nil {
		f.refuse(w, err)
		return
	}
	wait := time.NewTimer(f.timeout)
	defer wait.Stop()
	select {
	case f.queue <- inv:
	case <-r.Context().Done():
		return
	case <-f.gone:
		writeError(w, http.StatusBadGateway, functionError())
		return
	case <-wait.C:
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusTooManyRequests, errorBody("Rate exceeded: every instance is busy.", "rate_limit_error", "concurrency_limit_exceeded"))
		return
	}
	<-inv.answered // not the caller's leaving: a function isn't told of it
	if inv.err != nil {
		f.log.Error("answer broken off", "request_id", inv.id, "reason", inv.err.Error())
		panic(http.ErrAbortHandler)
	}
}

func (f *front) refuse(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		writeError(w, http.StatusRequestEntityTooLarge, errorBody("The request is larger than Lambda's 6 MB.", "invalid_request_error", "request_too_large"))
		return
	}
	writeError(w, http.StatusBadRequest, errorBody("The request could not be read.", "invalid_request_error", "bad_request"))
}

func newInvocation(w http.ResponseWriter, r *http.Request) (*invocation, error) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(slowCaller))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return nil, err
	}
	_ = rc.SetReadDeadline(time.Time{}) // it would end the request's context later on
	id := uuid.New()
	inv := &invocation{id: id.String(), trace: traceID(id), w: w, answered: make(chan struct{}), completed: make(chan struct{})}
	inv.event, err = inv.payload(r, body)
	return inv, err
}

func traceID(id uuid.UUID) string {
	h := hex.EncodeToString(id[:])
	return "Root=1-" + h[:8] + "-" + h[8:] + "0000000000000000"[:24-len(h[8:])]
}

// payload is the event of a Function URL, payload version 2.0.
func (inv *invocation) payload(r *http.Request, body []byte) ([]byte, error) {
	now, path := time.Now(), r.URL.EscapedPath()
	ip, _, _ := net.SplitHostPort(r.RemoteAddr)
	e := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: path, RawQueryString: r.URL.RawQuery,
		Headers: inv.headers(r, ip), QueryStringParameters: map[string]string{},
		RequestContext: events.LambdaFunctionURLRequestContext{
			AccountID: "anonymous", APIID: "local", RequestID: inv.id, DomainName: r.Host, DomainPrefix: "local",
			Time: now.UTC().Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
			HTTP: events.LambdaFunctionURLRequestContextHTTPDescription{
				Method: r.Method, Path: path, Protocol: r.Proto, SourceIP: ip, UserAgent: r.UserAgent(),
			},
		},
	}
	if c := r.Header.Get("Cookie"); c != "" {
		e.Cookies = strings.Split(c, "; ")
	}
	for name, values := range r.URL.Query() {
		e.QueryStringParameters[name] = strings.Join(values, ",")
	}
	e.Body, e.IsBase64Encoded = text(body)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	if err == nil && out.Len() > maxRequest {
		err = &http.MaxBytesError{Limit: maxRequest}
	}
	return out.Bytes(), err
}

func (inv *invocation) headers(r *http.Request, ip string) map[string]string {
	h := map[string]string{
		"host": r.Host, "x-forwarded-for": ip, "x-forwarded-proto": "http", "x-amzn-trace-id": inv.trace,
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		h["x-forwarded-port"] = port
	}
	for name, values := range r.Header {
		switch name {
		case "Connection", "Keep-Alive", "Te", "Transfer-Encoding", "Upgrade", "Cookie":
		default:
			h[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	return h
}

func functionError() []byte {
	return errorBody("The function failed before it answered.", "server_error", "function_error")
}

func writeError(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
