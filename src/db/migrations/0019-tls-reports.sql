-- Takes a short lock on spool: a column without a default. Programs of the version before apply TLS policies to these emails too.

-- Module: spool

-- The email is sent without regard to the TLS policy of the recipient's domain; null: no.
alter table spool add column ignores_tls_policies boolean;

-- Module: delivery

-- Sessions with mail servers by the TLS policy that the recipient domain publishes, until they are reported.
create table tls_session_policies (
  day date not null, -- UTC
  policy_domain text collate "C" not null,
  policy_key text collate "C" not null, -- digest of type and lines; 'others': more policies than are kept
  policy_type text not null,
  policy_lines text not null, -- separated by line feeds
  successful bigint not null,
  primary key (day, policy_domain, policy_key)
);

-- Failed sessions of the same policies.
create table tls_session_failures (
  day date not null,
  policy_domain text collate "C" not null,
  policy_key text collate "C" not null,
  result text collate "C" not null,
  receiving_mx text collate "C" not null,
  receiving_ip text collate "C" not null, -- '': no connection, or more addresses than are kept
  sending_ip text collate "C" not null, -- '': the operating system chose it
  reason text not null, -- of the last failure
  failed bigint not null,
  primary key (day, policy_domain, policy_key, result, receiving_mx, receiving_ip, sending_ip)
);

-- Module: tls-reports

-- The report about one day of a domain, for each of its destinations.
create table tls_reports (
  day date not null,
  policy_domain text collate "C" not null,
  destination text collate "C" not null, -- the URI; '': it could not be looked up
  state text not null check (state in ('waiting', 'sent', 'failed')),
  tries integer not null,
  next_at timestamptz not null, -- of the last change, once the state is final
  problem text, -- of the last try
  successful bigint not null,
  failed bigint not null,
  primary key (day, policy_domain, destination)
);
