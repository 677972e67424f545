-- Takes no locks: new tables.

-- Module: reputation

-- Outcomes by day, sending domain, egress source and provider, counted from the event log.
create table reputation_days (
  tenant_id text collate "C" not null,
  day date not null, -- UTC, of the event
  test boolean not null, -- simulated mail
  domain text collate "C" not null, -- of the sender
  source text collate "C" not null, -- '': the operating system chose the address
  provider text collate "C" not null, -- a named provider, a transport, relay, simulator or others; '': unknown
  accepted bigint not null,
  secured bigint not null, -- accepted over TLS
  deferred bigint not null,
  failed bigint not null,
  blocked bigint not null, -- refused as spam or for reputation; neither deferred nor failed
  bounced bigint not null,
  complained bigint not null,
  primary key (tenant_id, test, day, domain, source, provider)
);
create index reputation_days_by_day on reputation_days (test, day);

create table reputation_position (
  single boolean primary key check (single),
  xact xid8 not null,
  id bigint not null
);
insert into reputation_position (single, xact, id) values (true, '0', 0);

-- Findings that were notified, each once a day.
create table reputation_notices (
  tenant_id text collate "C" not null, -- '': the organisation
  day date not null,
  kind text not null,
  subject text collate "C" not null,
  primary key (tenant_id, day, kind, subject)
);

-- The last answer of each blocklist about each address of this installation.
create table blocklist_checks (
  zone text collate "C" not null,
  address text collate "C" not null,
  listed boolean not null,
  codes text[] not null, -- of the listing, in 127.0.0.0/8
  since timestamptz not null, -- of the present listing, or of its absence
  checked_at timestamptz, -- the last check that ended; null: none
  problem text, -- why the list is ignored or did not answer
  claimed_until timestamptz not null, -- a process checks it now
  primary key (zone, address)
);
