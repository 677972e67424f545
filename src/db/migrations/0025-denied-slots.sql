-- Adds a nullable column: a short exclusive lock, no rewrite.

-- When a process last wanted a connection and there was none for it.
alter table shaping add column denied_at timestamptz;
