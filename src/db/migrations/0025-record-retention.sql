-- Takes no lock on an existing table.

-- Module: privacy

-- Days after which the records of a tenant's emails are reduced. The row outlives the tenant, because the emails of a deleted tenant do too.
create table tenant_record_retention (
  tenant_id text collate "C" primary key,
  record_days integer not null check (record_days >= 1),
  changed_at timestamptz not null
);
