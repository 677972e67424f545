-- Makes every table; locks nothing, because the database is empty.
-- Identifiers that sort by time are compared octet by octet (collation "C"), whatever the database's own collation is.
-- Partitioned tables have one partition for each UTC day; the program makes and drops them.

-- Module: tenants

-- The one organisation of this installation.
create table organisation (
  id text collate "C" primary key,
  name text not null,
  slug text not null,
  secret_fingerprint text not null,
  created_at timestamptz not null
);

-- Tenants of the organisation.
create table tenants (
  id text collate "C" primary key,
  name text not null,
  status text not null check (status in ('active', 'suspended', 'archived')),
  metadata jsonb not null,
  is_default boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  pause_reason text, -- for people; null: not paused. The mail of a paused tenant is accepted and held.
  resumed_at timestamptz -- earlier events no longer count towards an automatic pause
);
create unique index one_default_tenant on tenants (is_default) where is_default;
create index tenants_by_age on tenants (created_at, id);
create index tenants_by_name on tenants (name collate "C", id);

-- Module: members

-- People who sign in to the dashboard; one address may be a member of several tenants, each with a password of its own.
create table members (
  address text not null,
  tenant_id text collate "C", -- null: the organisation; such a member sees all tenants and may receive sandbox mail
  role text not null check (role in ('owner', 'admin', 'viewer')),
  sign_in_token_hash bytea,
  sign_in_expires_at timestamptz,
  created_at timestamptz not null,
  id bigint generated always as identity primary key,
  password text,
  totp_secret bytea, -- sealed; RFC 6238
  totp_confirmed_at timestamptz, -- null until the first code was given; two-factor authentication is required from then on
  totp_last_step bigint, -- the step of the last accepted code; no step is accepted twice
  unique nulls not distinct (address, tenant_id)
);

-- One-time codes that replace a lost authenticator; a code is deleted when it is used.
create table recovery_codes (
  member_id bigint not null,
  code_hash bytea not null, -- SHA-256
  primary key (member_id, code_hash)
);

-- Dashboard sessions.
create table sessions (
  token_hash bytea primary key, -- of the cookie's value
  member_id bigint not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
);
create index sessions_of_member on sessions (member_id);

-- Failed sign-ins, counted by all processes together.
create table sign_in_failures (
  name_hash bytea primary key, -- SHA-256 of the address, the network, or both
  count integer not null,
  since timestamptz not null -- the first of them; they count for 15 minutes
);

-- Changes made in the dashboard, with a key, or with a command; changes of mail are in `events`.
create table audit_entries (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('member', 'key', 'command')),
  actor text not null,
  action text not null,
  tenant_id text collate "C", -- null: the organisation
  request_id text,
  ip_address text,
  data jsonb not null -- without secrets
);
create index audit_entries_by_time on audit_entries (at);
create index audit_entries_by_tenant on audit_entries (tenant_id, id);

-- Module: installation

-- Older secrets that a process may still need: the secret with `fingerprint`, sealed under `opened_by`. Empty until the first rotation.
create table secrets (
  opened_by text collate "C" not null,
  fingerprint text collate "C" not null,
  sealed bytea not null,
  primary key (opened_by, fingerprint)
);

-- The last rotation of the secret. announced: processes load the new one; sealing: all seal with it, stored values are resealed.
create table secret_rotation (
  only_one boolean primary key default true check (only_one),
  old_fingerprint text not null,
  new_fingerprint text not null,
  step text not null check (step in ('announced', 'sealing', 'done')),
  began_at timestamptz not null
);

-- Module: credentials

-- API keys and SMTP logins; a revoked one stays, so that its key is distinguished from an unknown key.
create table credentials (
  id bigint primary key, -- drawn by the program
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
  revoked_at timestamptz,
  sealed_key bytea -- only where the operator has allowed keys to be revealed
);
create index credentials_of_tenant on credentials (tenant_id, id);

-- Module: limits

-- Limits that differ from the configured defaults.
create table limit_overrides (
  scope text collate "C" primary key, -- 'organisation', 'tenant:<id>' or 'key:<id>'
  rate_per_second integer,
  send_per_hour bigint,
  send_unlimited boolean not null
);

-- Send-limit slots used in `hour`, for the organisation and for each tenant with a limit of its own.
create table send_limit_usage (
  scope text collate "C" not null,
  test boolean not null,
  hour timestamptz not null,
  used bigint not null,
  waiting bigint not null, -- emails that wait for a slot
  approaching_notified_at timestamptz, -- the hour of the last notification that most of the limit is used
  exceeded_notified_at timestamptz, -- the hour of the last notification that emails wait for the next hour
  takes jsonb not null default '{}', -- by writer, the number of its last take in this hour: a take whose reply was lost is undone once
  primary key (scope, test)
) with (fillfactor = 50);

-- Requests of a key in the last second, while several API processes count them together. Worthless after a crash.
create unlogged table request_rates (
  credential_id bigint primary key references credentials (id) on delete cascade,
  at_ms bigint[] not null, -- Unix milliseconds, ascending
  counts integer[] not null, -- requests accepted at each of these times
  granted integer not null -- of the last request for permits
);

-- Sandbox emails sent on each day.
create table sandbox_days (
  day date primary key,
  used integer not null
);

-- Module: domains

-- Sending domains with their DKIM keys.
create table domains (
  tenant_id text collate "C" not null,
  id bigint not null, -- drawn by the program
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
  findings jsonb not null default '{}', -- problems that the last check found, beside the statuses; the writer limits its size
  failed_checks integer not null default 0, -- background checks in a row that failed while the domain was verified
  next_check_at timestamptz,
  primary key (tenant_id, id)
);
create unique index domains_by_name on domains (tenant_id, name);
create unique index domains_by_id on domains (id);
create unique index domains_by_uuid on domains (uuid);
create index domains_to_check on domains (next_check_at) where next_check_at is not null;

-- DKIM keys of the platform's own domains, such as the domain of the sandbox sender.
create table platform_keys (
  name text collate "C" primary key,
  selector text not null,
  rsa_private bytea not null, -- sealed
  rsa_public text not null,
  created_at timestamptz not null
);

-- Module: tracking

-- Host names below a sending domain that serve open pixels and tracked links; deleted with the sending domain.
create table track_domains (
  tenant_id text collate "C" not null,
  id bigint not null, -- drawn by the program
  domain_id bigint not null,
  name text not null,
  full_name text not null,
  track_clicks boolean not null,
  track_opens boolean not null,
  ssl_enabled boolean not null,
  excluded_click_domains text,
  dns_status text check (dns_status in ('ok', 'missing', 'invalid')),
  dns_error text,
  dns_checked_at timestamptz,
  next_check_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, domain_id) references domains (tenant_id, id) on delete cascade
);
create unique index track_domains_by_full_name on track_domains (full_name);
create unique index track_domains_by_id on track_domains (id);
create index track_domains_of_domain on track_domains (tenant_id, domain_id);
create index track_domains_due on track_domains (next_check_at) where next_check_at is not null;

-- Loads of open pixels and uses of tracked links; a row is in the partition of its email.
create table tracking_events (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  at timestamptz not null,
  id text collate "C" not null, -- made on arrival, so that a repeated write keeps one row
  kind text not null check (kind in ('open', 'click')),
  url text not null, -- empty for opens
  ip_address text not null,
  user_agent text not null,
  source text not null check (source in ('human', 'machine', 'unknown')),
  reason text not null, -- for `source`
  primary key (tenant_id, email_id, at, id)
) partition by range (email_id);

-- Module: emails

-- One row for each envelope recipient of a submission; ids begin with the time of acceptance, which partitions the table.
create table emails (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  number bigint generated always as identity,
  content_id text collate "C" not null,
  recipient text not null,
  sender text not null,
  from_header text not null,
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
create index emails_by_recipient on emails (lower(recipient), id);
create index emails_by_sender on emails (sender, id);
create index emails_by_tag on emails (tag, id) where tag is not null;
create index emails_of_test on emails (tenant_id, id) where test;

-- Content that the emails of one submission share; `id` is that of its first email. Dropped before the emails are.
create table contents (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  body bytea not null, -- JSON, compressed with zstd
  primary key (tenant_id, id)
) partition by range (id);
-- Not in the table's definition, because PostgreSQL 15 does not accept it there. Partitions inherit it.
alter table contents alter column body set storage external;

-- SMTP attempts for an email; a row is in the partition of its email.
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
  tls jsonb, -- {version, cipher, certificate, policy, failure}; null: no connection was made
  source text, -- the local address; null: chosen by the system
  primary key (tenant_id, email_id, id)
) partition by range (email_id);

-- Emails by time of acceptance (UTC) and present status; tenant_id '' is the sum of all tenants.
-- 15 minutes divide the days of every time zone; days are for speed; seconds find the page of a list, and are deleted where 15 minutes
-- hold few emails.
create table email_counts (
  tenant_id text collate "C" not null,
  span text collate "C" not null check (span in ('second', '15min', 'day')),
  starts_at timestamptz not null,
  accepted bigint not null,
  test bigint not null,
  sent bigint not null,
  softfail bigint not null,
  hardfail bigint not null,
  bounced bigint not null,
  held bigint not null,
  complained bigint not null default 0, -- of the accepted
  primary key (tenant_id, span, starts_at)
) with (fillfactor = 70);
create index email_counts_seconds on email_counts (starts_at) where span = 'second';

-- The last event that `email_counts` contains. One row.
create table email_counts_position (
  single boolean primary key check (single),
  xact xid8 not null,
  id bigint not null
);
insert into email_counts_position (single, xact, id) values (true, '0', 0);

-- The last attempt (attempts.id) in a tenant's test inbox when the inbox was cleared.
create table test_inbox_clearings (
  tenant_id text collate "C" primary key,
  last_attempt bigint not null
);

-- Module: events

-- The event log. A reader stops at the oldest open transaction, so that it never skips an event whose transaction committed later.
create table events (
  tenant_id text collate "C" not null,
  id bigint generated always as identity,
  xact xid8 not null default pg_current_xact_id(), -- the writing transaction
  at timestamptz not null,
  kind text not null,
  email_id text collate "C",
  data jsonb not null,
  primary key (tenant_id, id, at)
) partition by range (at);
create index events_in_order on events (xact, id);

-- Module: accept

-- Responses to requests with an idempotency key, written in the transaction that accepts their emails.
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

-- Wall-clock times of the last 24 hours beside an elapsed time that no clock adjustment changes.
create table elapsed_marks (
  elapsed_ms bigint primary key, -- counted while housekeeping ran
  at timestamptz not null
);
create index elapsed_marks_at on elapsed_marks (at);

-- Module: spool

-- Recipients that are not final: a row is deleted when its email becomes final, so the table is as small as the backlog.
create table spool (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  content_id text collate "C" not null,
  shard smallint not null,
  recipient text not null,
  recipient_domain text collate "C" not null,
  -- ready (may be sent), sending (claimed under `epoch`, perhaps sent), deferred (until due_at), over_limit (waits for a send-limit slot),
  -- held (until released; hardfail at due_at)
  state text not null,
  epoch bigint not null default 0,
  attempt_count integer not null default 0, -- failed so far
  manual_retry boolean not null default false,
  test boolean not null,
  size_octets integer not null,
  due_at timestamptz,
  hold_reason text, -- 'suppressed', 'tenant', 'domain' or 'restored'; 'released' from the release until the next attempt
  delay_reason text, -- why a deferred row waits, when it does not wait for the next attempt
  primary key (tenant_id, email_id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create index spool_ready on spool (shard, tenant_id, recipient_domain, content_id, email_id) where state = 'ready';
create index spool_due on spool (shard, due_at) where state in ('deferred', 'held');
create index spool_over_limit on spool (test, email_id) where state = 'over_limit';
create index spool_sending on spool (shard) where state = 'sending';

-- Changes of a tenant or a domain that its queued emails do not follow yet; housekeeping deletes the rows.
create table queue_updates (
  tenant_id text collate "C" not null,
  id bigint generated always as identity,
  change text not null check (change in ('paused', 'resumed', 'deleted', 'domain deleted', 'domain resumed')),
  domain text,
  at timestamptz not null,
  primary key (tenant_id, id)
);

-- Queue pauses: mail for a recipient domain ('destination') or a provider stays queued (tenant_id ''); mail of a sending domain is held.
create table queue_pauses (
  tenant_id text collate "C" not null,
  kind text collate "C" not null check (kind in ('destination', 'provider', 'domain')),
  name text collate "C" not null,
  reason text not null,
  at timestamptz not null,
  primary key (tenant_id, kind, name)
);

-- The owner of each of the 64 shards of the spool.
create table shard_leases (
  shard smallint primary key,
  owner text,
  epoch bigint not null
);
insert into shard_leases (shard, owner, epoch) select shard, null, 0 from generate_series(0, 63) as shard;

-- Delivery processes; the others watch a heartbeat by their own monotonic clocks, so that no wall clock decides a lease.
create table delivery_processes (
  id text primary key,
  heartbeat bigint not null
);

-- Tenants whose test clock was moved, and how far.
create table test_clocks (
  tenant_id text collate "C" primary key,
  offset_ms bigint not null
);

-- Restored backups. Until held_at nothing is sent; until resumed_at unfinished emails stay held and webhooks send nothing.
create table restores (
  id bigint generated always as identity primary key,
  backup_made_at timestamptz not null,
  at timestamptz not null,
  held_at timestamptz,
  resumed_at timestamptz
);

-- Module: delivery

-- Path limits from one source address to one provider, over all processes.
create table shaping (
  source text collate "C" not null,
  provider text collate "C" not null,
  connections_open integer not null,
  granted integer not null, -- of the last request
  connections integer not null,
  rate double precision,
  learned jsonb, -- as src/delivery/shaping keeps it; null: no refusal yet
  next_send_at timestamptz, -- of the next message, where a rate is in force
  window_start bigint not null default 0, -- a Unix second
  window_accepted integer not null default 0, -- messages accepted in that second
  previous_accepted integer not null default 0, -- messages accepted in the second before it
  cause text, -- of the last change
  changed_at timestamptz,
  limited_at timestamptz, -- when a process last wanted a connection that the limit did not allow
  primary key (source, provider)
) with (fillfactor = 50);

-- Open connections by process, so that those of a lost process are released.
create table connection_leases (
  process text collate "C" not null,
  source text collate "C" not null,
  provider text collate "C" not null,
  connections_open integer not null,
  primary key (process, source, provider)
) with (fillfactor = 50);

-- Local addresses that mail is sent from.
create table egress_sources (
  address text collate "C" primary key,
  ehlo_name text, -- null: POSTRIDER_HOSTNAME
  pool text collate "C" not null,
  warm_up_from timestamptz, -- the beginning of its warm-up; null: no warm-up
  added_at timestamptz not null,
  warm_up_notified_day integer not null default 0 -- the last day of its warm-up (from 0) with an entry in the event log
);

-- The egress pool of a tenant's mail ('': any tenant) with a tag ('': any tag).
create table pool_assignments (
  tenant_id text collate "C" not null,
  tag text collate "C" not null,
  pool text collate "C" not null,
  primary key (tenant_id, tag)
);

-- Messages of the current warm-up day of a source address (from 0), over all processes.
create table warm_up_days (
  source text collate "C" not null,
  provider text collate "C" not null,
  day integer not null,
  taken integer not null,
  granted integer not null, -- of the last request
  primary key (source, provider)
) with (fillfactor = 50);

-- Due actions of simulated recipients: a bounce, a complaint, an open, a click.
create table simulated_events (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  kind text not null check (kind in ('bounce', 'complaint', 'open', 'click')),
  test boolean not null,
  content_id text collate "C" not null,
  recipient text not null,
  return_path text not null, -- empty where no report can be made
  message_id text not null,
  due_at timestamptz not null, -- by the real clock, as in the spool
  leased_until timestamptz, -- while a process works on it
  attempt_count integer not null default 0,
  primary key (tenant_id, email_id, kind)
);
create index simulated_events_due on simulated_events (due_at);

-- MTA-STS policies (RFC 8461) of recipient domains, for all processes, until they expire.
create table sts_policies (
  domain text collate "C" primary key,
  policy_id text not null,
  mode text not null check (mode in ('enforce', 'testing', 'none')),
  mx text[] not null,
  fetched_at timestamptz not null,
  expires_at timestamptz not null
);
create index sts_policies_expiry on sts_policies (expires_at);

-- Recipient domains for which the operator requires TLS, and which certificate is accepted.
create table tls_requirements (
  domain text collate "C" primary key,
  certificate text not null check (certificate in ('valid', 'any')),
  at timestamptz not null
);

-- Module: returns

-- Handled bounce and complaint reports, so that none is handled twice; a row is in the partition of its email.
create table reports (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  dedupe_key text collate "C" not null, -- the report's Message-ID or a digest of it, or the name of an effect that happens once
  kind text not null check (kind in ('bounce', 'complaint')),
  matched_by text not null check (matched_by in ('return path', 'trace header', 'message id')),
  at timestamptz not null,
  primary key (tenant_id, email_id, dedupe_key)
) partition by range (email_id);

-- Module: suppressions

-- Suppressed addresses; tenant_id '' is the organisation's list, which applies to every tenant.
create table suppressions (
  tenant_id text collate "C" not null,
  address text not null,
  id bigint generated always as identity,
  reason text,
  source text not null check (source in ('manual', 'automatic')),
  created_at timestamptz not null,
  email_id text collate "C", -- of an automatic entry: the email whose failure, bounce, complaint or unsubscribe made it
  primary key (tenant_id, address)
);
create index suppressions_by_id on suppressions (tenant_id, id);
create index suppressions_in_order on suppressions (id);

-- Module: usage

-- A tenant's live mail by hour, for the automatic pause.
create table tenant_hourly_stats (
  tenant_id text collate "C" not null,
  hour timestamptz not null,
  completed bigint not null, -- emails with a final outcome
  invalid_recipients bigint not null, -- failures caused by the recipient address
  complaints bigint not null,
  warned boolean not null default false, -- the operator was warned in this hour
  primary key (tenant_id, hour)
);

-- The last event that the automatic pause has read. One row.
create table auto_pause_position (
  xact xid8 not null,
  id bigint not null
);
insert into auto_pause_position (xact, id) values ('0', 0);

-- Module: webhooks

-- Webhooks; tenant_id '' is the organisation, whose webhooks receive the events of every tenant.
create table webhooks (
  tenant_id text collate "C" not null,
  id bigint not null, -- drawn by the program
  uuid uuid not null,
  name text not null,
  url text not null,
  event_names text[] not null,
  all_events boolean not null,
  enabled boolean not null,
  timeout_seconds smallint not null,
  secret bytea not null, -- sealed
  old_secrets jsonb not null, -- [{sealed, until}], the newest first; each signs too until then
  created_at timestamptz not null,
  updated_at timestamptz not null,
  disabled_at timestamptz, -- null: enabled
  disabled_reason text, -- 'endpoint_gone' (the receiver answered 410) or 'requested' (by a request)
  primary key (tenant_id, id)
);
create unique index webhooks_by_id on webhooks (id);
create unique index webhooks_by_uuid on webhooks (uuid);

-- HTTP requests to webhooks with their responses; the tenant is that of the event.
create table webhook_deliveries (
  tenant_id text collate "C" not null,
  webhook_id bigint not null,
  id uuid not null,
  event_uuid uuid not null,
  event text not null,
  url text not null,
  attempt smallint not null,
  success boolean not null,
  status_code smallint,
  will_retry boolean not null,
  at timestamptz not null,
  duration_ms integer not null,
  request_headers jsonb not null,
  payload text not null,
  response_body text,
  error text,
  email_id text collate "C", -- null: the event is not about an email
  primary key (tenant_id, id, at)
) partition by range (at);
create index webhook_deliveries_by_id on webhook_deliveries (id);
create index webhook_deliveries_of_webhook on webhook_deliveries (webhook_id, at);
create index webhook_deliveries_of_email on webhook_deliveries (email_id) where email_id is not null;

-- The process that sends for a webhook, and the state of its receiver.
create table webhook_endpoints (
  webhook_id bigint primary key references webhooks (id) on delete cascade,
  owner text,
  epoch bigint not null,
  consecutive_failures integer not null, -- attempts that failed since the last success
  failing_since timestamptz, -- the first of them
  probe_at timestamptz, -- while many fail, a first attempt is made at this time only
  alerted_at timestamptz -- when the operator was alerted
);
create index webhook_endpoints_by_owner on webhook_endpoints (owner);

-- Positions of webhooks in the event log: everything up to (xact, event_id), and done_ids after it, has had its first attempt.
create table webhook_positions (
  webhook_id bigint not null references webhooks (id) on delete cascade, -- a disabled webhook has no position
  id bigint generated always as identity,
  xact xid8 not null,
  event_id bigint not null,
  done_ids bigint[] not null,
  since pg_snapshot not null, -- events visible in this snapshot are older than the webhook
  until_xact xid8, -- this and the next two: a part of the log that is sent again
  after_at timestamptz,
  before_at timestamptz,
  primary key (webhook_id, id)
);

-- Events whose webhook attempts failed so far; their bodies are made again from the log.
create table webhook_retries (
  webhook_id bigint not null references webhooks (id) on delete cascade,
  event_id bigint not null,
  xact xid8 not null,
  made smallint not null, -- attempts
  due_at timestamptz not null,
  primary key (webhook_id, event_id)
);
create index webhook_retries_due on webhook_retries (webhook_id, due_at);

-- Webhook processes with their heartbeats, as delivery_processes.
create table webhook_processes (
  id text primary key,
  heartbeat bigint not null
);

-- The RSA key that signs every webhook; made once.
create table webhook_signing_keys (
  id text collate "C" primary key,
  private_key bytea not null, -- sealed PKCS#8 PEM
  created_at timestamptz not null
);

-- Module: request-logs

-- Authenticated API requests; tenant_id '' is the organisation.
create table request_logs (
  tenant_id text collate "C" not null,
  at timestamptz not null,
  request_id text collate "C" not null,
  nth integer not null, -- orders the requests of one process in the same millisecond
  method text not null,
  path text not null,
  endpoint text collate "C" not null,
  status_code smallint not null,
  duration_ms integer not null,
  credential_id bigint not null,
  key_prefix text not null,
  details jsonb not null, -- {rateLimit, context, error, email, sdk} as the API returns them
  request_octets bigint, -- of the whole body
  response_octets bigint, -- of the whole body
  bodies bytea, -- the kept parts of both bodies, sealed; ciphertext does not compress
  primary key (tenant_id, at, request_id)
) partition by range (at);
alter table request_logs alter column bodies set storage external;
create index request_logs_by_time on request_logs (at, request_id);
create index request_logs_by_id on request_logs (request_id);
-- Errors are few, and are searched for; other filters read by time, because each index slows down every request.
create index request_logs_errors on request_logs (at, request_id) where status_code >= 400;
