package cache

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"
)

var _ Store = (*Postgres)(nil)

// A tombstone ranks before all.
const findSQL = `
select exact_key, question, answer, age from (
	(select 0 as rank, null::bytea as exact_key, '' as question, '' as answer, 0::float8 as age
		from cache_tombstone where tenant_key = $4 and question_key in ($2, $3) and expires_at > now() limit 1)
	union all
	(select 1, exact_key, question, answer, extract(epoch from now() - created_at)::float8
		from cache_entry where scope = $1 and exact_key = $2 and expires_at > now())
	union all
	(select 2, exact_key, question, answer, extract(epoch from now() - created_at)::float8
		from cache_entry where scope = $1 and canonical_key = $3 and expires_at > now()
		order by created_at desc limit 1)
) found order by rank limit 1`

// Find implements [Store].
func (p *Postgres) Find(ctx context.Context, k Key) (Entry, bool, error) {
	return p.find(ctx, &p.reads, k)
}

// Glance implements [Store].
func (p *Postgres) Glance(ctx context.Context, k Key) (Entry, bool, error) {
	return p.find(ctx, &p.glances, k)
}

func (p *Postgres) find(ctx context.Context, a *away, k Key) (Entry, bool, error) {
	var found []Entry
	_, err := p.do(ctx, a, readTimeout, statement{
		findSQL, []any{k.Scope[:], k.Exact[:], nullable(k.Canonical), k.Tenant[:]}, into(&found),
	})
	switch {
	case err != nil:
		return Entry{}, false, describe("find", err)
	case len(found) == 0:
		p.known.remove(place{k.Scope, k.Exact}) // another process may have purged it
		return Entry{}, false, nil
	case found[0].Exact == Hash{}:
		return Entry{}, false, ErrForgotten
	}
	return found[0], true, nil
}

// The nearest are chosen by what the index alone holds, or by an HNSW index of the scope where there is one: that one
// wants the number of dimensions said. Then their texts are fetched. What is forgotten may have been on its way into
// the table then.
const nearSQL = `
with near as materialized (
	select exact_key, embedding::halfvec(DIMS) <#> $3::halfvec(DIMS) as distance from cache_entry
	where scope = $1 and embedder = $2 and embedding is not null and expires_at > now()
	order by distance limit $4
)
select e.exact_key, e.question, e.answer, extract(epoch from now() - e.created_at)::float8
from near join cache_entry e on e.scope = $1 and e.exact_key = near.exact_key
where not exists (select from cache_tombstone
	where tenant_key = e.tenant_key and question_key in (e.exact_key, e.canonical_key) and expires_at > now())
order by near.distance`

func nearSQLOf(dims int) string { return strings.ReplaceAll(nearSQL, "DIMS", strconv.Itoa(dims)) }

// Near implements [Store].
func (p *Postgres) Near(ctx context.Context, near Near) (found []Entry, err error) {
	_, err = p.do(ctx, &p.nears, readTimeout, statement{
		nearSQLOf(len(near.Vector)), []any{near.Scope[:], near.Embedder, pgvector.NewHalfVector(near.Vector), near.Limit}, into(&found),
	})
	return found, describe("find similar", err)
}

// Whatever deletes locks its rows first, in the order of their keys, so that no two statements wait for each other;
// and the insert, which may wait too, comes last, as it counts what is gone.
const putSQL = `
with old as materialized (
	select exact_key from cache_entry where scope = $1 and exact_key = any(array(
		select unnest($11::bytea[]) union all select exact_key from cache_entry where scope = $1 and canonical_key = $3))
	order by exact_key for update
), gone as (
	delete from cache_entry e using old where e.scope = $1 and e.exact_key = old.exact_key and e.exact_key <> $2 returning 1
)
insert into cache_entry (scope, exact_key, canonical_key, question, answer, embedder, embedding,
	tenant_key, user_key, created_at, expires_at)
select $1, $2, $3, $4, $5, $6, $7::halfvec, $8, $9, now(), now() + $10 * interval '1 microsecond'
where (select count(*) from gone) >= 0
	and not exists (select from cache_tombstone where tenant_key = $8 and question_key in ($2, $3) and expires_at > now())
on conflict (scope, exact_key) do update set canonical_key = excluded.canonical_key, question = excluded.question,
	answer = excluded.answer, embedder = excluded.embedder, embedding = excluded.embedding,
	tenant_key = excluded.tenant_key, user_key = excluded.user_key,
	created_at = excluded.created_at, expires_at = excluded.expires_at`

// Put implements [Store].
func (p *Postgres) Put(ctx context.Context, e Entry) error {
	if p.Known(e.Key) {
		return nil
	}
	var embedder, embedding any
	if e.Vector != nil {
		embedder, embedding = e.Embedder, pgvector.NewHalfVector(e.Vector)
	}
	written, err := p.do(ctx, &p.writes, writeTimeout, statement{sql: putSQL, args: []any{
		e.Scope[:], e.Exact[:], nullable(e.Canonical), e.Question, e.Answer, embedder, embedding,
		e.Tenant[:], nullable(e.User), e.TTL.Microseconds(), keysOf(append([]Hash{e.Exact}, e.Replaces...)),
	}})
	if err != nil {
		return describe("put", err)
	}
	for _, exact := range e.Replaces {
		p.known.remove(place{e.Scope, exact})
	}
	if written > 0 { // nothing is where the question is forgotten
		p.known.add(place{e.Scope, e.Exact}, time.Now(), e.TTL)
	}
	return nil
}

// Known implements [Store].
func (p *Postgres) Known(k Key) bool { return p.known.has(place{k.Scope, k.Exact}, time.Now()) }

// Rows that another expiry deletes are left to it.
const expireSQL = `
with fallen as (
	delete from cache_tombstone where ctid = any(array(
		select ctid from cache_tombstone where expires_at <= now() for update skip locked))
)
delete from cache_entry where ctid = any(array(
	select ctid from cache_entry where expires_at <= now() order by expires_at limit $1 for update skip locked))`

// Expire implements [Store].
func (p *Postgres) Expire(ctx context.Context, limit int) (int, error) {
	count, err := p.do(ctx, &away{}, upkeepTimeout, statement{sql: expireSQL, args: []any{limit}})
	return count, describe("expire", err)
}

// Nobody knows whose the rows without a tenant are, from before there was that column.
const purgeSQL = `
delete from cache_entry where ctid = any(array(select ctid from cache_entry where ctid = any(array(
	select ctid from cache_entry
	where (tenant_key = $1 or tenant_key is null) and ($2::bytea is null or user_key = $2 or tenant_key is null)
		and ($3::bytea[] is null or exact_key = any($3) or canonical_key = any($3))
	limit $4
)) order by scope, exact_key for update))`

// Purge implements [Store].
func (p *Postgres) Purge(ctx context.Context, s Selection, limit int) (int, error) {
	count, err := p.do(ctx, &away{}, upkeepTimeout, statement{
		sql: purgeSQL, args: []any{s.Tenant[:], nullable(s.User), keysOf(s.Questions), limit},
	})
	p.known.clear()
	return count, describe("purge", err)
}

const forgetSQL = `
insert into cache_tombstone (tenant_key, question_key, expires_at)
select $1, key, now() + $3 * interval '1 microsecond' from (
	select unnest($2::bytea[]) as key
	union
	select canonical_key from cache_entry
		where tenant_key = $1 and exact_key = any($2) and canonical_key is not null
) keys
order by key
on conflict (tenant_key, question_key) do update set expires_at = excluded.expires_at`

// Forget implements [Store].
func (p *Postgres) Forget(ctx context.Context, tenant Hash, questions []Hash, ttl time.Duration) error {
	_, err := p.do(ctx, &away{}, upkeepTimeout, statement{
		sql: forgetSQL, args: []any{tenant[:], keysOf(questions), ttl.Microseconds()},
	})
	return describe("forget", err)
}

// into reads rows of exact key, question, answer and age.
func into(found *[]Entry) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*found, err = pgx.CollectRows(rows, scanEntry)
		return err
	}
}

func scanEntry(row pgx.CollectableRow) (Entry, error) {
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

// nullable is a hash as the database has it; the zero one is null.
func nullable(h Hash) []byte {
	if h == (Hash{}) {
		return nil
	}
	return h[:]
}

func keysOf(hashes []Hash) [][]byte {
	if hashes == nil {
		return nil
	}
	keys := make([][]byte, len(hashes))
	for i := range hashes {
		keys[i] = hashes[i][:]
	}
	return keys
}
