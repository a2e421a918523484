package cache

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pgvector/pgvector-go"
	"github.com/stretchr/testify/require"

	"holdfast/migrations"
)

// database makes a database with the schema, and drops it after the test.
func database(t testing.TB) string {
	where := emptyDatabase(t)
	_, err := migrations.Apply(context.Background(), where, nil)
	require.NoError(t, err)
	return where
}

func emptyDatabase(t testing.TB) string {
	base := os.Getenv("HOLDFAST_TEST_DATABASE_URL")
	if base == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") == "1" {
			t.Fatal("HOLDFAST_TEST_DATABASE_URL is not set")
		}
		t.Skip("needs a Postgres with pgvector: set HOLDFAST_TEST_DATABASE_URL")
	}
	var suffix [6]byte
	_, _ = rand.Read(suffix[:])
	name := "cache_test_" + hex.EncodeToString(suffix[:])
	execute(t, base, "create database "+name)
	t.Cleanup(func() { execute(t, base, "drop database "+name+" with (force)") })
	u, err := url.Parse(base)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

func execute(t testing.TB, databaseURL, statement string) {
	conn, err := pgx.Connect(context.Background(), databaseURL)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), statement)
	require.NoError(t, err)
}

func openPostgres(t testing.TB, databaseURL string) *Postgres {
	p, err := NewPostgres(databaseURL, PostgresOptions{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func TestPostgresConforms(t *testing.T) {
	where := database(t)
	conformance(t, func(t *testing.T) Store {
		execute(t, where, "truncate cache_entry, cache_tombstone")
		return openPostgres(t, where)
	})
}

// The URL may choose another way to send statements, as some poolers want it.
func TestPostgresConformsInEachMode(t *testing.T) {
	where := database(t)
	for _, mode := range []string{"simple_protocol", "cache_describe", "cache_statement"} {
		t.Run(mode, func(t *testing.T) {
			conformance(t, func(t *testing.T) Store {
				execute(t, where, "truncate cache_entry, cache_tombstone")
				return openPostgres(t, where+"&default_query_exec_mode="+mode)
			})
		})
	}
}

func TestPostgresIsSharedByProcesses(t *testing.T) {
	where := database(t)
	a, b, e := openPostgres(t, where), openPostgres(t, where), entry("a", "what?", "what")
	put(t, a, e)
	got, ok := find(t, b, e)
	require.True(t, ok)
	require.Equal(t, e.Answer, got.Answer)
	e.Answer = "newer"
	put(t, b, e)
	got, _ = find(t, a, e)
	require.Equal(t, "newer", got.Answer, "another process replaces")
}

// A connection that the server closed while the function was frozen is replaced within the same call.
func TestPostgresReplacesADeadConnection(t *testing.T) {
	where := database(t)
	p, e := openPostgres(t, where), entry("a", "what?", "what")
	put(t, p, e)
	execute(t, where, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	_, ok := find(t, p, e)
	require.True(t, ok)
}

// Statements are planned for the scope at hand however often they ran, and prepared ones, which a pooler can't carry,
// are not used.
func TestPostgresPreparesNothing(t *testing.T) {
	p := openPostgres(t, database(t))
	for range 12 {
		_, err := p.Near(t.Context(), Near{Scope: hashOf("scope"), Embedder: "x", Vector: []float32{1}, Limit: 5})
		require.NoError(t, err)
	}
	pool, err := p.open()
	require.NoError(t, err)
	var prepared int
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from pg_prepared_statements").Scan(&prepared))
	require.Zero(t, prepared)
	require.LessOrEqual(t, pool.Stat().TotalConns(), int32(1))
}

// What each statement reads, in a table where scopes differ in size: none of them reads the table as a whole.
func TestPostgresPlans(t *testing.T) {
	where := database(t)
	execute(t, where, `
		insert into cache_entry (scope, exact_key, canonical_key, question, answer, embedder, embedding, tenant_key, user_key, created_at, expires_at)
		select sha256(least(i, 200)::text::bytea), sha256(i::text::bytea), sha256((-i)::text::bytea), 'q', repeat('a', 500), 'x', '[1,0]',
			sha256('t'), sha256((i % 1000)::text::bytea), now(), now() + i * interval '1 second'
		from generate_series(1, 20000) i`)
	execute(t, where, "vacuum analyze cache_entry")
	conn, err := pgx.Connect(t.Context(), where+"&default_query_exec_mode=exec")
	require.NoError(t, err)
	defer conn.Close(context.Background())
	h, big := hashOf("any"), sha256.Sum256([]byte("200")) // a scope that is new to the statistics, and one they know
	for name, c := range map[string]struct {
		sql     string
		args    []any
		indexes []string
	}{
		"find":     {findSQL, []any{h[:], h[:], h[:], h[:]}, []string{"cache_entry_pkey", "cache_entry_canonical"}},
		"find big": {findSQL, []any{big[:], h[:], h[:], h[:]}, []string{"cache_entry_pkey", "cache_entry_canonical"}},
		"near":     {nearSQLOf(2), []any{h[:], "x", pgvector.NewHalfVector([]float32{1, 0}), 5}, []string{"Index Only Scan using cache_entry_near", "cache_entry_pkey"}},
		"near big": {nearSQLOf(2), []any{big[:], "x", pgvector.NewHalfVector([]float32{1, 0}), 5}, []string{"Index Only Scan using cache_entry_near", "cache_entry_pkey"}},
		"put":      {putSQL, []any{h[:], h[:], h[:], "q", "a", nil, nil, h[:], h[:], 1, [][]byte{h[:]}}, []string{"cache_entry_pkey", "cache_entry_canonical"}},
		"put big":  {putSQL, []any{big[:], h[:], h[:], "q", "a", nil, nil, h[:], h[:], 1, [][]byte{h[:]}}, []string{"cache_entry_pkey", "cache_entry_canonical"}},
		"expire":   {expireSQL, []any{1000}, []string{"cache_entry_expires"}},
		"purge":    {purgeSQL, []any{h[:], h[:], nil, 1000}, []string{"cache_entry_owner"}},
	} {
		t.Run(name, func(t *testing.T) {
			var plans []string
			for range 10 { // a prepared statement would have turned generic by then
				rows, err := conn.Query(t.Context(), "explain (costs off) "+c.sql, c.args...)
				require.NoError(t, err)
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				require.NoError(t, err)
				plans = append(plans, strings.Join(lines, "\n"))
			}
			require.Equal(t, plans[0], plans[9])
			require.NotContains(t, plans[0], "Seq Scan on cache_entry")
			for _, index := range c.indexes {
				require.Contains(t, plans[0], index)
			}
		})
	}
}

// An away store costs one wait, then nothing for a while; nothing of the URL or of a question is told.
func TestPostgresAway(t *testing.T) {
	for name, c := range map[string]struct {
		url  func(*testing.T) string
		says string
	}{
		"refused":      {refusing, "connection refused"},
		"silent":       {silent, "deadline exceeded"},
		"not migrated": {func(t *testing.T) string { return emptyDatabase(t) }, "holdfast migrate does it (SQLSTATE 42P01)"},
		"no such role": {noSuchRole, "SQLSTATE 28"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			p, err := NewPostgres(c.url(t), PostgresOptions{Log: slog.New(slog.NewTextHandler(&logged, nil))})
			require.NoError(t, err)
			defer p.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			e := entry("a", "my question", "")
			_, _, err = p.Find(ctx, e.Key)
			require.ErrorContains(t, err, c.says)
			_, _, err = p.Find(t.Context(), e.Key)
			require.ErrorIs(t, err, ErrAway)
			require.Equal(t, 1, strings.Count(logged.String(), "cache store is away"))
			for _, secret := range []string{"s3cret", "my question"} {
				require.NotContains(t, logged.String()+err.Error(), secret)
			}
		})
	}
}

// A scope that has grown too large for similarity keeps its exact and canonical answers.
func TestPostgresSimilarityGoesAwayAlone(t *testing.T) {
	where := database(t)
	p, e := openPostgres(t, where), entry("a", "what?", "what")
	put(t, p, e)
	near := Near{Scope: e.Scope, Embedder: "x", Vector: []float32{1, 0}, Limit: 5}
	_, err := p.do(t.Context(), &p.nears, 2*fairTime, statement{sql: "select pg_sleep(30)"})
	require.Error(t, err)
	_, err = p.Near(t.Context(), near)
	require.ErrorIs(t, err, ErrAway)
	_, ok := find(t, p, e)
	require.True(t, ok)
}

// A connection that was dropped silently while a function was frozen, so that nothing ever comes back, is replaced
// within the call.
func TestPostgresReplacesASilentConnection(t *testing.T) {
	where := database(t)
	between := newTunnel(t, where, nil)
	p, e := openPostgres(t, between.url), entry("a", "what?", "what")
	put(t, p, e)
	between.silence()
	<-time.After(1100 * time.Millisecond) // younger ones are trusted
	start := time.Now()
	_, ok := find(t, p, e)
	require.True(t, ok)
	require.Less(t, time.Since(start), readTimeout)
}

// The server ends what takes longer than the caller waits, and the connection stays.
func TestPostgresServerGivesUpInTime(t *testing.T) {
	where := database(t)
	p, e := openPostgres(t, where), entry("a", "what?", "what")
	put(t, p, e)
	pool, err := p.open()
	require.NoError(t, err)
	before := pool.Stat().NewConnsCount()
	_, err = p.do(t.Context(), &away{}, 2*time.Second, statement{sql: "select pg_sleep(30)"})
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "57014", pg.Code)
	_, ok := find(t, p, e)
	require.True(t, ok)
	require.Equal(t, before, pool.Stat().NewConnsCount())
	var timeout string
	require.NoError(t, pool.QueryRow(t.Context(), "show statement_timeout").Scan(&timeout))
	require.Equal(t, "0", timeout, "the bound ends with its statement: a pooler gives the connection to others")
}

// The URL's sslmode counts: verify-full takes the right server alone.
func TestPostgresTLS(t *testing.T) {
	where := database(t)
	certificate, ca := selfSigned(t, "127.0.0.1")
	stranger, _ := selfSigned(t, "192.0.2.1")
	for _, c := range []struct {
		name, mode, fails string
		certificate       tls.Certificate
	}{
		{"the right one", "sslmode=verify-full&sslrootcert=" + ca, "", certificate},
		{"somebody else", "sslmode=verify-full&sslrootcert=" + ca, "no TLS as the URL demands", stranger},
		{"an unknown authority", "sslmode=verify-full&sslrootcert=system", "no TLS as the URL demands", certificate},
		{"anybody", "sslmode=require", "", stranger},
		{"a server without", "sslmode=require", "no TLS as the URL demands", tls.Certificate{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := &tls.Config{Certificates: []tls.Certificate{c.certificate}}
			if c.certificate.Certificate == nil {
				config = nil
			}
			between := newTunnel(t, where, config)
			p := openPostgres(t, strings.Replace(between.url, "sslmode=disable", c.mode, 1))
			_, _, err := p.Find(t.Context(), entry("a", "q", "").Key)
			if c.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.fails)
		})
	}
}

// A password is asked for at each connect, and what asking says is nobody else's.
func TestPostgresPasswordAtEachConnect(t *testing.T) {
	where := database(t)
	u, err := url.Parse(where)
	require.NoError(t, err)
	var asked []string
	var fails error
	p, err := NewPostgres(where, PostgresOptions{Password: func(_ context.Context, host string, port uint16, user string) (string, error) {
		asked = append(asked, fmt.Sprintf("%s@%s:%d", user, host, port))
		return "s3cret", fails
	}})
	require.NoError(t, err)
	defer p.Close()
	for range 2 {
		put(t, p, entry("a", fmt.Sprint(len(asked)), ""))
		pool, err := p.open()
		require.NoError(t, err)
		pool.Reset()
	}
	require.Equal(t, []string{u.User.Username() + "@" + u.Host, u.User.Username() + "@" + u.Host}, asked)
	fails = errors.New("no s3cret")
	_, _, err = p.Find(t.Context(), entry("a", "q", "").Key)
	require.ErrorContains(t, err, "no password for the database")
	require.NotContains(t, err.Error(), "s3cret")
	require.Len(t, asked, 3, "what fails isn't asked for again")
}

func refusing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "postgres://user:s3cret@" + l.Addr().String() + "/db?sslmode=disable"
}

// silent accepts and never answers.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return "postgres://user:s3cret@" + l.Addr().String() + "/db?sslmode=disable"
}

func noSuchRole(t *testing.T) string {
	u, err := url.Parse(emptyDatabase(t))
	require.NoError(t, err)
	u.User = url.UserPassword("nobody_here", "s3cret")
	return u.String()
}

func TestPostgresRefusesABadURLWithoutRepeatingIt(t *testing.T) {
	for _, bad := range []string{"postgres://user:s3cret@host:port/db", "postgres://user:s3cret@h/db?sslmode=s3cret", "host=h password='s3cret", "postgres://user:s3cret@h/db?sslmode=verify-full&sslrootcert=/no/s3cret.pem"} {
		_, err := NewPostgres(bad, PostgresOptions{Log: slog.New(slog.DiscardHandler)})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestAwayDoublesAndLetsOneTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a away
		for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			round, ok := a.enter(time.Now())
			require.True(t, ok)
			a.leave(time.Now(), round, true)
			a.leave(time.Now(), round, true) // another call of the same round
			time.Sleep(wait*time.Second - 1) //nolint:forbidigo // the bubble's time
			_, ok = a.enter(time.Now())
			require.False(t, ok)
			time.Sleep(time.Nanosecond) //nolint:forbidigo // the bubble's time
		}
		round, ok := a.enter(time.Now())
		require.True(t, ok)
		_, ok = a.enter(time.Now())
		require.False(t, ok, "one tries")
		require.True(t, a.leave(time.Now(), round, false))
		for range 3 {
			_, ok = a.enter(time.Now())
			require.True(t, ok)
		}
	})
}

func TestKnownIsBounded(t *testing.T) {
	var k known
	var at place
	for i := range maxKnown + 1 {
		at.key[0], at.key[1], at.key[2] = byte(i), byte(i>>8), byte(i>>16)
		k.add(at, time.Now(), time.Hour)
	}
	require.Len(t, k.until, 1)
	require.True(t, k.has(at, time.Now()))
	require.False(t, k.has(at, time.Now().Add(2*time.Hour)))
}

// A caller who leaves says nothing of the store.
func TestPostgresCanceledCallerDoesNotMarkAway(t *testing.T) {
	p := openPostgres(t, silent(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := entry("a", "q", "")
	_, _, err := p.Find(ctx, e.Key)
	require.ErrorIs(t, err, context.Canceled)
	_, ok := p.reads.enter(time.Now())
	require.True(t, ok)
}

// Nor does one in a great hurry: what he doesn't get in time the others do.
func TestPostgresHurriedCallerDoesNotMarkAway(t *testing.T) {
	for name, where := range map[string]string{"never answers": silent(t), "slow": database(t)} {
		t.Run(name, func(t *testing.T) {
			p := openPostgres(t, where)
			for _, a := range []*away{&p.reads, &p.glances, &p.nears, &p.writes} {
				for _, c := range []struct {
					has  time.Duration
					asks bool
				}{{fairTime / 5, true}, {3 * fairTime, false}} {
					ctx, cancel := context.WithTimeout(t.Context(), c.has)
					_, err := p.do(ctx, a, readTimeout, statement{sql: "select pg_sleep(30)"})
					cancel()
					require.Error(t, err)
					_, asks := a.enter(time.Now())
					require.Equal(t, c.asks, asks, c.has)
				}
			}
		})
	}
}

func TestCacheOverPostgres(t *testing.T) {
	c := New(Settings{}, openPostgres(t, database(t)), sharedBuiltin(), slog.New(slog.DiscardHandler))
	store(t, c, text("怎么在网上选车牌号？"))
	for question, want := range map[string]string{
		"怎么在网上选车牌号？": ruleExact, "如何在網上選車牌號": ruleCanonical, "网上怎么选车牌号": ruleSimilar, "网上怎么选手机号": "",
	} {
		require.Equal(t, want, rule(t, c, text(question)), question)
	}
	require.Empty(t, rule(t, c, Question{Tenant: "other", Text: "怎么在网上选车牌号？"}))
}
