-- Answers that may be given again. Every file here may be repeated.
do $$
begin
	create extension if not exists vector;
exception when insufficient_privilege then
	raise exception 'this role may not create the extension vector: have an administrator run "create extension vector"';
end
$$;

do $$
begin
	if to_regtype('halfvec') is null then
		raise exception 'pgvector 0.7 or later is needed: run "alter extension vector update"';
	end if;
end
$$;

create table if not exists cache_entry (
	scope         bytea       not null, -- SHA-256 of all that must match exactly
	exact_key     bytea       not null, -- SHA-256 of the question as it was written
	canonical_key bytea,                -- SHA-256 of its canonical form; null: found by exact_key only
	question      text        not null, -- empty where similarity doesn't need it
	answer        text        not null,
	embedder      text,                 -- what made embedding
	embedding     halfvec,              -- of length 1; its dimensions are the embedder's
	created_at    timestamptz not null,
	expires_at    timestamptz not null,
	primary key (scope, exact_key)
);

create index if not exists cache_entry_canonical on cache_entry (scope, canonical_key) where canonical_key is not null;
create index if not exists cache_entry_similar on cache_entry (scope, embedder) where embedding is not null;
create index if not exists cache_entry_expires on cache_entry (expires_at);
