package lambdahttp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Preludes may come in any pieces, and may be nonsense.
func TestPreludes(t *testing.T) {
	nuls := strings.Repeat("\x00", 8)
	for _, tt := range []struct {
		name   string
		pieces []string
		end    error
		status int
		body   string
		broken bool
	}{
		{"at once", []string{`{"statusCode":201}` + nuls + "body"}, nil, 201, "body", false},
		{"in pieces", []string{`{"status`, `Code":201}` + nuls[:3], nuls[3:], "bo", "dy"}, nil, 201, "body", false},
		{"NULs in the body", []string{`{}` + nuls + nuls + "x"}, nil, 200, nuls + "x", false},
		{"no body", []string{`{"statusCode":204}` + nuls}, nil, 204, "", false},
		{"none", []string{"hello"}, nil, 502, "", false},
		{"empty", nil, nil, 502, "", false},
		{"not JSON", []string{"hello" + nuls}, nil, 502, "", false},
		{"impossible status", []string{`{"statusCode":101}` + nuls}, nil, 502, "", false},
		{"endless", []string{strings.Repeat("a", maxPrelude+1)}, nil, 502, "", false},
		{"cut before it", []string{`{"statusCode"`}, io.ErrUnexpectedEOF, 502, "", false},
		{"cut after it", []string{`{}` + nuls + "ha"}, io.ErrUnexpectedEOF, 200, "ha", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			inv := &invocation{w: w, answered: make(chan struct{})}
			var pieces []io.Reader
			for _, p := range tt.pieces {
				pieces = append(pieces, strings.NewReader(p))
			}
			if tt.end != nil {
				pieces = append(pieces, failingReader{tt.end})
			}
			inv.end(inv.stream(io.MultiReader(pieces...)))
			<-inv.answered
			require.Equal(t, tt.status, w.Code)
			require.Equal(t, tt.broken, inv.err != nil)
			if tt.status == 502 {
				requireErrorEnvelope(t, w.Body.Bytes(), "function_error")
			} else {
				require.Equal(t, tt.body, w.Body.String())
			}
		})
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// A function that polls on while its report hangs leaves nobody waiting for ever.
func TestServerEndsAReportThatHangs(t *testing.T) {
	for _, tt := range []struct {
		report string
		status int
		end    error
	}{
		{"response", 200, io.ErrUnexpectedEOF},
		{"error", 502, nil},
	} {
		t.Run(tt.report, func(t *testing.T) {
			g := newGate(t)
			gate, err := url.QueryUnescape(g.url)
			require.NoError(t, err)
			r := start(t, "unfinished", Server{Timeout: time.Second}, "LAMBDAHTTP_TEST_REPORT="+tt.report, "LAMBDAHTTP_TEST_GATE="+gate)
			if tt.report == "error" {
				close(g.open) // of an error the caller sees nothing before its end
			}
			resp := r.do(http.MethodGet, "/", nil)
			require.Equal(t, tt.status, resp.StatusCode)
			if tt.report == "response" {
				close(g.open)
			}
			body, err := io.ReadAll(resp.Body)
			require.Equal(t, tt.end, err, "body %q", body)
		})
	}
}

// Of two polls that wait at once the first one's event is given up once the second has its own.
func TestInstanceHasOneInvocation(t *testing.T) {
	w := httptest.NewRecorder()
	first := &invocation{w: w, answered: make(chan struct{}), completed: make(chan struct{})}
	second := &invocation{answered: make(chan struct{}), completed: make(chan struct{})}
	i := &instance{server: &Server{Timeout: time.Minute}}
	require.True(t, i.begin(first))
	require.True(t, i.begin(second))
	defer second.stopClock()
	select {
	case <-first.answered:
	default:
		t.Fatal("its caller waits for ever")
	}
	requireErrorEnvelope(t, w.Body.Bytes(), "function_error")
	require.False(t, second.claimed.Load())
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"statusCode":201,"headers":{"a":"b"},"cookies":["c"]}` + strings.Repeat("\x00", 8) + "body"))
	f.Add([]byte(`{"statusCode":-1}` + strings.Repeat("\x00", 8)))
	f.Fuzz(func(t *testing.T, answer []byte) {
		w := httptest.NewRecorder()
		inv := &invocation{w: w, answered: make(chan struct{})}
		inv.end(inv.stream(bytes.NewReader(answer)))
		require.True(t, w.Code >= 200 && w.Code <= 999)
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"statusCode":201,"headers":{"a":"b"},"cookies":["c"],"body":"x"}`))
	f.Add([]byte(`{"statusCode":200,"isBase64Encoded":true,"body":"!"}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		e, _, err := decodeEnvelope(answer)
		if err == nil {
			require.True(t, e.valid())
		}
	})
}
