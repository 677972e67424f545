-- Adds a column to email_counts and one to webhook_deliveries (short exclusive locks, no rewrite), and an index of the latter, which is
-- made on its partitions as well: nothing is in it yet, so that takes one reading of the table, during which webhooks wait.

-- Of the accepted: those whose recipient complained.
alter table email_counts add column complained bigint not null default 0;

-- Which email it told of; null: none, or told before this column was made.
alter table webhook_deliveries add column email_id text collate "C";
create index webhook_deliveries_of_email on webhook_deliveries (email_id) where email_id is not null;
