-- Adds nullable columns to members (a short exclusive lock, no rewrite) and makes two tables.

-- A second factor by RFC 6238. totp_secret: sealed. totp_confirmed_at: null until its first code was given, which is when it counts.
-- totp_step: the last step that a code was taken of; none is taken again.
alter table members
  add column totp_secret bytea,
  add column totp_confirmed_at timestamptz,
  add column totp_step bigint;

-- What a member signs in with when the authenticator is lost. Each goes when it was used. code_hash: SHA-256.
create table recovery_codes (
  member_id bigint not null,
  code_hash bytea not null,
  primary key (member_id, code_hash)
);

-- Who changed what, besides mail: in the dashboard, with a key, or with a command. tenant_id: null
-- for what is of the organisation. data: what it was about, without secrets.
create table audit_entries (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('member', 'key', 'command')),
  actor text not null,
  act text not null,
  tenant_id text collate "C",
  request_id text,
  ip_address text,
  data jsonb not null
);
create index audit_entries_by_time on audit_entries (at);
create index audit_entries_by_tenant on audit_entries (tenant_id, id);
