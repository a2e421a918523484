-- Lookups go on while these are built; answers of these seconds may not be kept. On a table of millions build them by
-- hand before, concurrently and under these names: then nothing is left to do here.
select set_config('lock_timeout', '3s', true);

create index if not exists cache_entry_owner on cache_entry (tenant_key, user_key);

-- All that a similar question is chosen by stands together, a scope after the other: its rows lie all over the table.
-- Embeddings of up to some 1,200 dimensions fit.
create index if not exists cache_entry_near on cache_entry (scope, embedder)
	include (embedding, exact_key, expires_at) where embedding is not null;
