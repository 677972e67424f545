-- Takes no lock on an existing table.

-- Module: privacy

-- Tenants whose contents are hidden from some members, by role. The row outlives the tenant, because the emails of a deleted tenant do too.
create table content_visibility (
  tenant_id text collate "C" primary key,
  visible_to text not null check (visible_to in ('admins', 'owners')), -- no row: everyone
  changed_at timestamptz not null
);
