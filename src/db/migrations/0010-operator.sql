-- Adds nullable columns to tenants and replaces a check of queue_changes (short exclusive locks, no rewrite), and makes small tables.

-- A paused tenant's mail is accepted and held. paused_because: for people; null: not paused. resumed_at: what happened before it no
-- longer counts against the tenant.
alter table tenants add column paused_because text, add column resumed_at timestamptz;

alter table queue_changes drop constraint queue_changes_change_check;
alter table queue_changes add check (change in ('stopped', 'resumed', 'deleted', 'domain deleted', 'domain resumed'));

-- What the operator has paused: a destination (tenant_id '') is not claimed from, mail of a sending domain is held.
create table queue_stops (
  tenant_id text collate "C" not null,
  kind text collate "C" not null check (kind in ('destination', 'domain')),
  name text collate "C" not null,
  because text not null,
  at timestamptz not null,
  primary key (tenant_id, kind, name)
);

-- What counts for the abuse brake, of live mail by hour: attempts that ended, failures by the recipient's fault, complaints. warned: the
-- operator was told in this hour.
create table tenant_hours (
  tenant_id text collate "C" not null,
  hour timestamptz not null,
  ended bigint not null,
  recipient_faults bigint not null,
  complaints bigint not null,
  warned boolean not null default false,
  primary key (tenant_id, hour)
);
-- How far the brake has read the event log. One row.
create table brake_position (
  xact xid8 not null,
  id bigint not null
);
insert into brake_position (xact, id) values ('0', 0);
