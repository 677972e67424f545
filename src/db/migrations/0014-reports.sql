-- Makes a table; locks nothing that is there.

-- A report that did something, or was kept for the record: so that nothing is done twice. key: the report's Message-ID or a digest of it,
-- or what can happen once only. Lies in the partition of its email.
create table reports (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  key text collate "C" not null,
  kind text not null check (kind in ('bounce', 'complaint')),
  matched_by text not null check (matched_by in ('return path', 'message id')),
  at timestamptz not null,
  primary key (tenant_id, email_id, key)
) partition by range (email_id);
