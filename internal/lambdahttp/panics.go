package lambdahttp

import (
	"encoding/json"
	"errors"
	"fmt"
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
			if p := recover(); p != nil && !aborts(p) {
				c.log.Error("handler panicked", panicked(p)...)
				err = errPanicked
			}
		}()
		h.ServeHTTP(w, c.request)
		err = nil
	})
	handler.Wait()
	return err
}

// aborts says whether a panic is net/http's own way of giving up an answer.
func aborts(p any) bool {
	err, ok := p.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// panicked gives, for the log, where a panic happened and of what type it was; it is called while that is recovered
// from. Only the runtime's own texts are safe to print.
func panicked(p any) []any {
	text := ""
	if e, ok := p.(runtime.Error); ok {
		text = e.Error()
	}
	return []any{"panic", fmt.Sprintf("%T", p), "text", text, "stack", string(debug.Stack())}
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
