package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// Bounds of reading a configuration.
const (
	maxFile   = 1 << 20
	maxHeader = 64 << 10
	fetchTime = 5 * time.Second
)

// name is what people know the source as; credentials of a URL are left out.
func (s Source) name() string {
	switch {
	case s.Location == "":
		return embeddedName
	case s.remote():
		return plainURL(s.Location)
	}
	return s.Location
}

func (s Source) remote() bool {
	return strings.HasPrefix(s.Location, "http://") || strings.HasPrefix(s.Location, "https://")
}

// plainURL is a URL without what may be secret in it: user, password, query.
func plainURL(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "the configuration's URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// read looks at the source. etag is of the content that is known already; "" for none.
func (s Source) read(ctx context.Context, etag string) (reading, error) {
	switch {
	case s.Location == "":
		return reading{data: embedded}, nil
	case s.remote():
		return fetch(ctx, s.Location, etag)
	}
	return readFile(ctx, s.Location)
}

// readFile asks for the time of the last change after reading: who writes in between makes that time a new one. A pipe
// in the file's place keeps it waiting no longer than ctx allows.
func readFile(ctx context.Context, path string) (reading, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return reading{}, cause(err)
	}
	defer f.Close()
	if end, ok := ctx.Deadline(); ok {
		_ = f.SetReadDeadline(end) // files have none, and need none
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return reading{}, errors.New("is no file")
	}
	data, err := capped(f)
	if err != nil {
		return reading{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return reading{}, cause(err)
	}
	return reading{data: data, written: info.ModTime()}, nil
}

// cause leaves out the path, which stands before the reason anyway.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// fetch gets a configuration by HTTP. It follows no redirect, as the URL's credentials are for its own host, and its
// errors never repeat the URL.
func fetch(ctx context.Context, location, etag string) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return reading{}, errors.New("is no valid URL")
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	res, err := newFetcher().Do(req)
	if err != nil {
		return reading{}, unreachable(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && etag != "":
		return reading{unchanged: true}, nil
	case res.StatusCode != http.StatusOK:
		return reading{}, fmt.Errorf("answers with status %d", res.StatusCode)
	}
	data, err := capped(res.Body)
	return reading{data: data, etag: res.Header.Get("ETag")}, err
}

// newFetcher is a client for one request: it keeps no connection. The request's context is its clock.
func newFetcher() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// unreachable says why without addresses: a connection's own port is another each time.
func unreachable(err error) error {
	var u *url.Error
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &dns):
		return errors.New("can't be reached: its name isn't found")
	case errors.As(err, &op):
		err = op.Err
	case errors.As(err, &u):
		err = u.Err
	}
	return fmt.Errorf("can't be reached: %w", err)
}

func capped(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, unread(err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("is larger than %d KiB", maxFile>>10)
	}
	return data, nil
}

// unread says why a reading broke off, with neither path nor addresses.
func unread(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("reading: %w", cause(err))
}
