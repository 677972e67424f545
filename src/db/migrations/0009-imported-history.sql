-- Takes a short lock on tenants, for the foreign key of a table that is empty at first.

-- Module: emails

-- Emails that another program sent, by time of acceptance (UTC) and the status with which they came. Lists add them to email_counts; usage
-- does not. tenant_id '' is the sum of all tenants.
create table imported_counts (
  tenant_id text collate "C" not null,
  span text collate "C" not null check (span in ('15min', 'day')),
  starts_at timestamptz not null,
  accepted bigint not null,
  sent bigint not null,
  hardfail bigint not null,
  bounced bigint not null,
  primary key (tenant_id, span, starts_at)
) with (fillfactor = 70);

-- Module: imports

-- How far the history of a tenant has come from another program.
create table import_positions (
  tenant_id text collate "C" not null references tenants on delete cascade,
  source text collate "C" not null check (source in ('postal')),
  since timestamptz not null, -- older messages were left out
  position bigint not null, -- the number of the last message, in the other program
  primary key (tenant_id, source)
);
