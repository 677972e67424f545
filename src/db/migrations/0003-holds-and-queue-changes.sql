-- Adds a nullable column to spool (a short exclusive lock, no rewrite) and a small table.

-- Why a held recipient is held: 'suppressed', or 'tenant' (which lets it go when the tenant is active again).
alter table spool add column held_because text;

-- What happened to a tenant or a domain and its queued emails have not been brought into line with yet; a chore takes rows away.
create table queue_changes (
  tenant_id text collate "C" not null,
  id bigint generated always as identity,
  change text not null check (change in ('stopped', 'resumed', 'deleted', 'domain deleted')),
  domain text,
  at timestamptz not null,
  primary key (tenant_id, id)
);
