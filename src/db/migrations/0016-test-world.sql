-- Makes three tables and an index; while it reads each day of emails for the index, that day takes no new ones.

-- How far a tenant's test clock is ahead of the time. A row when it has been moved.
create table test_clocks (
  tenant_id text collate "C" primary key,
  ahead_ms bigint not null
);

-- What simulated recipients do later: report a bounce or a complaint, open, click. due_at: by the real clock, like the spool's; taken_until:
-- while a process is at it. return_path: empty where nothing can be reported.
create table simulated_later (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  kind text not null check (kind in ('bounce', 'complaint', 'open', 'click')),
  test boolean not null,
  content_id text collate "C" not null,
  recipient text not null,
  return_path text not null,
  message_id text not null,
  due_at timestamptz not null,
  taken_until timestamptz,
  tries integer not null default 0,
  primary key (tenant_id, email_id, kind)
);
create index simulated_later_due on simulated_later (due_at);

-- The last attempt (attempts.id) that was in a tenant's test inbox when it was cleared.
create table test_inbox_clearings (
  tenant_id text collate "C" primary key,
  last_attempt bigint not null
);

create index emails_of_test on emails (tenant_id, id) where test;
