-- Makes a table: no lock on anything else.

-- Failed attempts to sign in, for all processes together. name_hash: SHA-256 of what they count for, an address, a network or both. count:
-- how many since the first of them, which is at most a quarter of an hour ago while they count.
create table sign_in_failures (
  name_hash bytea primary key,
  count integer not null,
  since timestamptz not null
);
