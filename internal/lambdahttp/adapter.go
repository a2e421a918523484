package lambdahttp

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Options are what a function decides about its adapter. The zero value is ready to use.
type Options struct {
	Log *slog.Logger // tells of recovered panics and of dropped work; nil: slog.Default()
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.Default()
	}
	return o.Log
}

// Streamed gives lambda.Start the function for a URL whose InvokeMode is RESPONSE_STREAM.
//
// h's writes reach the caller as they come; its status and headers are those of its first write. The request's context
// ends min(3 s, 10 %) of the remaining time before the platform's deadline. A panic becomes a 500 in OpenAI's envelope,
// or, once something was sent, an error event in the stream and a failed invocation. An event that is no HTTP request is
// the only error.
func Streamed(h http.Handler, o Options) func(context.Context, json.RawMessage) (*events.LambdaFunctionURLStreamingResponse, error) {
	return func(ctx context.Context, raw json.RawMessage) (*events.LambdaFunctionURLStreamingResponse, error) {
		c, err := newCall(ctx, raw, o)
		if err != nil {
			return nil, err
		}
		c.request.Header.Del("Accept-Encoding") // compressed streams don't survive the way through a Function URL
		reader, pipe := io.Pipe()
		w := newWriter(c.request.Method, pipe)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer c.cancel()
			pipe.CloseWithError(w.finishStream(c.serve(h, w)))
		}()
		<-w.committed
		end := func() {
			c.cancel() // a handler that still runs lost its reader
			<-done
			c.after.run(ctx, streamedWork, c.log)
		}
		headers, cookies := w.flattened()
		return &events.LambdaFunctionURLStreamingResponse{
			StatusCode: w.status, Headers: headers, Cookies: cookies,
			Body: &streamBody{PipeReader: reader, end: sync.OnceFunc(end)},
		}, nil
	}
}

// streamBody ends the call when aws-lambda-go closes it: after the last byte left and before the next event.
type streamBody struct {
	*io.PipeReader
	end func()
}

func (b *streamBody) Close() error {
	err := b.PipeReader.Close()
	b.end()
	return err
}

// call is one invocation that is an HTTP request.
type call struct {
	request *http.Request
	old     bool // came as payload 1.0
	cancel  context.CancelFunc
	after   *afterWork
	log     *slog.Logger
}

func newCall(ctx context.Context, raw json.RawMessage, o Options) (*call, error) {
	e, err := parseEvent(raw)
	if err != nil {
		return nil, err
	}
	after := &afterWork{}
	inner, cancel := withReserve(context.WithValue(ctx, afterKey{}, after))
	r, err := e.request(inner)
	if err != nil {
		cancel()
		return nil, err
	}
	return &call{request: r, old: e.old(), cancel: cancel, after: after, log: o.log().With("requestId", RequestID(ctx))}, nil
}

// withReserve ends before the platform's deadline does, so that a last word can still be sent.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := max(0, time.Until(deadline))
	return context.WithDeadline(ctx, deadline.Add(-min(3*time.Second, left/10)))
}

// RequestID is Lambda's id of the invocation that ctx belongs to, "" elsewhere.
func RequestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.AwsRequestID
	}
	return ""
}
