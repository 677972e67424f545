-- Adds a column with a constant default: a short exclusive lock, no rewrite.

-- The day of its warm-up (from 0) that the event log was told of last.
alter table source_addresses add column warm_up_told integer not null default 0;
