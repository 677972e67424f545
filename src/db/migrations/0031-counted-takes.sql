-- Adds a column with a constant default to a table of a few rows: an instant's exclusive lock on send_capacity.

-- takes: by writer, the number of its last take in this hour, so that a take whose answer was lost can be taken back, once.
alter table send_capacity
  add column takes jsonb not null default '{}';
