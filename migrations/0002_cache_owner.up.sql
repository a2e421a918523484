-- Whose an entry is, and what is never to be given again.

-- Who waits for a lock makes all others wait behind him: rather give up, and try again.
select set_config('lock_timeout', '3s', true);

-- Null in rows of before: no purge knows whose they are, so each takes them along.
alter table cache_entry
	add column if not exists tenant_key bytea, -- SHA-256 of the tenant
	add column if not exists user_key   bytea; -- SHA-256 of tenant and user; null: the caller sent no user

create table if not exists cache_tombstone (
	tenant_key   bytea       not null,
	question_key bytea       not null, -- an exact or a canonical key
	expires_at   timestamptz not null,
	primary key (tenant_key, question_key)
);

-- Similarity reads pages that vacuum has seen from the index alone, so vacuum has to come by often.
alter table cache_entry set (
	autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
	autovacuum_analyze_scale_factor = 0.02
);
