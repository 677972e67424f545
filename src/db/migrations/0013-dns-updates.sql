-- Takes no lock on an existing table.

-- Module: dns-updates

-- The records that Postrider wrote: it changes and deletes no others.
create table dns_records (
  name text collate "C" not null,
  type text collate "C" not null,
  data text collate "C" not null,
  state text not null check (state in ('adding', 'published', 'removing')), -- adding, removing: the outcome of the change is not known yet
  written_at timestamptz not null,
  seen_at timestamptz, -- when it was last read back; null: never
  primary key (name, type, data)
);

-- Record sets that could not be written.
create table dns_problems (
  name text collate "C" not null,
  type text collate "C" not null,
  problem text not null,
  since timestamptz not null,
  primary key (name, type)
);

create table dns_update_run (
  only_one boolean primary key default true check (only_one),
  ended_at timestamptz not null,
  problem text, -- of the whole run
  failures integer not null, -- in a row
  next_at timestamptz not null
);
