-- Adds a column with a default to email_counts: a short exclusive lock, no rewrite.

-- Of the accepted: those whose recipient complained.
alter table email_counts add column complained bigint not null default 0;
