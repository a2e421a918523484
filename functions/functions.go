// Package functions is what the three Lambda mains share.
//
// Its one idea: a function starts whole or not at all. Open loads and judges the configuration during Lambda's INIT;
// where it is refused, the reason goes to stderr and the process exits with status 2, before any event is taken.
package functions

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/internal/app"
	"holdfast/internal/config"
)

const (
	exitRefused = 2
	openTime    = 8 * time.Second        // of the 10 s that Lambda gives to INIT
	upTime      = 2 * time.Second        // of it, for the configuration's server to come up
	closeTime   = 400 * time.Millisecond // of the 500 ms between SIGTERM and SIGKILL
)

// Function is Holdfast opened inside a Lambda process.
type Function struct {
	App    *app.App
	Places app.Places
	Log    *slog.Logger // JSON or text, as the function's LoggingConfig says
}

// Open opens the App that the environment describes: HOLDFAST_CONFIG, else holdfast.yaml beside the bootstrap. It does
// not return where that is refused.
func Open(version string) Function {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	f := Function{Places: app.Places{
		Table: os.Getenv("HOLDFAST_TABLE"), DatabaseURL: os.Getenv("HOLDFAST_DATABASE_URL"), Keys: os.Getenv("HOLDFAST_KEYS"),
	}, Log: slog.New(lambdacontext.NewLogHandler())}
	if err := f.open(ctx, cmp.Or(version, "dev")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitRefused)
	}
	return f
}

func (f *Function) open(ctx context.Context, version string) error {
	feed := config.NewFeed(config.Source{Location: location(), MoreKeys: f.Places.Keys != ""})
	c, warnings, err := first(ctx, feed)
	if err != nil {
		return err
	}
	f.App, err = app.Open(ctx, c, app.Options{Places: f.Places, Lambda: true, Version: version, Log: f.Log, Feed: feed})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		f.Log.Warn("configuration", "file", w.File, "line", w.Line, "reason", w.Reason)
	}
	return nil
}

// first reads the configuration. The server of a URL may be an extension that starts beside the function: it gets a
// moment to come up.
func first(ctx context.Context, feed *config.Feed) (*config.Config, []config.Warning, error) {
	for begin := time.Now(); ; {
		c, warnings, err := feed.Next(ctx)
		if err == nil || !feed.Unread() || feed.File() || time.Since(begin) > upTime {
			return c, warnings, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, warnings, err
		}
	}
}

// location is where the configuration is; "" leads to the refusal that says what is missing.
func location() string {
	if place := os.Getenv("HOLDFAST_CONFIG"); place != "" {
		return place
	}
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	beside := filepath.Join(filepath.Dir(program), "holdfast.yaml")
	if _, err := os.Stat(beside); err != nil {
		return ""
	}
	return beside
}

// Start takes events with handler, a function that lambda.Start accepts, until the platform ends the process. At
// SIGTERM it closes the App.
func (f Function) Start(handler any) {
	lambda.StartWithOptions(handler, lambda.WithEnableSIGTERM(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := f.App.Close(ctx); err != nil {
			f.Log.Warn("closing", "reason", err.Error())
		}
		os.Exit(0)
	}))
}
