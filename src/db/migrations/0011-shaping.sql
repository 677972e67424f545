-- Makes two small tables; locks nothing that is there.

-- What is allowed toward a provider from one of our addresses, over all processes. open: connections now; granted: of the last request.
-- learned: as src/delivery/learn.ts has it; null: nothing has been refused yet. slot_at: when the next message may go, where a rate is in
-- force. second, accepted, accepted_before: messages taken in that unix second and in the one before it. cause: of the last change.
create table shaping (
  source text collate "C" not null,
  provider text collate "C" not null,
  open integer not null,
  granted integer not null,
  connections integer not null,
  rate double precision,
  learned jsonb,
  slot_at timestamptz,
  second bigint not null default 0,
  accepted integer not null default 0,
  accepted_before integer not null default 0,
  cause text,
  changed_at timestamptz,
  primary key (source, provider)
) with (fillfactor = 50);

-- Whose the open connections are, so that those of a process that was lost can be taken back.
create table shaping_slots (
  process text collate "C" not null,
  source text collate "C" not null,
  provider text collate "C" not null,
  open integer not null,
  primary key (process, source, provider)
) with (fillfactor = 50);
