-- Adds columns with constant defaults to domains and two small indexes (short exclusive locks, no rewrite).

-- What the last check found, beside the statuses; bounded by whoever writes it. failures: failing background checks in a row while verified.
alter table domains
  add column findings jsonb not null default '{}',
  add column failures integer not null default 0,
  add column next_check_at timestamptz;

update domains
set next_check_at = created_at
where not test_only;

create index domains_to_check on domains (next_check_at) where next_check_at is not null;
create unique index domains_by_uuid on domains (uuid);
