package lambdahttp

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// What Lambda is told of a failed stream, as error type and message. Neither names the cause, which may quote a prompt.
var (
	errAborted  error = messages.InvokeResponse_Error{Type: "Handler.Aborted", Message: "the handler gave up its answer"}
	errPanicked error = messages.InvokeResponse_Error{Type: "Handler.Panic", Message: "the handler panicked"}
)

// serve runs h, in a goroutine of its own: a panic comes back as an error, and so does an end by runtime.Goexit.
func (c *call) serve(h http.Handler, w http.ResponseWriter) error {
	err := errAborted
	var handler sync.WaitGroup
	handler.Go(func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				logPanic(c.log, "handler panicked", p)
				err = errPanicked
			}
		}()
		h.ServeHTTP(w, c.request)
		err = nil
	})
	handler.Wait()
	return err
}

// logPanic tells where it happened and of what type it was. Only the runtime's own texts are safe to print.
func logPanic(log *slog.Logger, msg string, p any) {
	text := ""
	if e, ok := p.(runtime.Error); ok {
		text = e.Error()
	}
	log.Error(msg, "panic", fmt.Sprintf("%T", p), "text", text, "stack", string(debug.Stack()))
}

// errorBody is OpenAI's error envelope.
func errorBody(message, kind, code string) []byte {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	b, err := json.Marshal(struct {
		Error body `json:"error"`
	}{body{Message: message, Type: kind, Code: code}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

func internalError() []byte {
	return errorBody("The server had an error while processing your request.", "server_error", "internal_error")
}
