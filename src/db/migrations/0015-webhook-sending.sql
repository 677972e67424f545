-- Makes the tables of sending webhooks; locks webhooks for a moment, because they refer to it. Webhooks that are there hear of what
-- happens from now on.

-- Which process sends for a webhook, and how its receiver does. failures: attempts that failed since one succeeded, the first of them
-- at failing_since; while they are many, a first attempt is made at probe_at only. told_at: the operator was told.
create table webhook_endpoints (
  webhook_id bigint primary key references webhooks (id) on delete cascade,
  owner text,
  epoch bigint not null,
  failures integer not null,
  failing_since timestamptz,
  probe_at timestamptz,
  told_at timestamptz
);
create index webhook_endpoints_by_owner on webhook_endpoints (owner);

-- How far a webhook has followed the log: everything up to (xact, event_id) has had its first attempt, and done_ids beyond it.
-- since: events visible in this snapshot were before the webhook. until_xact and what follows: a part of the log that is sent again.
-- A disabled webhook has none.
create table webhook_positions (
  webhook_id bigint not null references webhooks (id) on delete cascade,
  id bigint generated always as identity,
  xact xid8 not null,
  event_id bigint not null,
  done_ids bigint[] not null,
  since pg_snapshot not null,
  until_xact xid8,
  after_at timestamptz,
  before_at timestamptz,
  primary key (webhook_id, id)
);

-- Events whose attempts failed so far, and how many were made. Their bodies are made again from the log.
create table webhook_retries (
  webhook_id bigint not null references webhooks (id) on delete cascade,
  event_id bigint not null,
  xact xid8 not null,
  made smallint not null,
  due_at timestamptz not null,
  primary key (webhook_id, event_id)
);
create index webhook_retries_due on webhook_retries (webhook_id, due_at);

-- As delivery_processes: a living one raises its beat, the others watch it.
create table webhook_processes (
  id text primary key,
  beat bigint not null
);

insert into webhook_endpoints (webhook_id, epoch, failures)
select id, 0, 0
from webhooks;

insert into webhook_positions (webhook_id, xact, event_id, done_ids, since)
select webhooks.id, coalesce(last.xact, '0'), coalesce(last.id, 0), '{}', pg_current_snapshot()
from webhooks
left join lateral (
  select xact, id
  from events
  where xact < pg_snapshot_xmin(pg_current_snapshot())
  order by xact desc, id desc
  limit 1
) as last on true
where webhooks.enabled;
