// Package app puts the parts together: it is the only package that knows every concrete type.
//
// Its one idea: every main (serve, the Lambda functions, the tests) opens the same [App] from a configuration and
// the places that the environment names, and serves its Handler.
package app

import (
	"context"
	"log/slog"
	"net/http"
)

// Places say where things are; they come from the environment (HOLDFAST_TABLE …) or flags of the same names.
type Places struct {
	Table       string // DynamoDB table; "": in memory
	DatabaseURL string // Postgres; "": in memory
	Keys        string // HOLDFAST_KEYS: tenant:sha256,…
}

// Options are what a main decides.
type Options struct {
	Places  Places
	Lambda  bool   // runs as a Lambda function
	Local   bool   // serves people on this machine: the drill switch of scripted models is mounted
	Version string // of the build
	Log     *slog.Logger
}

// App is a running Holdfast without its listener.
type App struct{}

// Handler serves the whole HTTP surface.
func (a *App) Handler() http.Handler { return http.NotFoundHandler() }

// Upkeep does what the schedule asks: it deletes expired cache rows and says how many.
func (a *App) Upkeep(ctx context.Context) (expired int, err error) { return 0, nil }

// Close waits for work after responses, until ctx ends, and closes what is open.
func (a *App) Close(ctx context.Context) error { return nil }

// Migrate applies the migrations to the database and, on an endpoint that isn't AWS, creates the table. It does
// what the places name, needs no configuration and may be repeated. It says what it did through report.
func Migrate(ctx context.Context, p Places, report func(string)) error { return nil }
