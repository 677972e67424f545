-- Takes a short lock on domains: columns without a default that is computed for each row.

-- Module: domains

alter table domains add column key_since timestamptz; -- when the signing keys were put to use; null: with the domain
alter table domains add column signs_ed25519 boolean not null default true; -- false: its record was not seen when the keys were put to use
alter table domains add column delegated boolean not null default false; -- the selectors are CNAMEs below the platform's name
alter table domains add column next_rotation_at timestamptz not null default '-infinity'; -- the next look at its keys
create index domains_to_rotate on domains (next_rotation_at) where not test_only;

-- The keys of a sending domain beside those that sign: the next ones, and those that signed before.
create table dkim_keys (
  tenant_id text collate "C" not null,
  domain_id bigint not null,
  selector text not null,
  uuid uuid not null, -- names the sealed keys
  state text not null check (state in ('next', 'retired')),
  rsa_private bytea, -- sealed; null: it no longer signs
  rsa_public text not null,
  ed25519_private bytea, -- sealed; null: it no longer signs
  ed25519_public text not null,
  reason text not null check (reason in ('command', 'schedule')),
  created_at timestamptz not null,
  checked_at timestamptz, -- of the next keys: the last check of their records
  seen_since timestamptz, -- every resolver has returned the RSA record since; null: not seen
  ed25519_seen_since timestamptz,
  problem text, -- why the record is not seen
  keep_until timestamptz, -- of retired keys: mail that they signed may still be verified
  primary key (tenant_id, domain_id, selector),
  foreign key (tenant_id, domain_id) references domains (tenant_id, id) on delete cascade
);
create unique index dkim_keys_next on dkim_keys (tenant_id, domain_id) where state = 'next';
