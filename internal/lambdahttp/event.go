package lambdahttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// event is what both payload versions say about a request: 2.0 (Function URLs, HTTP APIs) and 1.0 (REST APIs, ALB).
type event struct {
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Cookies         []string          `json:"cookies"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
	RequestContext  struct {
		DomainName string `json:"domainName"`
		HTTP       struct {
			Method   string `json:"method"`
			SourceIP string `json:"sourceIp"`
		} `json:"http"`
		Identity struct {
			SourceIP string `json:"sourceIp"`
		} `json:"identity"`
	} `json:"requestContext"`

	// Payload 1.0 only.
	HTTPMethod         string              `json:"httpMethod"`
	Path               string              `json:"path"`
	MultiValueHeaders  map[string][]string `json:"multiValueHeaders"`
	SingleQuery        map[string]string   `json:"queryStringParameters"`
	MultiValueQueryMap map[string][]string `json:"multiValueQueryStringParameters"`
}

// parseEvent refuses what is no HTTP request, and names what it got: a test event of the console, a schedule …
func parseEvent(raw json.RawMessage) (*event, error) {
	e := &event{}
	err := json.Unmarshal(raw, e)
	if err == nil && (e.RequestContext.HTTP.Method != "" || e.HTTPMethod != "") {
		return e, nil
	}
	return nil, fmt.Errorf("want the event of a Function URL, an HTTP API or a REST API (payload 2.0 or 1.0), got %s", describe(raw))
}

// describe names an event by its outermost keys. Values may be anybody's data.
func describe(raw json.RawMessage) string {
	const most = 8
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return "something that is no JSON object"
	}
	keys := slices.Sorted(maps.Keys(fields))
	if len(keys) == 0 {
		return "an empty object"
	}
	if len(keys) > most {
		keys = append(keys[:most], "…")
	}
	return fmt.Sprintf("an object with the keys %.200s", strings.Join(keys, ", "))
}

func (e *event) old() bool { return e.HTTPMethod != "" }

// request is the *http.Request that net/http's server would have made of the same call. RemoteAddr is the caller's
// address as the platform saw it; the port is 0, for Lambda doesn't tell it.
func (e *event) request(ctx context.Context) (*http.Request, error) {
	body, err := e.body()
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: cmp.Or(e.RequestContext.HTTP.Method, e.HTTPMethod),
		URL:    e.url(),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        e.header(),
		Body:          http.NoBody,
		ContentLength: int64(len(body)),
		RemoteAddr:    net.JoinHostPort(cmp.Or(e.RequestContext.HTTP.SourceIP, e.RequestContext.Identity.SourceIP), "0"),
	}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.Host = cmp.Or(r.Header.Get("Host"), e.RequestContext.DomainName)
	r.Header.Del("Host")
	r.RequestURI = r.URL.RequestURI()
	return r.WithContext(ctx), nil
}

func (e *event) body() ([]byte, error) {
	if !e.IsBase64Encoded {
		return []byte(e.Body), nil
	}
	b, err := base64.StdEncoding.DecodeString(e.Body)
	if err != nil {
		return nil, errors.New("decode the event's body: isBase64Encoded is true, but it isn't base64")
	}
	return b, nil
}

func (e *event) url() *url.URL {
	raw := cmp.Or(e.RawPath, e.Path, "/")
	u := &url.URL{Path: raw, RawQuery: e.query()}
	if path, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = path, raw
	}
	return u
}

// query encodes the parameters of payload 1.0, which come decoded; 2.0 brings the string itself.
func (e *event) query() string {
	if !e.old() {
		return e.RawQueryString
	}
	values := url.Values(e.MultiValueQueryMap)
	if len(values) == 0 {
		values = url.Values{}
		for name, value := range e.SingleQuery {
			values.Set(name, value)
		}
	}
	return values.Encode()
}

func (e *event) header() http.Header {
	h := make(http.Header, len(e.Headers)+1)
	for name, value := range e.Headers {
		h.Set(name, value)
	}
	for name, values := range e.MultiValueHeaders {
		h[http.CanonicalHeaderKey(name)] = values
	}
	if len(e.Cookies) > 0 {
		h.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	return h
}
