package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Postgres is the store of a fleet: a table in Postgres with pgvector, as the migrations make it.
//
// Similarity scans the whole scope: exact, and quick up to some ten thousand entries a scope; docs/cache-scale.md says
// what helps beyond. A store that failed is left alone for a while, so that one that is away isn't waited for by each
// request.
type Postgres struct {
	config *pgxpool.Config
	log    *slog.Logger
	reads  away
	nears  away // similarity may take too long in a large scope while all else is quick
	writes away
	known  known

	glances away // apart from reads, as they give up sooner

	mu     sync.Mutex
	pool   *pgxpool.Pool // nil until first needed
	closed bool
}

// PostgresOptions are what the URL doesn't say.
type PostgresOptions struct {
	Connections int // at most, of this process; 0: 1. pool_max_conns in the URL wins
	// Password gives the password of a user at a server, asked at each connect; nil: the URL's.
	Password func(ctx context.Context, host string, port uint16, user string) (string, error)
	Log      *slog.Logger // nil: nowhere
}

const (
	connectTimeout = 2 * time.Second
	pingTimeout    = 500 * time.Millisecond // of a connection that was idle; after a freeze it may be dead
	idleTime       = 30 * time.Second
	readTimeout    = 1500 * time.Millisecond
	writeTimeout   = 2 * time.Second
	upkeepTimeout  = 15 * time.Second // of a batch
	// fairTime is what a store may always take: a caller in more of a hurry learns nothing of it for others.
	fairTime = 50 * time.Millisecond
)

// NewPostgres makes a store; it connects at the first use. The error of a bad URL has nothing of the URL in it.
//
// Statements are sent without being prepared (default_query_exec_mode=exec, unless the URL says otherwise): a
// prepared one turns to a generic plan after some runs, forty times slower, and fails behind a connection pooler.
func NewPostgres(databaseURL string, o PostgresOptions) (*Postgres, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if file := (&fs.PathError{}); errors.As(err, &file) {
		return nil, errors.New("parse database URL: a file that it names can't be read")
	}
	if err != nil {
		return nil, errors.New("parse database URL: not a Postgres URL")
	}
	if !strings.Contains(databaseURL, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if !strings.Contains(databaseURL, "pool_max_conns") {
		config.MaxConns = int32(max(o.Connections, 1))
	}
	if config.ConnConfig.ConnectTimeout == 0 || config.ConnConfig.ConnectTimeout > connectTimeout {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.DialFunc = dial
	if o.Password != nil {
		config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) (err error) {
			if c.Password, err = o.Password(ctx, c.Host, c.Port, c.User); err != nil {
				return errNoPassword
			}
			return nil
		}
	}
	config.MinConns, config.MinIdleConns = 0, 0
	config.MaxConnIdleTime, config.HealthCheckPeriod, config.PingTimeout = idleTime, idleTime/2, pingTimeout
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Postgres{config: config, log: o.Log}, nil
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

// statement is one of this store's statements, each of which may be repeated.
type statement struct {
	sql  string
	args []any
	read func(pgx.Rows) error // reads all rows; nil: there are none
}

// do runs a statement within a time of its own and says how many rows it was about. Once more if the connection turns
// out to be dead, as a function may have been frozen since, or if the server ended it for the sake of another.
func (p *Postgres) do(ctx context.Context, a *away, limit time.Duration, s statement) (rows int, err error) {
	round, ok := a.enter(time.Now())
	if !ok {
		return 0, ErrAway
	}
	pool, err := p.open()
	if err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	hurried := hurries(limited)
	rows, err = run(limited, pool, s)
	if broke := dead(err); (broke || deadlocked(err)) && limited.Err() == nil {
		if broke {
			pool.Reset() // the others are as old
		}
		rows, err = run(limited, pool, s)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return rows, err // the caller left; that says nothing of the store
	}
	if hurried && errors.Is(reason(err), context.DeadlineExceeded) {
		return rows, err
	}
	if failed := isAway(err); a.leave(time.Now(), round, failed) {
		p.tell(ctx, a, err)
	}
	return rows, err
}

func hurries(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < fairTime
}

// boundsSQL makes the server itself give up in time, so that what nobody waits for any more isn't worked on and the
// connection stays. It counts until the end of the batch: behind a pooler a connection has other users too.
const boundsSQL = `select set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true), set_config('jit', 'off', true)`

// run sends the bounds and the statement at once, which makes them one transaction.
func run(ctx context.Context, pool *pgxpool.Pool, s statement) (int, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	var batch pgx.Batch
	batch.Queue(boundsSQL, serverTime(ctx))
	batch.Queue(s.sql, s.args...)
	results := conn.SendBatch(ctx, &batch)
	count, err := collect(results, s)
	if closed := results.Close(); err == nil {
		err = closed
	}
	return count, err
}

func collect(results pgx.BatchResults, s statement) (int, error) {
	if _, err := results.Exec(); err != nil {
		return 0, err
	}
	rows, err := results.Query()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if s.read != nil {
		if err := s.read(rows); err != nil {
			return 0, err
		}
	}
	rows.Close()
	return int(rows.CommandTag().RowsAffected()), rows.Err()
}

// serverTime is what remains until the deadline, in ms, less what the answer needs to arrive.
func serverTime(ctx context.Context) string {
	deadline, _ := ctx.Deadline()
	return strconv.FormatInt(max(time.Until(deadline).Milliseconds()*9/10, 1), 10)
}

// tell logs that the store went away or came back.
func (p *Postgres) tell(ctx context.Context, a *away, err error) {
	use := "answers when no model does"
	switch a {
	case &p.writes:
		use = "keeping answers"
	case &p.glances:
		use = "front"
	case &p.nears:
		use = "similar questions"
	}
	if !isAway(err) {
		p.log.InfoContext(ctx, "cache store is back", "for", use)
		return
	}
	p.log.WarnContext(ctx, "cache store is away", "for", use, "error", reason(err))
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

// describe says what failed without a word of the database's: its messages may repeat a value or the URL.
func describe(what string, err error) error {
	if err == nil || errors.Is(err, ErrAway) {
		return err
	}
	return fmt.Errorf("%s in postgres: %w", what, reason(err))
}
