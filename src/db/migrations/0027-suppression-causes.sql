-- Adds a nullable column: a short exclusive lock, no rewrite.

-- Of an automatic entry: the email whose failure, bounce, complaint or unsubscribing it came from.
alter table suppressions add column email_id text collate "C";
