package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"
	pgxvec "github.com/pgvector/pgvector-go/pgx"
	"github.com/stretchr/testify/require"
)

// BenchmarkScale fills a database of its own with a million entries (HOLDFAST_BENCH_ENTRIES says another number) over
// 200 skewed scopes, and prints what lookups, writes and expiry cost there. make bench-cache runs it; the table stands
// in docs/cache-scale.md.
func BenchmarkScale(b *testing.B) {
	where := database(b)
	f := newFull(b, where)
	f.load()
	f.printf("\n| what | rows | 1 connection: p50, p99 | 8 connections: p50, p99, lookups/s |\n|---|---|---|---|\n")
	f.lookups()
	f.line(tooLarge, f.largest(), f.near(f.largest()))
	f.checkNear("exactly the nearest, in nine scopes of all sizes", 0, 10, f.sample()[1:]...)
	f.writes()
	f.expiry()
	f.hnsw()
	f.line("similar, the largest scope, with HNSW of its own", f.largest(), f.near(f.largest()))
	f.checkNear("by HNSW the nearest, in the largest scope", 0.1, 50, f.largest())
	f.checkNear("and still exactly the nearest, in the nine", 0, 10, f.sample()[1:]...)
}

const (
	scaleScopes = 200
	scaleSkew   = 1.2 // the n-th scope has n^-1.2 of the largest one's entries
	scaleDims   = 128
	addedFrom   = 100_000_000     // numbers of entries that are put while measuring
	measuring   = 4 * time.Second // at most, of each figure

	tooLarge = "similar, the largest scope" // may take longer than a lookup may
)

// full is a database full of entries that each can be made again from their number.
type full struct {
	b       *testing.B
	where   string
	out     io.Writer
	live    int       // entries; more lie there past their time
	bounds  []float64 // of the scopes, cumulative
	members [scaleScopes][]int
	centres [][]float32
	added   atomic.Int64
}

func newFull(b *testing.B, where string) *full {
	f := &full{b: b, where: where, out: os.Stdout, live: 1_000_000}
	if n := os.Getenv("HOLDFAST_BENCH_ENTRIES"); n != "" {
		var err error
		f.live, err = strconv.Atoi(n)
		require.NoError(b, err)
	}
	sum := 0.0
	for i := range scaleScopes {
		sum += math.Pow(float64(i+1), -scaleSkew)
		f.bounds = append(f.bounds, sum)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		f.centres = append(f.centres, randomVector(rng, nil))
	}
	return f
}

func (f *full) printf(format string, args ...any) { fmt.Fprintf(f.out, format, args...) }

// randomVector has length 1, in the neighbourhood of a centre if there is one.
func randomVector(rng *rand.Rand, centre []float32) []float32 {
	v, square := make([]float32, scaleDims), 0.0
	for i := range v {
		x := rng.NormFloat64()
		if centre != nil {
			x = float64(centre[i]) + 0.06*x
		}
		v[i], square = float32(x), square+x*x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(square))
	}
	return v
}

// scopeOf and vector are an entry's own, by its number.
func (f *full) scopeOf(i int) int {
	x := rand.New(rand.NewPCG(2, uint64(i))).Float64() * f.bounds[scaleScopes-1]
	at, _ := slices.BinarySearch(f.bounds, x)
	return at
}

func (f *full) vector(i int) []float32 {
	rng := rand.New(rand.NewPCG(3, uint64(i)))
	return randomVector(rng, f.centres[rng.IntN(len(f.centres))])
}

func scaleKey(scope, i int) Key {
	return Key{
		Tenant: tenantKey(fmt.Sprint(scope % 20)), Scope: hashOf("scope", fmt.Sprint(scope)),
		Exact: hashOf("exact", fmt.Sprint(i)), Canonical: hashOf("canonical", fmt.Sprint(i)),
	}
}

// text is as long as answers are, and doesn't compress.
func text700(i int) string {
	rng, out := rand.New(rand.NewPCG(4, uint64(i))), make([]byte, 700)
	for j := range out {
		out[j] = 'a' + byte(rng.IntN(26))
	}
	return string(out)
}

// load copies the entries in, and beside them what has expired within the last day of seven.
func (f *full) load() {
	conn := f.connect()
	defer conn.Close(context.Background())
	require.NoError(f.b, pgxvec.RegisterTypes(context.Background(), conn))
	start, i, total := time.Now(), 0, f.live+f.live/7
	columns := []string{
		"scope", "exact_key", "canonical_key", "question", "answer", "embedder", "embedding", "tenant_key", "user_key", "created_at", "expires_at",
	}
	_, err := conn.CopyFrom(context.Background(), pgx.Identifier{"cache_entry"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if i == total {
			return nil, nil
		}
		scope, expires := f.scopeOf(i), start.Add(time.Hour+time.Duration(i)%(6*24)*time.Hour)
		if i >= f.live {
			expires = start.Add(-time.Duration(i) % (24 * 60) * time.Minute)
		} else {
			f.members[scope] = append(f.members[scope], i)
		}
		k, user := scaleKey(scope, i), userKey("t", fmt.Sprint(i%1000))
		row := []any{
			k.Scope[:], k.Exact[:], k.Canonical[:], fmt.Sprintf("怎么在网上选第%d号车牌号？", i), text700(i), "x",
			pgvector.NewHalfVector(f.vector(i)), k.Tenant[:], user[:], start, expires,
		}
		i++
		return row, nil
	}))
	require.NoError(f.b, err)
	took := time.Since(start)
	f.exec("vacuum analyze cache_entry")
	f.printf("%d entries in %d scopes of %d to %d, and %d past their time: copied in %.0f s\n",
		f.live, scaleScopes, len(f.members[scaleScopes-1]), len(f.members[0]), total-f.live, took.Seconds())
	f.sizes()
}

func (f *full) connect() *pgx.Conn {
	conn, err := pgx.Connect(context.Background(), f.where)
	require.NoError(f.b, err)
	return conn
}

func (f *full) exec(statements ...string) {
	conn := f.connect()
	defer conn.Close(context.Background())
	for _, s := range statements {
		_, err := conn.Exec(context.Background(), s)
		require.NoError(f.b, err)
	}
}

func (f *full) sizes() {
	conn := f.connect()
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), `
		select 'table', pg_table_size('cache_entry') union all
		select indexrelname::text, pg_relation_size(indexrelid) from pg_stat_user_indexes where relname = 'cache_entry'`)
	require.NoError(f.b, err)
	var name string
	var size int64
	var parts []string
	_, err = pgx.ForEachRow(rows, []any{&name, &size}, func() error {
		parts = append(parts, fmt.Sprintf("%s %d MB", name, size>>20))
		return nil
	})
	require.NoError(f.b, err)
	f.printf("%s\n", strings.Join(parts, ", "))
}

func (f *full) largest() int { return 0 }

// sample are scopes of all sizes, the largest first.
func (f *full) sample() []int { return []int{0, 1, 3, 9, 20, 50, 100, 150, 198, 199} }

func (f *full) open(connections int) *Postgres {
	p, err := NewPostgres(f.where, PostgresOptions{Connections: connections, Log: slog.New(slog.DiscardHandler)})
	require.NoError(f.b, err)
	return p
}

// lookup does one lookup with a random number generator of its own.
type lookup func(p *Postgres, rng *rand.Rand) error

// find looks for an entry of any scope, large ones more often, by a key of its own.
func (f *full) find(byCanonical bool) lookup {
	return func(p *Postgres, rng *rand.Rand) error {
		i := rng.IntN(f.live)
		k := scaleKey(f.scopeOf(i), i)
		if byCanonical {
			k.Exact = Hash{1}
		}
		_, found, err := p.Find(context.Background(), k)
		if err == nil && !found {
			err = fmt.Errorf("entry %d isn't there", i)
		}
		return err
	}
}

func (f *full) near(scope int) lookup {
	return func(p *Postgres, rng *rand.Rand) error {
		_, err := f.nearest(p, scope, f.vector(rng.IntN(f.live)))
		return err
	}
}

func (f *full) nearest(p *Postgres, scope int, v []float32) ([]Entry, error) {
	found, err := p.Near(context.Background(), Near{Scope: scaleKey(scope, 0).Scope, Embedder: "x", Vector: v, Limit: candidates})
	if err == nil && len(found) != candidates {
		err = fmt.Errorf("%d of %d in scope %d", len(found), candidates, scope)
	}
	return found, err
}

func (f *full) lookups() {
	f.line("exact", -1, f.find(false))
	f.line("canonical", -1, f.find(true))
	for _, scope := range []int{199, 50, 20, 9, 3} {
		f.line("similar", scope, f.near(scope))
	}
}

// line prints what a lookup costs.
func (f *full) line(what string, scope int, do lookup) {
	mayGiveUp := what == tooLarge
	rows := f.live
	if scope >= 0 {
		rows = len(f.members[scope])
	}
	one, eight := f.measure(1, do), f.measure(8, do)
	if !mayGiveUp {
		require.NoError(f.b, errors.Join(one.err, eight.err))
	}
	f.printf("| %s | %d | %s, %s | %s, %s, %.0f |\n", what, rows, one.at(0.5), one.at(0.99), eight.at(0.5), eight.at(0.99), eight.rate)
}

// figures are what was measured.
type figures struct {
	times []time.Duration // sorted
	rate  float64         // a second
	err   error           // that ended the measuring
}

func (m figures) at(part float64) string {
	if errors.Is(m.err, context.DeadlineExceeded) || errors.Is(m.err, ErrAway) {
		return "gives up"
	}
	if m.err != nil || len(m.times) == 0 {
		return fmt.Sprint(m.err)
	}
	t := m.times[int(float64(len(m.times)-1)*part)]
	return fmt.Sprintf("%.1f ms", float64(t.Microseconds())/1000)
}

// measure runs lookups on so many connections at once.
func (f *full) measure(connections int, do lookup) figures {
	p := f.open(connections)
	defer p.Close()
	var all figures
	var mu sync.Mutex
	var workers sync.WaitGroup
	start := time.Now()
	for w := range connections {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(w)))
			var times []time.Duration
			for n := 0; time.Since(start) < measuring; n++ {
				began := time.Now()
				if err := do(p, rng); err != nil {
					mu.Lock()
					defer mu.Unlock()
					all.err = err
					return
				}
				if n > 0 { // the first one connects
					times = append(times, time.Since(began))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.times = append(all.times, times...)
		})
	}
	workers.Wait()
	slices.Sort(all.times)
	all.rate = float64(len(all.times)) / time.Since(start).Seconds()
	return all
}

// checkNear compares what Near finds with a search through all vectors of the scope. mayMiss is the part of the
// nearest that may be others, where an index is approximate; none of the answers may be short.
func (f *full) checkNear(says string, mayMiss float64, queries int, scopes ...int) {
	p := f.open(1)
	defer p.Close()
	rng := rand.New(rand.NewPCG(6, 6))
	missed, asked := 0, 0
	for _, scope := range scopes {
		for range queries {
			v := f.vector(rng.IntN(f.live))
			found, err := f.nearest(p, scope, v)
			require.NoError(f.b, err)
			for rank, want := range f.search(scope, v) {
				asked++
				at := f.members[scope][slices.IndexFunc(f.members[scope], func(i int) bool { return scaleKey(scope, i).Exact == found[rank].Exact })]
				if math.Abs(cosine(f.vector(at), v)-want) > 0.001 { // what is stored is rounded
					missed++
				}
			}
		}
	}
	require.LessOrEqual(f.b, float64(missed)/float64(asked), mayMiss)
	f.printf("| %s | | %d queries, %d of %d answers are others | |\n", says, queries*len(scopes), missed, asked)
}

// search gives the similarities of the nearest of a scope.
func (f *full) search(scope int, v []float32) []float64 {
	var all []float64
	for _, i := range f.members[scope] {
		all = append(all, cosine(f.vector(i), v))
	}
	slices.SortFunc(all, func(a, b float64) int { return cmp.Compare(b, a) })
	return all[:candidates]
}

// writes measures how fast entries are put, one a statement.
func (f *full) writes() {
	put := func(p *Postgres, _ *rand.Rand) error {
		i := addedFrom + int(f.added.Add(1))
		return p.Put(context.Background(), Entry{
			Key: scaleKey(f.scopeOf(i), i), User: userKey("t", "u"), Question: "怎么在网上选车牌号？", Answer: text700(i),
			Embedder: "x", Vector: f.vector(i), TTL: time.Hour,
		})
	}
	one, eight := f.measure(1, put), f.measure(8, put)
	require.NoError(f.b, errors.Join(one.err, eight.err))
	for n := range int(f.added.Load()) {
		i := addedFrom + n + 1
		f.members[f.scopeOf(i)] = append(f.members[f.scopeOf(i)], i)
	}
	f.printf("| write | %d | %s, %s, %.0f writes/s | %s, %s, %.0f |\n", f.live, one.at(0.5), one.at(0.99), one.rate, eight.at(0.5), eight.at(0.99), eight.rate)
}

// expiry deletes a day's rows while lookups run.
func (f *full) expiry() {
	before := f.measure(4, f.find(true))
	p := f.open(1)
	defer p.Close()
	c := New(Settings{}, p, nil, nil)
	start, took, deleted, done := time.Now(), time.Duration(0), 0, make(chan error, 1)
	go func() {
		var err error
		deleted, err = c.Expire(context.Background())
		took = time.Since(start)
		done <- err
	}()
	var during figures
	for running := true; running; {
		during = f.merge(during, f.measure(4, f.find(true)))
		select {
		case err := <-done:
			require.NoError(f.b, err)
			running = false
		default:
		}
	}
	require.Equal(f.b, f.live/7, deleted)
	start = time.Now()
	f.exec("vacuum cache_entry")
	f.printf("| canonical before and during the expiry of a day's rows, 4 connections | %d | %s, %s | %s, %s |\n",
		deleted, before.at(0.5), before.at(0.99), during.at(0.5), during.at(0.99))
	f.printf("| that expiry, in batches of %d | %d | %.1f s | vacuum after it %.0f s |\n", batch, deleted, took.Seconds(), time.Since(start).Seconds())
}

func (f *full) merge(a, b figures) figures {
	a.times = append(a.times, b.times...)
	slices.Sort(a.times)
	return a
}

// hnsw is the operator's step for a scope that has grown large.
func (f *full) hnsw() {
	k := scaleKey(f.largest(), 0)
	start := time.Now()
	f.exec("set maintenance_work_mem = '512MB'", fmt.Sprintf(
		`create index concurrently cache_entry_hnsw on cache_entry using hnsw ((embedding::halfvec(%d)) halfvec_ip_ops)
		where scope = '\x%x' and embedder = 'x'`, scaleDims, k.Scope[:]))
	took := time.Since(start)
	for _, setting := range []string{"hnsw.iterative_scan = strict_order", "hnsw.ef_search = 100"} {
		f.exec("do $$ begin execute format('alter database %I set " + setting + "', current_database()); end $$")
	}
	f.printf("| building HNSW for the largest scope | %d | %.0f s | |\n", len(f.members[f.largest()]), took.Seconds())
}
