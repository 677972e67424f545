-- Takes no lock on an existing table.

-- Module: privacy

-- Days after which a tenant's addresses are hashed. The row outlives the tenant, because the emails of a deleted tenant do too.
create table tenant_address_retention (
  tenant_id text collate "C" primary key,
  hash_days integer check (hash_days >= 1), -- null: no longer, but some may be hashed from before
  changed_at timestamptz not null
);
