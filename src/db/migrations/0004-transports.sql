-- Takes a short lock on attempts: a column without a default.

-- Module: delivery

-- SMTP relays that mail can take instead of the way of the installation: its own MX delivery, or POSTRIDER_RELAY.
create table transports (
  name text collate "C" primary key,
  host text not null,
  port integer not null,
  tls text not null check (tls in ('implicit', 'required', 'opportunistic')),
  username text, -- null: no login
  password bytea, -- sealed
  connections integer not null, -- over all processes
  rate double precision, -- messages per second over all processes; null: no limit
  failover boolean not null, -- mail takes the default while the transport is down
  revision integer not null, -- raised by every change, so that its limits and connections are made anew
  created_at timestamptz not null
);

-- The transports of a tenant's ('': any) mail from a sending domain ('': any) with a tag ('': any).
create table transport_rules (
  tenant_id text collate "C" not null,
  domain text collate "C" not null,
  tag text collate "C" not null,
  slots text[] not null, -- 100 names, one for each percent; '': the default
  primary key (tenant_id, domain, tag)
);

alter table attempts add column transport text; -- null: the installation had no transport rules, or none was chosen
