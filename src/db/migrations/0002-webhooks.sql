-- Makes the tables of webhooks, and an index of suppressions, whose writers it locks out while it is made.

create index suppressions_by_id on suppressions (tenant_id, id);

-- tenant_id '' is the organisation's own, which hears of every tenant. secret: sealed; old_secrets: a list of {sealed, until}, the
-- newest first, which sign too until then.
create table webhooks (
  tenant_id text collate "C" not null,
  id bigint generated always as identity,
  uuid uuid not null,
  name text not null,
  url text not null,
  event_names text[] not null,
  all_events boolean not null,
  enabled boolean not null,
  timeout_seconds smallint not null,
  secret bytea not null,
  old_secrets jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id)
);
create unique index webhooks_by_id on webhooks (id);
create unique index webhooks_by_uuid on webhooks (uuid);

-- One HTTP request to a webhook, with what was sent and answered. The tenant is that of the event.
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
  primary key (tenant_id, id, at)
) partition by range (at);
create index webhook_deliveries_by_id on webhook_deliveries (id);
create index webhook_deliveries_of_webhook on webhook_deliveries (webhook_id, at);

-- The installation's RSA key that signs every webhook; made once. private_key: sealed PKCS#8 PEM.
create table webhook_signing_keys (
  id text collate "C" primary key,
  private_key bytea not null,
  created_at timestamptz not null
);
