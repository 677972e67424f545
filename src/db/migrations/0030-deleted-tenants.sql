-- Takes no lock on an existing table.

-- Module: suppressions

-- Deleted tenants whose lists housekeeping is still to delete; nothing finds their entries.
create table suppression_erasures (
  tenant_id text collate "C" primary key
);

-- Module: webhooks

-- Deleted tenants whose deliveries housekeeping is still to delete.
create table delivery_erasures (
  tenant_id text collate "C" primary key,
  until_at timestamptz not null -- the deletion of the tenant; later requests to webhooks of the organisation stay
);
