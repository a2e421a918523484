package lambdahttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"go.uber.org/goleak"
)

// roleVariable makes the test binary a bootstrap: the server's tests start this very program again.
const roleVariable = "LAMBDAHTTP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		bootstrap(role)
		return
	}
	goleak.VerifyTestMain(m)
}

// bootstrap is the function under the local server, in one of several characters.
func bootstrap(role string) {
	h := testHandler()
	switch role {
	case "streamed":
		lambda.Start(Streamed(h, Options{}))
	case "buffered":
		lambda.Start(Buffered(h, Options{}))
	case "polite":
		lambda.StartWithOptions(Streamed(h, Options{}), lambda.WithEnableSIGTERM(func() {
			fmt.Fprintln(os.Stdout, "asked to stop")
			os.Exit(0)
		}))
	case "stubborn":
		lambda.StartWithOptions(Streamed(h, Options{}), lambda.WithEnableSIGTERM(func() {}))
	case "json":
		lambda.Start(func(json.RawMessage) (map[string]int, error) { return map[string]int{"answer": 42}, nil })
	case "failing":
		lambda.Start(func(json.RawMessage) (any, error) { return nil, fmt.Errorf("the words of a caller") })
	case "refusing":
		fmt.Fprintln(os.Stderr, "holdfast.yaml:3: no such key")
		os.Exit(2)
	case "crashing":
		os.Exit(7)
	case "init-error":
		initError()
	case "unfinished":
		unfinished(os.Getenv("LAMBDAHTTP_TEST_REPORT"), os.Getenv("LAMBDAHTTP_TEST_GATE"))
	case "raw":
		raw(os.Getenv("LAMBDAHTTP_TEST_TYPE"), os.Getenv("LAMBDAHTTP_TEST_RESPONSE"))
	}
}

func initError() {
	resp, err := http.Post("http://"+os.Getenv("AWS_LAMBDA_RUNTIME_API")+"/2018-06-01/runtime/init/error", "application/json",
		strings.NewReader(`{"errorType":"Config.Missing","errorMessage":"the words of a caller"}`))
	if err == nil {
		_ = resp.Body.Close()
	}
	os.Exit(1)
}

// raw answers every event with one body of one type, whatever it is: a runtime other than aws-lambda-go's.
func raw(contentType, body string) {
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	for {
		next, err := http.Get(base + "next")
		if err != nil {
			os.Exit(1)
		}
		_ = next.Body.Close()
		posted, err := http.Post(base+next.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/response", contentType, strings.NewReader(body))
		if err != nil {
			os.Exit(1)
		}
		_ = posted.Body.Close()
	}
}

// unfinished begins a report of its first event, never ends it, and asks for another once the gate lets it.
func unfinished(report, gate string) {
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	next, err := http.Get(base + "next")
	if err != nil {
		os.Exit(1)
	}
	_ = next.Body.Close()
	silent, _ := io.Pipe()
	body := io.MultiReader(strings.NewReader(`{"statusCode":200}`+strings.Repeat("\x00", 8)+"half"), silent)
	go func() {
		_, _ = http.Post(base+next.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/"+report, streamingType, body)
	}()
	_, _ = http.Get(gate)
	_, _ = http.Get(base + "next")
}

// testHandler does what its path says. Where it has to wait it asks a gate of the test's, never the clock.
func testHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/steps", func(w http.ResponseWriter, r *http.Request) {
		for i := range 4 {
			pass(r.Context(), r, "step")
			_, _ = fmt.Fprintf(w, "chunk %d", i)
		}
	})
	mux.HandleFunc("/ticks", func(w http.ResponseWriter, r *http.Request) {
		gap, _ := time.ParseDuration(r.FormValue("gap"))
		tick := time.NewTicker(gap)
		defer tick.Stop()
		for i := range 5 {
			_, _ = fmt.Fprintf(w, "%d", i)
			<-tick.C
		}
	})
	mux.HandleFunc("/after", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "answer")
		AfterResponse(r.Context(), func(ctx context.Context) {
			pass(ctx, r, "work begins")
			pass(ctx, r, "work ends")
		})
	})
	mux.HandleFunc("/pass", func(w http.ResponseWriter, r *http.Request) {
		pass(r.Context(), r, r.FormValue("name"))
		_, _ = io.WriteString(w, "passed")
	})
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("before the first byte") })
	mux.HandleFunc("/panic-late", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		panic("after it")
	})
	mux.HandleFunc("/exit", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	mux.HandleFunc("/exit-late", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		pass(r.Context(), r, "exit")
		os.Exit(3)
	})
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { select {} })
	mux.HandleFunc("/hang-late", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		select {}
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		_, _ = w.Write(make([]byte, n))
	})
	return mux
}

// pass tells the test's gate where the function is and waits until it may go on.
func pass(ctx context.Context, r *http.Request, name string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.FormValue("gate")+"?name="+url.QueryEscape(name), nil)
	if err != nil {
		panic(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	_ = resp.Body.Close()
}

type echoed struct {
	Method, URI, Host, Remote, Body, RequestID, Function, Region, Own string
	Header                                                            http.Header
	LeftMS                                                            int64
	PID                                                               int
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	deadline, _ := r.Context().Deadline()
	w.Header().Set("Content-Type", "application/json")
	w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
	_ = json.NewEncoder(w).Encode(echoed{
		Method: r.Method, URI: r.RequestURI, Host: r.Host, Remote: r.RemoteAddr, Body: string(body), Header: r.Header,
		RequestID: RequestID(r.Context()), LeftMS: time.Until(deadline).Milliseconds(), PID: os.Getpid(),
		Function: os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), Region: os.Getenv("AWS_REGION"), Own: os.Getenv("LAMBDAHTTP_TEST_OWN"),
	})
}
