package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"holdfast/internal/cache"
	"holdfast/internal/config"
	"holdfast/internal/providers"
	"holdfast/migrations"
)

// Most connections of a process: a function answers one request at a time.
const (
	lambdaConnections = 1
	serveConnections  = 4
)

// locate finds out where the database is, once. false: its URL couldn't be fetched, so it is worth trying again.
func (a *App) locate(ctx context.Context) bool {
	if a.database != nil {
		return true
	}
	db, err := a.options.Places.database(ctx)
	if err != nil && !errors.Is(err, errBadDatabase) {
		a.log.Warn("the cache is in memory for now", "reason", err)
		return false
	}
	db.bad = err
	a.database = &db
	return true
}

// openAnswers opens the cache's store, in memory where no database is known. It asks nothing of it yet.
func (a *App) openAnswers(c config.Cache) (cache.Store, error) {
	db := a.database
	switch {
	case db == nil || db.bad == nil && db.url == "":
		return cache.NewMemory(c.MaxEntries), nil
	case db.bad != nil:
		return nil, db.bad
	}
	o := cache.PostgresOptions{Connections: serveConnections, Password: db.password, Log: a.log}
	if a.options.Lambda {
		o.Connections = lambdaConnections
	}
	return cache.NewPostgres(db.url, o)
}

// databasePlace is how Postgres is reached.
type databasePlace struct {
	url      string                                                                           // "": there is none
	password func(ctx context.Context, host string, port uint16, user string) (string, error) // nil: the URL's
	bad      error                                                                            // why it can never be used
}

// errBadDatabase is a URL that can never be right.
var errBadDatabase = errors.New("HOLDFAST_DATABASE_URL can't be used")

// database looks the URL up where it is a parameter's path, and takes our own parameter out of it: iam=true has AWS
// sign in instead of a password.
func (p Places) database(ctx context.Context) (databasePlace, error) {
	raw, err := p.databaseURL(ctx)
	if err != nil {
		return databasePlace{}, err
	}
	if !strings.Contains(raw, "iam=") {
		return databasePlace{url: raw}, nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return databasePlace{}, fmt.Errorf("%w: iam=true needs the form postgres://user@host:port/name?…", errBadDatabase)
	}
	query := u.Query()
	iam, err := strconv.ParseBool(query.Get("iam"))
	safe := slices.Contains([]string{"require", "verify-ca", "verify-full"}, query.Get("sslmode"))
	switch {
	case err != nil && query.Has("iam"):
		return databasePlace{}, fmt.Errorf("%w: iam is true or false", errBadDatabase)
	case iam && !safe:
		return databasePlace{}, fmt.Errorf("%w: iam=true needs sslmode=verify-full", errBadDatabase)
	}
	query.Del("iam")
	u.RawQuery = query.Encode()
	if !iam {
		return databasePlace{url: u.String()}, nil
	}
	return databasePlace{url: u.String(), password: iamPassword(p.aws())}, nil
}

func (p Places) databaseURL(ctx context.Context) (string, error) {
	path, ok := strings.CutPrefix(p.DatabaseURL, "ssm:")
	if !ok {
		return p.DatabaseURL, nil
	}
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	found, err := (&parameters{find: p.aws()}).Fetch(ctx, []string{path})
	if err != nil {
		return "", fmt.Errorf("HOLDFAST_DATABASE_URL: %w", err)
	}
	if found[path] == "" {
		return "", fmt.Errorf("HOLDFAST_DATABASE_URL: there is no parameter %s", path)
	}
	return strings.TrimSpace(found[path]), nil
}

// iamTime is how long a token may be used to connect; RDS allows no more.
const iamTime = 15 * time.Minute

// iamPassword makes the tokens that RDS and Aurora take in place of a password: a signed request that is never sent.
// Signing asks nobody, so each connection has its own.
func iamPassword(find providers.AWSConfig) func(ctx context.Context, host string, port uint16, user string) (string, error) {
	return func(ctx context.Context, host string, port uint16, user string) (string, error) {
		account, err := find(ctx)
		if err != nil {
			return "", errors.New("there are no AWS settings for the database")
		}
		if account.Region == "" {
			return "", errors.New("there is no AWS region for the database")
		}
		credentials, err := account.Credentials.Retrieve(ctx)
		if err != nil {
			return "", errors.New("there are no AWS credentials for the database")
		}
		query := url.Values{"Action": {"connect"}, "DBUser": {user}, "X-Amz-Expires": {strconv.Itoa(int(iamTime.Seconds()))}}
		at := url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port))), Path: "/", RawQuery: query.Encode()}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
		if err != nil {
			return "", errors.New("the database's address is no URL")
		}
		empty := sha256.Sum256(nil)
		signed, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, req, hex.EncodeToString(empty[:]), "rds-db", account.Region, time.Now())
		if err != nil {
			return "", errors.New("the database's token can't be signed")
		}
		return strings.TrimPrefix(signed, "https://"), nil
	}
}

func migrateDatabase(ctx context.Context, p Places, report func(string)) error {
	db, err := p.database(ctx)
	if err != nil || db.url == "" {
		return err
	}
	lines, err := migrations.Apply(ctx, db.url, db.password)
	for _, line := range lines {
		report("database: " + line)
	}
	return err
}

// CacheTarget says what is purged or forgotten.
type CacheTarget = cache.Target

// ErrCacheTarget is of a target that isn't one.
var ErrCacheTarget = cache.ErrTarget

// PurgeCache deletes answers from the database that the places name and says how many. It needs no configuration. What
// is being answered meanwhile may be stored after it.
func PurgeCache(ctx context.Context, p Places, t CacheTarget) (int, error) {
	return p.inCache(ctx, func(c *cache.Cache) (int, error) { return c.Purge(ctx, t) })
}

// ForgetCache deletes the answers to a question, and keeps it from being answered and stored for a time.
func ForgetCache(ctx context.Context, p Places, t CacheTarget, d time.Duration) (int, error) {
	return p.inCache(ctx, func(c *cache.Cache) (int, error) { return c.Forget(ctx, t, d) })
}

// ForgetFor reads how long a question is forgotten; 720 h where nothing is said.
func ForgetFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(cmp.Or(text, "720h"))
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: a time such as 90m or 720h", text)
	}
	return d, nil
}

func (p Places) inCache(ctx context.Context, do func(*cache.Cache) (int, error)) (int, error) {
	db, err := p.database(ctx)
	if err != nil {
		return 0, err
	}
	if db.url == "" {
		return 0, errors.New("HOLDFAST_DATABASE_URL is not set: a cache in memory is forgotten when its process ends")
	}
	store, err := cache.NewPostgres(db.url, cache.PostgresOptions{Password: db.password})
	if err != nil {
		return 0, err
	}
	c := cache.New(cache.Settings{}, store, cache.NewBuiltin(), slog.New(slog.DiscardHandler))
	defer c.Close()
	return do(c)
}
