package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"holdfast/internal/app"
	"holdfast/internal/config"
)

// Clocks of the server. There is none for writing: a stream may last, and has clocks of its own.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	graceTime  = 30 * time.Second // for running answers after a signal
	closeTime  = 5 * time.Second  // for what follows them
	maxHeader  = 64 << 10
)

func runServe(ctx context.Context, args []string, env environment) int {
	p, status, ok := arguments("serve", args, env, "config", "listen", "table", "database-url", "keys")
	if !ok {
		return status
	}
	log := env.logger()
	feed := config.NewFeed(p.source(env))
	c, warnings, err := feed.Next(ctx)
	if err == nil {
		err = p.judge(c)
	}
	if err != nil {
		fmt.Fprintln(env.stderr, err)
		return exitRefused
	}
	if c.Embedded {
		warnings = nil // they tell of keys that nobody has promised; announce does
	}
	for _, w := range warnings {
		log.Warn("configuration", "file", w.File, "line", w.Line, "reason", w.Reason)
	}
	o := app.Options{Places: p.app, Version: buildVersion(), Log: log, Feed: feed}
	if err := serve(ctx, c, p, env, o); err != nil {
		fmt.Fprintf(env.stderr, "holdfast serve: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// judge refuses what a configuration and the places can't be together.
func (p places) judge(c *config.Config) error {
	if _, _, err := net.SplitHostPort(p.listen); err != nil {
		return fmt.Errorf("holdfast serve: %q is no address to listen at, such as %s", p.listen, defaultListen)
	}
	if c.Embedded && !loopback(p.listen) {
		return fmt.Errorf("holdfast serve: the embedded configuration lets anyone in, so it is served on this machine only, "+
			"not at %s; give it a configuration of your own with --config", p.listen)
	}
	_, err := config.ParseKeys(p.app.Keys)
	return err
}

// loopback says whether only this machine reaches an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// serve serves until ctx ends, then lets running answers end.
func serve(ctx context.Context, c *config.Config, p places, env environment, o app.Options) error {
	listener, err := net.Listen("tcp", p.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	o.Local = loopback(listener.Addr().String())
	a, err := app.Open(ctx, c, o)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: a.Handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	announce(env, listener.Addr().String(), c, p)
	select {
	case err = <-ended:
	case <-ctx.Done():
		o.Log.Info("stopping: running answers may end", "grace", graceTime.String())
		err = stop(context.WithoutCancel(ctx), server)
		if cause := <-ended; !errors.Is(cause, http.ErrServerClosed) {
			err = errors.Join(err, cause)
		}
	}
	return errors.Join(err, finish(ctx, a))
}

// stop takes no more requests and waits for those that run; what isn't done in time is cut.
func stop(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, graceTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("answers were cut after %s", graceTime), server.Close())
	}
	return nil
}

// finish lets the work after the last answers end.
func finish(ctx context.Context, a *app.App) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return a.Close(ctx)
}

// announce says where Holdfast is, and how to try it.
func announce(env environment, address string, c *config.Config, p places) {
	key := ""
	if !c.Auth.Anonymous {
		key = ` -H "Authorization: Bearer $KEY"`
	}
	fmt.Fprintf(env.stdout, "Holdfast listens on http://%s (%s, version %s). Try:\n\n"+
		"  curl -N http://%s/v1/chat/completions%s -d '{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}'\n\n",
		address, c.Source, c.Version, address, key)
	if c.Embedded && !anyKey(c) {
		fmt.Fprint(env.stdout, "No provider's key is set, so scripted models answer. holdfast check shows which keys are asked for.\n\n")
	}
}
