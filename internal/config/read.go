package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
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

func (s Source) read(ctx context.Context) ([]byte, error) {
	switch {
	case s.Location == "":
		return embedded, nil
	case s.remote():
		return fetch(ctx, s.Location)
	}
	return readFile(s.Location)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, errors.New("is no file")
	}
	return capped(f)
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
func fetch(ctx context.Context, location string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, errors.New("is no valid URL")
	}
	res, err := newFetcher().Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answers with status %d", res.StatusCode)
	}
	return capped(res.Body)
}

// newFetcher is a client for one request: it keeps no connection. The request's context is its clock.
func newFetcher() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", fetchTime)
	}
	return fmt.Errorf("can't be reached: %w", err)
}

func capped(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("is larger than %d KiB", maxFile>>10)
	}
	return data, nil
}
