-- Takes a short lock on members: columns without defaults, and an index on a small table.

-- Module: members

-- The account of an OpenID Connect provider that the member has signed in with; null: none.
alter table members add column openid_issuer text;
alter table members add column openid_subject text;
create unique index members_of_subject on members (openid_issuer, openid_subject) where openid_subject is not null;

-- Module: openid

-- Sign-ins that have returned from the provider: none returns twice.
create table openid_states (
  state_hash bytea primary key, -- SHA-256
  used_at timestamptz not null
);
