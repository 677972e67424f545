-- Adds a nullable column to credentials (a short exclusive lock, no rewrite) and an index on tenants, which is a small table.

-- The key again, sealed; only where the operator has switched revealing on.
alter table credentials add column sealed_key bytea;

create index tenants_by_age on tenants (created_at, id);
