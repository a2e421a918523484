package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pgvector/pgvector-go"
)

// Postgres is the store of a fleet: a table in Postgres with pgvector, as the migrations make it.
//
// Similarity scans the whole scope through a b-tree: exact, and quick up to some ten thousand entries a scope. A
// store that failed is left alone for a while, so that one that is away isn't waited for by each request.
type Postgres struct {
	config *pgxpool.Config
	log    *slog.Logger
	reads  away
	writes away
	known  known

	mu     sync.Mutex
	pool   *pgxpool.Pool // nil until first needed
	closed bool
}

const (
	connectTimeout = 2 * time.Second
	pingTimeout    = 500 * time.Millisecond // of a connection that was idle; after a freeze it may be dead
	idleTime       = 30 * time.Second
	readTimeout    = 1500 * time.Millisecond
	writeTimeout   = 2 * time.Second
	expireTimeout  = 15 * time.Second
	connections    = 2 // an instance; pool_max_conns in the URL overrides
)

// NewPostgres makes a store; it connects at the first use. The error of a bad URL has nothing of the URL in it.
//
// Statements are sent without being prepared (default_query_exec_mode=exec, unless the URL says otherwise): a
// prepared one turns to a generic plan after some runs, forty times slower, and fails behind a connection pooler.
func NewPostgres(databaseURL string, log *slog.Logger) (*Postgres, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("parse database URL: not a Postgres URL")
	}
	if !strings.Contains(databaseURL, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if !strings.Contains(databaseURL, "pool_max_conns") {
		config.MaxConns = connections
	}
	if config.ConnConfig.ConnectTimeout == 0 || config.ConnConfig.ConnectTimeout > connectTimeout {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.MinConns, config.MinIdleConns = 0, 0
	config.MaxConnIdleTime, config.HealthCheckPeriod, config.PingTimeout = idleTime, idleTime/2, pingTimeout
	return &Postgres{config: config, log: log}, nil
}

const findSQL = `
select exact_key, question, answer, age from (
	(select 0 as rank, exact_key, question, answer, extract(epoch from now() - created_at)::float8 as age
		from cache_entry where scope = $1 and exact_key = $2 and expires_at > now())
	union all
	(select 1, exact_key, question, answer, extract(epoch from now() - created_at)::float8
		from cache_entry where scope = $1 and canonical_key = $3 and expires_at > now()
		order by created_at desc limit 1)
) found order by rank limit 1`

// Find implements [Store].
func (p *Postgres) Find(ctx context.Context, scope, exact, canonical Hash) (e Entry, found bool, err error) {
	err = p.do(ctx, &p.reads, readTimeout, func(ctx context.Context, pool *pgxpool.Pool) error {
		e, err = scanEntry(pool.QueryRow(ctx, findSQL, scope[:], exact[:], nullable(canonical)))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return e, found, describe("find", err)
}

const nearSQL = `
select exact_key, question, answer, extract(epoch from now() - created_at)::float8
from cache_entry
where scope = $1 and embedder = $2 and embedding is not null and expires_at > now()
order by embedding <#> $3::halfvec limit $4`

// Near implements [Store].
func (p *Postgres) Near(ctx context.Context, near Near) (out []Entry, err error) {
	err = p.do(ctx, &p.reads, readTimeout, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, nearSQL, near.Scope[:], near.Embedder, pgvector.NewHalfVector(near.Vector), near.Limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Entry, error) { return scanEntry(row) })
		return err
	})
	return out, describe("find similar", err)
}

const putSQL = `
with replaced as (
	delete from cache_entry where scope = $1 and canonical_key = $3 and exact_key <> $2
)
insert into cache_entry (scope, exact_key, canonical_key, question, answer, embedder, embedding, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7::halfvec, now(), now() + $8 * interval '1 microsecond')
on conflict (scope, exact_key) do update set canonical_key = excluded.canonical_key, question = excluded.question,
	answer = excluded.answer, embedder = excluded.embedder, embedding = excluded.embedding,
	created_at = excluded.created_at, expires_at = excluded.expires_at`

// Put implements [Store].
func (p *Postgres) Put(ctx context.Context, e Entry) error {
	at := place{e.Scope, e.Exact}
	if p.known.has(at, time.Now()) {
		return nil
	}
	var embedder, embedding any
	if e.Vector != nil {
		embedder, embedding = e.Embedder, pgvector.NewHalfVector(e.Vector)
	}
	err := p.do(ctx, &p.writes, writeTimeout, func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := pool.Exec(ctx, putSQL, e.Scope[:], e.Exact[:], nullable(e.Canonical), e.Question, e.Answer,
			embedder, embedding, e.TTL.Microseconds())
		return err
	})
	if err == nil {
		p.known.add(at, time.Now().Add(e.TTL))
	}
	return describe("put", err)
}

// Rows that another expiry deletes are left to it.
const expireSQL = `
delete from cache_entry where ctid = any(array(
	select ctid from cache_entry where expires_at <= now() order by expires_at limit $1 for update skip locked))`

// Expire implements [Store].
func (p *Postgres) Expire(ctx context.Context, limit int) (count int, err error) {
	err = p.do(ctx, &away{}, expireTimeout, func(ctx context.Context, pool *pgxpool.Pool) error {
		tag, err := pool.Exec(ctx, expireSQL, limit)
		count = int(tag.RowsAffected())
		return err
	})
	return count, describe("expire", err)
}

// Close implements [Store].
func (p *Postgres) Close() {
	p.mu.Lock()
	pool := p.pool
	p.pool, p.closed = nil, true
	p.mu.Unlock()
	if pool != nil {
		pool.Close()
	}
}

// do runs work with a connection, within a time of its own. Once more if the connection turns out to be dead: a
// function may have been frozen since. All work here may be repeated.
func (p *Postgres) do(ctx context.Context, a *away, limit time.Duration, work func(context.Context, *pgxpool.Pool) error) error {
	round, ok := a.enter(time.Now())
	if !ok {
		return ErrAway
	}
	pool, err := p.open()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err = work(limited, pool); err != nil && dead(err) && limited.Err() == nil {
		err = work(limited, pool)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return err // the caller left; that says nothing of the store
	}
	if failed := isAway(err); a.leave(time.Now(), round, failed) {
		p.tell(ctx, failed, err)
	}
	return err
}

// tell logs that the store went away or came back.
func (p *Postgres) tell(ctx context.Context, failed bool, err error) {
	if !failed {
		p.log.InfoContext(ctx, "cache store is back")
		return
	}
	p.log.WarnContext(ctx, "cache store is away", "error", reason(err))
}

func (p *Postgres) open() (*pgxpool.Pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("closed")
	}
	if p.pool == nil {
		pool, err := pgxpool.NewWithConfig(context.Background(), p.config)
		if err != nil {
			return nil, errors.New("no connection pool")
		}
		p.pool = pool
	}
	return p.pool, nil
}

func scanEntry(row pgx.Row) (Entry, error) {
	var e Entry
	var exact []byte
	var age float64
	if err := row.Scan(&exact, &e.Question, &e.Answer, &age); err != nil {
		return Entry{}, err
	}
	copy(e.Exact[:], exact)
	e.Age = time.Duration(max(age, 0) * float64(time.Second))
	return e, nil
}

func nullable(h Hash) []byte {
	if h == (Hash{}) {
		return nil
	}
	return h[:]
}

// describe says what failed without a word of the database's: its messages may repeat a value or the URL.
func describe(what string, err error) error {
	if err == nil || errors.Is(err, ErrAway) {
		return err
	}
	return fmt.Errorf("%s in postgres: %w", what, reason(err))
}
