-- Adds a nullable column to attempts (short exclusive lock, no rewrite), and makes two small tables.

-- What is known of an attempt's encryption: {version, cipher, certificate, policy, failure}; null: nothing was connected to.
alter table attempts add column tls jsonb;

-- MTA-STS policies (RFC 8461) of recipients' domains, for all processes, until they expire.
create table sts_policies (
  domain text collate "C" primary key,
  policy_id text not null,
  mode text not null check (mode in ('enforce', 'testing', 'none')),
  mx text[] not null,
  fetched_at timestamptz not null,
  expires_at timestamptz not null
);
create index sts_policies_expiry on sts_policies (expires_at);

-- Recipients' domains to which the operator lets no mail go without TLS. certificate: which will do.
create table tls_requirements (
  domain text collate "C" primary key,
  certificate text not null check (certificate in ('valid', 'any')),
  at timestamptz not null
);
