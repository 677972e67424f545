-- Locks members, which are few, for a moment; makes a table.

alter table members
  add column id bigint generated always as identity,
  add column password text,
  add constraint members_id_key unique (id);

-- Who is signed in to the dashboard. token_hash: of the cookie's value.
create table sessions (
  token_hash bytea primary key,
  member_id bigint not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

create index sessions_of_member on sessions (member_id);
