-- Takes no lock on an existing table.

-- Module: privacy

-- Retention that a tenant has of its own. The row outlives the tenant, because the emails of a deleted tenant do too.
create table tenant_retention (
  tenant_id text collate "C" primary key,
  content_days integer not null check (content_days >= 0), -- 0: until the email is final
  changed_at timestamptz not null
);
