-- Makes a table; locks credentials for a moment, because it refers to it.

-- The requests of a key that were let through within the last second, while several API processes count them together: how many (counts)
-- at which time (at_ms, Unix milliseconds, ascending), and how many of those asked for last (granted). Of no worth after a crash.
create unlogged table request_rates (
  credential_id bigint primary key references credentials (id) on delete cascade,
  at_ms bigint[] not null,
  counts integer[] not null,
  granted integer not null
);
