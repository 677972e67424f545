-- Takes a short exclusive lock on domain_reports.

alter table domain_reports add column sources integer not null default 0; -- rows of dmarc_days that the report added or changed
