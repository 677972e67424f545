-- Takes short locks on spool and transports: columns without a default or with a constant one.

-- Module: spool

-- The transport of a claimed row, if it is not the default: an outcome that was never recorded can name it.
alter table spool add column transport text;

-- Module: delivery

alter table transports add column fallback text; -- the transport that its mail uses while it is down; null: the default
-- Connections avoid blocked networks, because the host was not named on this machine.
alter table transports add column guarded boolean not null default false;

-- Transports that a delivery process regards as down now, for people: no process decides by these rows.
create table transport_states (
  process_id text not null,
  transport text collate "C" not null,
  tenant_id text collate "C" not null, -- '': the mail of all tenants
  revision integer not null,
  reason text not null check (reason in ('failed', 'refused')),
  since timestamptz not null,
  until_at timestamptz not null, -- the next email tries it again after this time
  primary key (transport, tenant_id, process_id)
);
