package migrations_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/migrations"
)

func base(t *testing.T) string {
	where := os.Getenv("HOLDFAST_TEST_DATABASE_URL")
	if where == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") == "1" {
			t.Fatal("HOLDFAST_TEST_DATABASE_URL is not set")
		}
		t.Skip("needs a Postgres with pgvector: set HOLDFAST_TEST_DATABASE_URL")
	}
	return where
}

// database makes an empty database and drops it after the test.
func database(t *testing.T) string {
	where, name := base(t), unique("migrations_test_")
	execute(t, where, "create database "+name)
	t.Cleanup(func() { execute(t, where, "drop database "+name+" with (force)") })
	return change(t, where, func(u *url.URL) { u.Path = "/" + name })
}

func unique(prefix string) string {
	var suffix [6]byte
	_, _ = rand.Read(suffix[:])
	return prefix + hex.EncodeToString(suffix[:])
}

func change(t *testing.T, where string, edit func(*url.URL)) string {
	u, err := url.Parse(where)
	require.NoError(t, err)
	edit(u)
	return u.String()
}

func execute(t *testing.T, where, statement string) {
	conn, err := pgx.Connect(context.Background(), where)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), statement)
	require.NoError(t, err)
}

func count(t *testing.T, where, query string) (n int) {
	conn, err := pgx.Connect(context.Background(), where)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	require.NoError(t, conn.QueryRow(context.Background(), query).Scan(&n))
	return n
}

func columns(t *testing.T, where string) int {
	return count(t, where, "select count(*) from information_schema.columns where table_name = 'cache_entry'")
}

func TestApplyMayBeRepeated(t *testing.T) {
	where := database(t)
	report, err := migrations.Apply(t.Context(), where, nil)
	require.NoError(t, err)
	require.Equal(t, "applied 0001_cache_entry", report[0])
	again, err := migrations.Apply(t.Context(), where, nil)
	require.NoError(t, err)
	require.Equal(t, report[len(report)-1:], again, "nothing was left to do")
	require.Equal(t, 11, columns(t, where))
}

func TestApplyByManyAtOnce(t *testing.T) {
	where := database(t)
	errs := make([]error, 5)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = migrations.Apply(context.Background(), where, nil) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 11, columns(t, where))
}

// A process that died in the middle left its version marked dirty; so did one that died just before clearing it.
func TestApplyAfterAnInterruption(t *testing.T) {
	for i, undo := range []string{
		"drop table cache_entry, cache_tombstone",
		"drop table cache_tombstone; alter table cache_entry drop column tenant_key, drop column user_key",
		"drop index cache_entry_near; drop index cache_entry_owner",
		"create index cache_entry_similar on cache_entry (scope, embedder)",
	} {
		for name, left := range map[string]string{"nothing was done": undo, "everything was done": "select 1"} {
			t.Run(fmt.Sprint("version ", i+1, " ", name), func(t *testing.T) {
				where := database(t)
				_, err := migrations.Apply(t.Context(), where, nil)
				require.NoError(t, err)
				execute(t, where, left)
				execute(t, where, fmt.Sprintf("update holdfast_migrations set version = %d, dirty = true", i+1))
				_, err = migrations.Apply(t.Context(), where, nil)
				require.NoError(t, err)
				require.Equal(t, 11, columns(t, where))
				require.Equal(t, []string{"cache_entry_canonical", "cache_entry_expires", "cache_entry_near", "cache_entry_owner", "cache_entry_pkey"}, indexes(t, where))
			})
		}
	}
}

func indexes(t *testing.T, where string) (names []string) {
	conn, err := pgx.Connect(context.Background(), where)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	require.NoError(t, conn.QueryRow(context.Background(),
		"select array_agg(indexname::text order by indexname) from pg_indexes where tablename = 'cache_entry'").Scan(&names))
	return names
}

// Somebody who holds the table for long, such as a dump, isn't waited for in front of all requests; once he is done,
// the migration goes on.
func TestApplyWaitsWithoutMakingRequestsWait(t *testing.T) {
	where := database(t)
	_, err := migrations.Apply(t.Context(), where, nil)
	require.NoError(t, err)
	execute(t, where, "alter table cache_entry drop column user_key; update holdfast_migrations set version = 1")
	holder, err := pgx.Connect(t.Context(), where)
	require.NoError(t, err)
	defer holder.Close(context.Background())
	_, err = holder.Exec(t.Context(), "begin; select from cache_entry")
	require.NoError(t, err)

	done := make(chan error, 1)
	go func() {
		_, err := migrations.Apply(context.Background(), where, nil)
		done <- err
	}()
	waiting := func() bool { return count(t, where, "select count(*) from pg_locks where not granted") > 0 }
	require.Eventually(t, waiting, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return !waiting() }, 10*time.Second, 10*time.Millisecond, "it gives up, for a while")
	execute(t, where, "set statement_timeout = '500ms'; select from cache_entry")
	_, err = holder.Exec(t.Context(), "commit")
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, 11, columns(t, where))
}

// A role that may not create extensions can migrate where an administrator has created it, and is told where not.
func TestApplyWithoutTheRightToCreateTheExtension(t *testing.T) {
	where, role := database(t), unique("role_")
	execute(t, where, "create role "+role+" login password 's3cret'; grant all on schema public to "+role)
	t.Cleanup(func() { execute(t, base(t), "drop role "+role) })
	t.Cleanup(func() { execute(t, where, "drop owned by "+role) })
	limited := change(t, where, func(u *url.URL) { u.User = url.UserPassword(role, "s3cret") })
	_, err := migrations.Apply(t.Context(), limited, nil)
	require.ErrorContains(t, err, "may not create the extension")
	require.NotContains(t, err.Error(), "s3cret")
	execute(t, where, "create extension vector")
	_, err = migrations.Apply(t.Context(), limited, nil)
	require.NoError(t, err)
	require.Equal(t, 11, columns(t, where))
}

func TestApplyTellsNothingOfTheURL(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	require.NoError(t, err)
	defer listener.Close()
	for name, where := range map[string]string{
		"no URL":    "postgres://user:s3cret@host:port/db",
		"bad mode":  "postgres://user:s3cret@host/db?sslmode=s3cret",
		"refused":   "postgres://user:s3cret@127.0.0.1:1/db?sslmode=disable",
		"no answer": "postgres://user:s3cret@" + listener.Addr().String() + "/db?sslmode=disable",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := migrations.Apply(ctx, where, nil)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

// Whatever keeps a migration from beginning is told, in words that help.
func TestApplyTellsWhyItCannot(t *testing.T) {
	where, role := database(t), unique("role_")
	execute(t, where, "create role "+role+" login password 's3cret'")
	t.Cleanup(func() { execute(t, base(t), "drop role "+role) })
	with := func(query string) string { return change(t, where, func(u *url.URL) { u.RawQuery = query }) }
	for name, c := range map[string]struct {
		url, says string
		password  migrations.Password
	}{
		"may not create tables": {change(t, where, func(u *url.URL) { u.User = url.UserPassword(role, "s3cret") }), "permission denied for schema public (SQLSTATE 42501)", nil},
		"no such database":      {change(t, where, func(u *url.URL) { u.Path = "/nowhere" }), "SQLSTATE 3D000", nil},
		"no TLS there":          {with("sslmode=require"), "no TLS as the URL demands", nil},
		"no such certificate":   {with("sslmode=verify-full&sslrootcert=/no/s3cret.pem"), "a file that it names can't be read", nil},
		"no such host":          {change(t, where, func(u *url.URL) { u.Host = "nowhere.invalid:1" }), "host not found", nil},
		"no password": {where, "no password for the database", func(context.Context, string, uint16, string) (string, error) {
			return "", errors.New("s3cret")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrations.Apply(t.Context(), c.url, c.password)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

// Files are numbered without a gap: a version's predecessor is the number before.
func TestFilesAreForwardOnlyAndWithoutGaps(t *testing.T) {
	names, err := filepath.Glob("*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for i, name := range names {
		require.True(t, fs.ValidPath(name))
		require.Regexp(t, `^\d{4}_[a-z_]+\.up\.sql$`, name)
		require.Equal(t, i+1, number(t, name))
	}
}

func number(t *testing.T, name string) int {
	n := 0
	for _, c := range name[:4] {
		n = n*10 + int(c-'0')
	}
	return n
}

// Templates and net/rpc keep the linker from dropping unused methods: no bootstrap may have them.
func TestDependenciesAreLean(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-tags", "lambda.norpc", ".", "../internal/cache").Output()
	require.NoError(t, err)
	for _, heavy := range []string{"text/template", "html/template", "net/rpc", "testing"} {
		require.NotContains(t, strings.Split(string(out), "\n"), heavy)
	}
}
