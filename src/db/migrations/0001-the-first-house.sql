-- Makes every table of the first release; locks nothing, for there is nothing yet.
-- Identifiers that sort by time are compared octet by octet (collation "C"), whatever the database's own collation is.

create table organisation (
  id text collate "C" primary key,
  name text not null,
  slug text not null,
  secret_fingerprint text not null,
  created_at timestamptz not null
);

create table tenants (
  id text collate "C" primary key,
  name text not null,
  status text not null check (status in ('active', 'suspended', 'archived')),
  metadata jsonb not null,
  is_default boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index one_default_tenant on tenants (is_default) where is_default;

-- A member with a tenant sees that tenant only; one without is of the organisation and may receive sandbox mail.
create table members (
  address text primary key,
  tenant_id text collate "C",
  role text not null check (role in ('owner', 'admin', 'viewer')),
  sign_in_hash bytea,
  sign_in_until timestamptz,
  created_at timestamptz not null
);

-- A revoked credential stays as a tombstone, so that its key is told from an unknown one.
create table credentials (
  id bigint generated always as identity primary key,
  tenant_id text collate "C",
  name text not null,
  type text not null check (type in ('api', 'smtp')),
  mode text not null check (mode in ('live', 'test')),
  hold boolean not null,
  key_hash bytea not null unique,
  key_prefix text not null,
  permissions text[],
  last_used_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  revoked_at timestamptz
);
create index credentials_of_tenant on credentials (tenant_id, id);

-- subject: 'organisation', 'tenant:<id>' or 'key:<id>'; no row means the settings' defaults.
create table limit_settings (
  subject text collate "C" primary key,
  rate_per_second integer,
  send_per_hour bigint,
  send_unlimited boolean not null
);

-- Slots taken in `hour`, and emails waiting for one, for 'organisation' and for each tenant with a ceiling of its own.
create table send_capacity (
  subject text collate "C" not null,
  test boolean not null,
  hour timestamptz not null,
  used bigint not null,
  waiting bigint not null,
  primary key (subject, test)
) with (fillfactor = 50);

create table sandbox_days (
  day date primary key,
  used integer not null
);

-- tenant_id '' is the organisation's own list, which applies to every tenant.
create table suppressions (
  tenant_id text collate "C" not null,
  address text not null,
  id bigint generated always as identity,
  reason text,
  source text not null check (source in ('manual', 'automatic')),
  created_at timestamptz not null,
  primary key (tenant_id, address)
);

create table domains (
  tenant_id text collate "C" not null,
  id bigint generated always as identity,
  uuid uuid not null,
  name text not null,
  trusted boolean not null,
  verified boolean not null,
  verified_at timestamptz,
  test_only boolean not null,
  selector text not null,
  rsa_private bytea not null,
  rsa_public text not null,
  ed25519_private bytea not null,
  ed25519_public text not null,
  spf_status text,
  dkim_status text,
  dkim_ed25519_status text,
  return_path_status text,
  checked_at timestamptz,
  created_at timestamptz not null,
  primary key (tenant_id, id)
);
create unique index domains_by_name on domains (tenant_id, name);
create index domains_by_id on domains (id);

-- One row for each envelope recipient of a submission. Partitioned by acceptance, which every id begins with.
create table emails (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  number bigint generated always as identity,
  content_id text collate "C" not null,
  recipient text not null,
  sender text not null,
  from_text text not null,
  subject text not null,
  tag text,
  metadata jsonb,
  message_id text not null,
  test boolean not null,
  credential_id bigint,
  status text not null,
  accepted_at timestamptz not null,
  primary key (tenant_id, id)
) partition by range (id);
create index emails_by_id on emails (id);

-- What the emails of one submission share, as zstd-compressed JSON; `id` is that of its first email. Dropped before the emails are.
create table contents (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  body bytea not null,
  primary key (tenant_id, id)
) partition by range (id);
alter table contents alter column body set storage external;

-- One try over SMTP for one email; lies in the partition of its email.
create table attempts (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  id bigint generated always as identity,
  number integer not null,
  status text not null,
  at timestamptz not null,
  duration_ms integer not null,
  details text not null,
  output text not null,
  code integer,
  enhanced text,
  secure boolean not null,
  classification text,
  remote_host text,
  outcome_unknown boolean not null,
  conversation text,
  primary key (tenant_id, email_id, id)
) partition by range (email_id);

-- The log of all that happened. `xact` is the writing transaction: a reader stops at the oldest one still open, so that it never
-- skips an event because a transaction with a smaller id committed later.
create table events (
  tenant_id text collate "C" not null,
  id bigint generated always as identity,
  xact xid8 not null default pg_current_xact_id(),
  at timestamptz not null,
  kind text not null,
  email_id text collate "C",
  data jsonb not null,
  primary key (tenant_id, id, at)
) partition by range (at);
create index events_in_order on events (xact, id);

-- What is still to be done: a row leaves when its email becomes final, so the table is as small as the backlog.
-- state: ready (may be sent), sending (claimed under `epoch`, perhaps sent), deferred (until due_at), waiting (for send capacity),
-- held (until released; hardfail at due_at).
create table spool (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  content_id text collate "C" not null,
  shard smallint not null,
  recipient text not null,
  destination text collate "C" not null,
  state text not null,
  epoch bigint not null default 0,
  failures integer not null default 0,
  manual boolean not null default false,
  test boolean not null,
  size_octets integer not null,
  due_at timestamptz,
  primary key (tenant_id, email_id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create index spool_ready on spool (shard, tenant_id, destination, content_id, email_id) where state = 'ready';
create index spool_due on spool (shard, due_at) where state in ('deferred', 'held');
create index spool_waiting on spool (test, email_id) where state = 'waiting';
create index spool_sending on spool (shard) where state = 'sending';

create table shard_leases (
  shard smallint primary key,
  owner text,
  epoch bigint not null
);
insert into shard_leases (shard, owner, epoch) select shard, null, 0 from generate_series(0, 63) as shard;

-- A living delivery process raises its beat; others watch it by their own monotonic clocks, so no wall clock decides a lease.
create table delivery_processes (
  id text primary key,
  beat bigint not null
);

-- One answered request of a credential, written in the transaction that accepted its emails.
create table idempotency_keys (
  credential_id bigint not null,
  key text collate "C" not null,
  fingerprint bytea not null,
  status smallint not null,
  body bytea not null,
  accepted_at timestamptz not null,
  primary key (credential_id, key)
);
create index idempotency_keys_by_age on idempotency_keys (accepted_at);
