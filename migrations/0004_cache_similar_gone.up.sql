-- cache_entry_near serves what this one did, for older versions too.
select set_config('lock_timeout', '3s', true);

drop index if exists cache_entry_similar;
