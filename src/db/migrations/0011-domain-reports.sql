-- Takes a short lock on domains, for the foreign keys of tables that are empty at first.

-- Module: domain-reports

-- DMARC and TLS reports about sending domains, each counted once.
create table domain_reports (
  tenant_id text collate "C" not null,
  domain_id bigint not null,
  kind text not null check (kind in ('dmarc', 'tls')),
  key bytea not null, -- hash of the reporter and its id of the report
  authenticated boolean not null, -- the mail had a valid DKIM signature of its sender's domain
  reporter text not null,
  sender text not null, -- the domain of From
  policy text not null, -- the p that a DMARC report names; '' for others
  messages bigint not null, -- sessions, for a TLS report
  begins_at timestamptz not null,
  ends_at timestamptz not null,
  received_at timestamptz not null,
  primary key (tenant_id, domain_id, kind, key, authenticated),
  foreign key (tenant_id, domain_id) references domains on delete cascade
);
create index domain_reports_by_time on domain_reports (tenant_id, domain_id, received_at);

-- Messages by day, source and From domain, as counted in DMARC reports.
create table dmarc_days (
  tenant_id text collate "C" not null,
  domain_id bigint not null,
  day date not null, -- UTC, of the start of the report's period
  source text collate "C" not null, -- IP address; '': more sources than are kept
  header_from text collate "C" not null,
  authenticated boolean not null,
  messages bigint not null,
  aligned bigint not null, -- by DKIM, SPF or both
  dkim_aligned bigint not null,
  spf_aligned bigint not null,
  quarantined bigint not null,
  rejected bigint not null,
  signers text[] not null, -- a few names of keys whose signatures passed
  spf_domains text[] not null, -- a few domains whose SPF check passed
  primary key (tenant_id, domain_id, day, source, header_from, authenticated),
  foreign key (tenant_id, domain_id) references domains on delete cascade
);
create index dmarc_days_by_day on dmarc_days (day);

-- Sessions by day, reporter and policy, as counted in TLS reports.
create table tls_days (
  tenant_id text collate "C" not null,
  domain_id bigint not null,
  day date not null,
  reporter text collate "C" not null,
  policy_type text collate "C" not null,
  authenticated boolean not null,
  successful bigint not null,
  failed bigint not null,
  primary key (tenant_id, domain_id, day, reporter, policy_type, authenticated),
  foreign key (tenant_id, domain_id) references domains on delete cascade
);
create index tls_days_by_day on tls_days (day);

-- Failed sessions of TLS reports by their reason.
create table tls_failures (
  tenant_id text collate "C" not null,
  domain_id bigint not null,
  day date not null,
  result text collate "C" not null,
  receiving_mx text collate "C" not null,
  authenticated boolean not null,
  failed bigint not null, -- sessions
  reason text not null, -- of the last report
  primary key (tenant_id, domain_id, day, result, receiving_mx, authenticated),
  foreign key (tenant_id, domain_id) references domains on delete cascade
);
create index tls_failures_by_day on tls_failures (day);
