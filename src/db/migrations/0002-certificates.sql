-- Takes no locks on existing tables: makes three new ones.

-- Module: certificates

-- Accounts at ACME certificate authorities, one for each directory URL.
create table acme_accounts (
  directory text collate "C" primary key,
  private_key bytea not null, -- sealed
  created_at timestamptz not null
);

-- A certificate for each host name of the installation, and the schedule of its next order.
create table certificates (
  name text collate "C" primary key,
  directory text, -- the certificate authority of the chain; null before the first certificate
  chain text, -- PEM, the host's certificate first
  private_key bytea, -- sealed PEM
  issued_at timestamptz,
  expires_at timestamptz,
  challenge text check (challenge in ('http-01', 'tls-alpn-01')), -- the last one that succeeded
  due_at timestamptz not null, -- of the next order; that of an order in progress is its retry
  ordered_at timestamptz,
  order_until timestamptz, -- the order in progress ends before; null: none is in progress
  failures integer not null default 0, -- orders since the last success, with the one in progress
  last_error text,
  wanted_at timestamptz not null, -- an instance last used the name, to the hour
  created_at timestamptz not null
);
create index certificates_due on certificates (due_at);

-- Challenges of orders in progress, which any process may have to answer.
create table acme_challenges (
  name text collate "C" primary key,
  token text collate "C" not null,
  key_authorization text not null, -- public: the CA fetches it over HTTP
  expires_at timestamptz not null
);
create index acme_challenges_by_token on acme_challenges (token);
