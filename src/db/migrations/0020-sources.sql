-- Makes small tables and adds nullable columns to spool and attempts: short exclusive locks, no rewrite.

-- Addresses to send from. ehlo_name: null for POSTRIDER_HOSTNAME. warm_up_from: its warm-up began then; null: it needs none.
create table source_addresses (
  address text collate "C" primary key,
  ehlo_name text,
  pool text collate "C" not null,
  warm_up_from timestamptz,
  added_at timestamptz not null
);

-- Which pool mail goes from: of a tenant ('' for any), of a tag ('' for any).
create table pool_assignments (
  tenant_id text collate "C" not null,
  tag text collate "C" not null,
  pool text collate "C" not null,
  primary key (tenant_id, tag)
);

-- Messages of the running day of an address's warm-up (counted from 0), over all processes. granted: of the last request.
create table warm_up_days (
  source text collate "C" not null,
  provider text collate "C" not null,
  day integer not null,
  taken integer not null,
  granted integer not null,
  primary key (source, provider)
) with (fillfactor = 50);

-- Why a deferred row waits, when that is no failed attempt.
alter table spool add column waits_for text;

-- Our address it was sent from; null: the system's choice.
alter table attempts add column source text;
