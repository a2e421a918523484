// Package app puts the parts together: it is the only package that knows every concrete type.
//
// Its one idea: every main (serve, the Lambda functions, the tests) opens the same [App] from a configuration and
// the places that the environment names, and serves its Handler. The stores live as long as the App; what the
// configuration says lives in one immutable state that is swapped as a whole.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"holdfast/internal/api"
	"holdfast/internal/cache"
	"holdfast/internal/config"
	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
	"holdfast/internal/spend"
)

// Places say where things are; they come from the environment (HOLDFAST_TABLE …) or flags of the same names.
type Places struct {
	Table       string // DynamoDB table; "": in memory
	DatabaseURL string // Postgres, or ssm:/path of its URL; "": in memory
	Keys        string // HOLDFAST_KEYS: tenant:sha256,…
	// AWS finds region and credentials; nil: in the environment's variables alone, as on Lambda.
	AWS providers.AWSConfig
}

func (p Places) aws() providers.AWSConfig {
	if p.AWS == nil {
		return providers.EnvironmentAWS
	}
	return p.AWS
}

// Options are what a main decides.
type Options struct {
	Places  Places
	Lambda  bool   // runs as a Lambda function
	Local   bool   // serves people on this machine: the drill switch of scripted models is mounted
	Version string // of the build
	Log     *slog.Logger
	// Feed gave the configuration and is asked for newer ones: a file by a goroutine twice a second, or on Lambda after
	// answers, a URL after answers once 10 s have passed. nil: the configuration stays.
	Feed *config.Feed
}

// How long opening may wait for others.
const (
	warmTime   = 300 * time.Millisecond // for the breakers' items
	secretTime = 3 * time.Second        // for ssm: values that are asked for at the start
)

// App is a running Holdfast without its listener.
type App struct {
	options Options
	log     *slog.Logger
	store   breaker.Store
	meter   *spend.Meter
	unstore func()      // closes what the stores of breakers and meter hold
	answers cache.Store // nil until a configuration has a cache; guarded by renewal.mu once opened
	embed   cache.Embedder
	// database is where the cache is; nil until that is known. Guarded by renewal.mu once opened.
	database *databasePlace
	secrets  *config.Secrets
	after    afterwork
	now      atomic.Pointer[state]
	renewal  renewal
	tokens   api.Correction
}

// Open makes an App of a configuration. It reads the breakers' items once, within 300 ms. A store that can't be
// reached is a warning in the log, never an error.
func Open(ctx context.Context, c *config.Config, o Options) (*App, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{
		options: o, log: o.Log, after: afterwork{log: o.Log}, embed: cache.NewBuiltin(),
		secrets: config.NewSecrets(&parameters{find: o.Places.aws()}),
	}
	var err error
	if err = a.openTable(ctx); err != nil {
		return nil, err
	}
	filled, whole := a.fill(ctx, c, secretTime)
	if !whole {
		a.renewal.waiting = c
	}
	s, err := a.build(filled, nil)
	if err != nil {
		return nil, err
	}
	s.whole = whole
	a.now.Store(s)
	s.warm(ctx)
	if c.Embedded {
		o.Feed = nil
	}
	a.begin(o.Feed)
	return a, nil
}

// Handler serves the whole HTTP surface.
func (a *App) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { // after any answer: a configuration that lets nobody in must be mendable
			if a.renewal.due() {
				a.after.run(r.Context(), a.renew)
			}
		}()
		a.now.Load().serve(w, r)
	})
}

// swap puts a state into service. Requests in flight keep theirs. The caller holds renewal.mu.
func (a *App) swap(s *state) {
	if m, ok := a.answers.(interface{ Resize(maxEntries int) }); ok {
		m.Resize(s.config.Cache.MaxEntries)
	}
	a.now.Swap(s).retire()
}

// Upkeep does what the schedule asks: it deletes expired cache rows and says how many.
func (a *App) Upkeep(ctx context.Context) (expired int, err error) {
	if a.renewal.due() {
		a.renew(ctx)
	}
	s := a.now.Load()
	if s == nil || s.cache == nil {
		return 0, nil
	}
	return s.cache.Expire(ctx)
}

// Close waits for work after responses, until ctx ends, and closes what is open.
func (a *App) Close(ctx context.Context) error {
	a.renewal.end()
	err := a.after.wait(ctx)
	a.renewal.mu.Lock()
	defer a.renewal.mu.Unlock()
	s := a.now.Load()
	err = errors.Join(err, s.gate.Close(ctx), a.meter.Close(ctx))
	s.close()
	a.unstore()
	if a.answers != nil {
		a.answers.Close()
	}
	return err
}
