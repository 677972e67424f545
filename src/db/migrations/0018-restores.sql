-- Makes a table; locks nothing that is there.

-- A backup was restored here. until held_at, its unfinished emails are not held yet, and nothing may be sent; until resumed_at they stay held,
-- and webhooks send nothing.
create table restores (
  id bigint generated always as identity primary key,
  backup_made_at timestamptz not null,
  at timestamptz not null,
  held_at timestamptz,
  resumed_at timestamptz
);
