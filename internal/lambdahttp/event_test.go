package lambdahttp

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, event                              string
		method, uri, path, host, remote, content string
		header                                   http.Header
	}{
		{
			name: "payload 2.0",
			event: `{"version":"2.0","rawPath":"/v1/chat/completions","rawQueryString":"a=1&b=x%20y&a=2","cookies":["c=1","d=2"],
				"headers":{"host":"abc.lambda-url.eu-west-1.on.aws","content-type":"application/json","x-two":"1,2"},
				"requestContext":{"domainName":"abc.lambda-url.eu-west-1.on.aws","http":{"method":"POST","path":"/v1/chat/completions","sourceIp":"203.0.113.7"}},
				"body":"{\"a\":1}","isBase64Encoded":false}`,
			method: "POST", uri: "/v1/chat/completions?a=1&b=x%20y&a=2", path: "/v1/chat/completions",
			host: "abc.lambda-url.eu-west-1.on.aws", remote: "203.0.113.7:0", content: `{"a":1}`,
			header: http.Header{"Content-Type": {"application/json"}, "X-Two": {"1,2"}, "Cookie": {"c=1; d=2"}},
		},
		{
			name: "base64 body, escaped path, IPv6",
			event: `{"version":"2.0","rawPath":"/a%2Fb/%E4%BD%A0","headers":{},"body":"aGVsbG8=","isBase64Encoded":true,
				"requestContext":{"domainName":"d","http":{"method":"PUT","sourceIp":"2001:db8::1"}}}`,
			method: "PUT", uri: "/a%2Fb/%E4%BD%A0", path: "/a/b/你", host: "d", remote: "[2001:db8::1]:0", content: "hello",
			header: http.Header{},
		},
		{
			name: "nothing but a method", event: `{"requestContext":{"http":{"method":"GET"}}}`,
			method: "GET", uri: "/", path: "/", remote: ":0", header: http.Header{},
		},
		{
			name: "a path that isn't escaped", event: `{"rawPath":"/100%/x y","requestContext":{"http":{"method":"GET"}}}`,
			method: "GET", uri: "/100%25/x%20y", path: "/100%/x y", remote: ":0", header: http.Header{},
		},
		{
			name: "a path that looks like a host", event: `{"rawPath":"//example.org/x","requestContext":{"http":{"method":"GET"}}}`,
			method: "GET", uri: "//example.org/x", path: "//example.org/x", remote: ":0", header: http.Header{},
		},
		{
			name: "payload 1.0",
			event: `{"resource":"/{proxy+}","path":"/v1/models","httpMethod":"GET",
				"headers":{"Host":"x.execute-api.eu-west-1.amazonaws.com","Accept":"b"},
				"multiValueHeaders":{"Host":["x.execute-api.eu-west-1.amazonaws.com"],"Accept":["a","b"],"cookie":["c=1"]},
				"queryStringParameters":{"q":"y z"},"multiValueQueryStringParameters":{"q":["x","y z"]},
				"requestContext":{"stage":"prod","httpMethod":"GET","identity":{"sourceIp":"198.51.100.9"}},"body":null}`,
			method: "GET", uri: "/v1/models?q=x&q=y+z", path: "/v1/models", host: "x.execute-api.eu-west-1.amazonaws.com",
			remote: "198.51.100.9:0", header: http.Header{"Accept": {"a", "b"}, "Cookie": {"c=1"}},
		},
		{
			name:   "payload 1.0 of a load balancer",
			event:  `{"requestContext":{"elb":{}},"httpMethod":"POST","path":"/x","queryStringParameters":{"q":"1"},"headers":{"host":"h"},"body":"b"}`,
			method: "POST", uri: "/x?q=1", path: "/x", host: "h", remote: ":0", content: "b", header: http.Header{},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := false
			a := buffered(t, tt.event, func(_ http.ResponseWriter, r *http.Request) {
				seen = true
				require.Equal(t, tt.method, r.Method)
				require.Equal(t, tt.uri, r.RequestURI)
				require.Equal(t, tt.path, r.URL.Path)
				require.Equal(t, tt.host, r.Host)
				require.Equal(t, tt.remote, r.RemoteAddr)
				_, _, err := net.SplitHostPort(r.RemoteAddr)
				require.NoError(t, err)
				require.Equal(t, tt.header, r.Header)
				require.EqualValues(t, len(tt.content), r.ContentLength)
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Equal(t, tt.content, string(body))
			})
			require.True(t, seen)
			require.Equal(t, 200, a.StatusCode)
		})
	}
}

func TestOtherEventsAreRefusedByName(t *testing.T) {
	for _, tt := range []struct{ name, event, want string }{
		{"schedule", `{"version":"0","source":"aws.scheduler","detail-type":"Scheduled Event","detail":"{}"}`, "keys detail, detail-type, source, version"},
		{"the console's test event", `{"key1":"value1","key2":"value2"}`, "keys key1, key2"},
		{"many keys", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, "keys a, b, c, d, e, f, g, h, …"},
		{"empty", `{}`, "an empty object"},
		{"an array", `[1]`, "no JSON object"},
		{"null", `null`, "no JSON object"},
		{"a type that doesn't fit", `{"headers":"value"}`, "keys headers"},
		{"a body that isn't base64", `{"requestContext":{"http":{"method":"GET"}},"isBase64Encoded":true,"body":"value"}`, "isn't base64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") })
			for name, run := range map[string]func() error{
				"streamed": func() error { _, err := Streamed(never, Options{})(t.Context(), json.RawMessage(tt.event)); return err },
				"buffered": func() error { _, err := Buffered(never, Options{})(t.Context(), json.RawMessage(tt.event)); return err },
			} {
				err := run()
				require.ErrorContains(t, err, tt.want, name)
				require.NotContains(t, strings.ReplaceAll(err.Error(), "values", ""), "value", "an event's data is nobody's to print")
			}
		})
	}
}

func TestStreamsAreNeverCompressed(t *testing.T) {
	event := json.RawMessage(`{"headers":{"accept-encoding":"gzip, br"},"requestContext":{"http":{"method":"GET"}}}`)
	reply, err := Streamed(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		require.NotContains(t, r.Header, "Accept-Encoding")
	}), Options{})(t.Context(), event)
	require.NoError(t, err)
	require.NoError(t, reply.Close())
}

func FuzzEvent(f *testing.F) {
	f.Add([]byte(getEvent))
	f.Add([]byte(`{"httpMethod":"GET","path":"/%","queryStringParameters":{"a":"b"}}`))
	f.Add([]byte(`{"rawPath":"%zz","requestContext":{"http":{"method":"P"}},"isBase64Encoded":true,"body":"!"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := parseEvent(raw)
		if err != nil {
			return
		}
		r, err := e.request(t.Context())
		if err != nil {
			return
		}
		require.NotEmpty(t, r.Method)
		require.NotNil(t, r.Body)
		_, _, err = net.SplitHostPort(r.RemoteAddr)
		if !strings.Contains(r.RemoteAddr, "[") {
			require.NoError(t, err)
		}
	})
}
