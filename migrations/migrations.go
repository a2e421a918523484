// Package migrations holds the schema of the database as SQL files, and applies them.
//
// Its one idea: the same embedded files everywhere, forward only. Each file is one transaction and may be repeated,
// so that an interrupted one is simply run again; and none takes away what the version before it still reads, so
// that they may be applied while serving. A file that locks out readers does nothing that takes long, and none waits
// for a lock for more than some seconds.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

//go:embed *.sql
var files embed.FS

const (
	table          = "holdfast_migrations"
	connectTimeout = 10 * time.Second
	lockTimeout    = 60 * time.Second // while another process migrates
	lockPause      = time.Second      // between tries of a file that doesn't get its lock

	lockNotAvailable = "55P03"
)

// Password gives the password of a user at a server; asked at each connect.
type Password func(ctx context.Context, host string, port uint16, user string) (string, error)

// Apply brings the database up to the newest version and says, a line a step, what it did. It may be repeated and
// run by several processes at once: an advisory lock lets one go first. When ctx ends, its connection is closed.
// Errors never hold anything of the URL. Without a password function the URL's own counts.
func Apply(ctx context.Context, databaseURL string, password Password) (report []string, err error) {
	db, err := open(ctx, databaseURL, password)
	if err != nil {
		return nil, err
	}
	m, err := prepare(db)
	if err != nil {
		_ = db.Close()
		return nil, failure(ctx, "connect to the database", err)
	}
	defer m.Close()
	before, err := version(m)
	if err != nil {
		return nil, failure(ctx, "read the database's version", err)
	}
	if err := up(ctx, m); err != nil {
		return nil, failure(ctx, "migrate the database", err)
	}
	after, err := version(m)
	if err != nil {
		return nil, failure(ctx, "read the database's version", err)
	}
	return describe(before, after)
}

// open makes a handle whose connections die with ctx; nothing is dialled yet.
func open(ctx context.Context, databaseURL string, password Password) (*sql.DB, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if file := (&fs.PathError{}); errors.As(err, &file) {
		return nil, errors.New("parse database URL: a file that it names can't be read")
	}
	if err != nil {
		return nil, errors.New("parse database URL: not a Postgres URL")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	dial := config.DialFunc
	config.DialFunc = func(dialing context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(dialing, network, addr)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
	return stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(ctx context.Context, c *pgx.ConnConfig) (err error) {
		if password == nil {
			return nil
		}
		if c.Password, err = password(ctx, c.Host, c.Port, c.User); err != nil {
			return errNoPassword
		}
		return nil
	})), nil
}

func prepare(db *sql.DB) (*migrate.Migrate, error) {
	source, err := iofs.New(files, ".")
	if err != nil {
		return nil, err
	}
	target, err := pgxmigrate.WithInstance(db, &pgxmigrate.Config{MigrationsTable: table})
	if err != nil {
		return nil, err
	}
	m, err := migrate.NewWithInstance("files", source, "postgres", target)
	if err != nil {
		return nil, err
	}
	m.LockTimeout = lockTimeout
	return m, nil
}

// up applies what is missing. A file that doesn't get its lock in time, since it would make requests wait, is tried
// again until ctx ends.
func up(ctx context.Context, m *migrate.Migrate) error {
	for {
		err := upOnce(m)
		if pg := refusal(err); pg == nil || pg.Code != lockNotAvailable {
			return err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return err
		}
	}
}

// refusal is what the database itself said, nil where it isn't its word.
func refusal(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	var own database.Error
	var other *database.Error // the library has both, and neither unwraps
	switch {
	case errors.As(err, &pg):
	case errors.As(err, &own):
		errors.As(own.OrigErr, &pg)
	case errors.As(err, &other):
		errors.As(other.OrigErr, &pg)
	}
	return pg
}

// upOnce applies what is missing. A version that is marked dirty was interrupted: it is run again.
func upOnce(m *migrate.Migrate) error {
	err := m.Up()
	if dirty := (migrate.ErrDirty{}); errors.As(err, &dirty) {
		if err = m.Force(before(dirty.Version)); err == nil {
			err = m.Up()
		}
	}
	if errors.Is(err, migrate.ErrNoChange) {
		return nil
	}
	return err
}

// before is the version before one; versions count from 1 without a gap.
func before(version int) int {
	if version <= 1 {
		return database.NilVersion
	}
	return version - 1
}

func version(m *migrate.Migrate) (int, error) {
	v, dirty, err := m.Version()
	if errors.Is(err, migrate.ErrNilVersion) {
		return 0, nil
	}
	if dirty {
		return int(v) - 1, err
	}
	return int(v), err
}

// describe names the files between two versions.
func describe(from, to int) ([]string, error) {
	names, err := fs.Glob(files, "*.up.sql")
	if err != nil {
		return nil, err
	}
	var report []string
	for i, name := range names {
		if n := i + 1; n > from && n <= to {
			report = append(report, "applied "+strings.TrimSuffix(name, ".up.sql"))
		}
	}
	return append(report, fmt.Sprintf("at version %d", to)), nil
}

var errNoPassword = errors.New("no password for the database can be had")

// failure words an error without what may hold the URL. What the database itself says of our own SQL may be told.
func failure(ctx context.Context, doing string, err error) error {
	var op *net.OpError
	var dns *net.DNSError
	var connect *pgconn.ConnectError
	pg := refusal(err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	case pg != nil:
		return fmt.Errorf("%s: %s (SQLSTATE %s)", doing, pg.Message, pg.Code)
	case errors.Is(err, errNoPassword):
		return fmt.Errorf("%s: %w", doing, errNoPassword)
	case errors.As(err, &dns):
		return fmt.Errorf("%s: host not found", doing)
	case errors.As(err, &op) && op.Err != nil:
		return fmt.Errorf("%s: %s: %s", doing, op.Op, op.Err.Error())
	case errors.As(err, &connect) && connect.Config.TLSConfig != nil: // no other step of connecting is left
		return fmt.Errorf("%s: no TLS as the URL demands it: the server has none, or its certificate isn't the right one", doing)
	case errors.Is(err, migrate.ErrLockTimeout), errors.Is(err, database.ErrLocked):
		return fmt.Errorf("%s: another process is migrating", doing)
	}
	return fmt.Errorf("%s: failed", doing)
}
