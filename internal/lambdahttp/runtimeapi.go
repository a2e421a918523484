package lambdahttp

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	streamingType = "application/vnd.awslambda.http-integration-response"
	errorTrailer  = "Lambda-Runtime-Function-Error-Type"
	arnPrefix     = "arn:aws:lambda:us-east-1:000000000000:function:"
)

// api is what the process talks to: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
func (i *instance) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", i.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", i.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", i.failure)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", i.initFailure)
	mux.HandleFunc("POST /2020-01-01/extension/register", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Lambda-Extension-Identifier", "00000000-0000-4000-8000-000000000000")
	})
	mux.HandleFunc("GET /2020-01-01/extension/event/next", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // an extension that registered for no events waits as long as it lives
	})
	return mux
}

// next completes the invocation before, and hands out another.
func (i *instance) next(w http.ResponseWriter, r *http.Request) {
	i.complete()
	select {
	case inv := <-i.queue:
		if !i.begin(inv) {
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", arnPrefix+"local")
		h.Set("Lambda-Runtime-Trace-Id", inv.trace)
		_, _ = w.Write(inv.event)
	case <-r.Context().Done():
	}
}

func (i *instance) complete() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.polled {
		i.polled = true
		close(i.ready)
	}
	if i.current != nil {
		i.current.complete()
		i.current, i.served = nil, true
	}
}

// begin starts the invocation's clock; it reports false, and has answered, when the process is gone.
func (i *instance) begin(inv *invocation) bool {
	timeout := i.server.Timeout
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		inv.crash()
		return false
	}
	if i.current != nil {
		i.current.complete() // a second poll was waiting beside the first one: there is one invocation at a time
	}
	i.current = inv
	inv.deadline = time.Now().Add(timeout)
	inv.overrun = time.AfterFunc(timeout, func() {
		inv.timedOut.Store(true)
		i.kill("an invocation took longer than " + timeout.String())
	})
	return true
}

// running is the invocation a report is about, if it is this instance's and nothing was reported of it yet. The report
// has to end with the invocation's time, also where the process polls on meanwhile.
func (i *instance) running(w http.ResponseWriter, r *http.Request) *invocation {
	i.mu.Lock()
	defer i.mu.Unlock()
	if inv := i.current; inv != nil && inv.id == r.PathValue("id") && inv.claim() {
		_ = http.NewResponseController(w).SetReadDeadline(inv.deadline)
		return inv
	}
	refuse(w, "InvalidRequestID", "no such invocation, or it has its response")
	return nil
}

func (i *instance) response(w http.ResponseWriter, r *http.Request) {
	inv := i.running(w, r)
	if inv == nil {
		return
	}
	var err error
	if r.Header.Get("Content-Type") == streamingType {
		err = inv.stream(r.Body)
	} else {
		err = inv.whole(r.Body)
	}
	if err == nil {
		if kind := r.Trailer.Get(errorTrailer); kind != "" {
			i.server.Log.Error("the function failed after its first byte", "request_id", inv.id, "error_type", kind)
		}
	}
	inv.end(err)
	accept(w)
}

func (i *instance) failure(w http.ResponseWriter, r *http.Request) {
	inv := i.running(w, r)
	if inv == nil {
		return
	}
	i.server.Log.Error("the function failed", "request_id", inv.id, "error_type", errorType(r.Body))
	inv.end(inv.fail(http.StatusBadGateway, functionError()))
	accept(w)
}

func (i *instance) initFailure(w http.ResponseWriter, r *http.Request) {
	kind := errorType(r.Body)
	i.mu.Lock()
	i.reason = "it reported an error of its start: " + kind
	i.mu.Unlock()
	accept(w)
}

// errorType is all that is told of a function's error: its message may quote a request.
func errorType(body io.Reader) string {
	var e struct {
		Type string `json:"errorType"`
	}
	err := json.NewDecoder(io.LimitReader(body, maxEnvelope)).Decode(&e)
	_, _ = io.Copy(io.Discard, body)
	if err != nil || e.Type == "" {
		return "unknown"
	}
	return e.Type
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func refuse(w http.ResponseWriter, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"errorType": kind, "errorMessage": message})
}
