-- Adds two nullable columns to a table of a few rows (a short exclusive lock, no rewrite).

-- The hour in which it was last told that most of the limit is used, and that emails wait for the next hour.
alter table send_capacity
  add column approaching_told timestamptz,
  add column exceeded_told timestamptz;
