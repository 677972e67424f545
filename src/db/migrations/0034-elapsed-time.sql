-- Makes one table; locks nothing.

-- What the wall clock said at moments of the last 24 hours, counted by clocks that nobody sets. `elapsed_ms`: while housekeeping ran.
create table elapsed_marks (
  elapsed_ms bigint primary key,
  at timestamptz not null
);
create index elapsed_marks_at on elapsed_marks (at);
