-- Takes a short exclusive lock on certificates.

alter table certificates add column tenant_id text collate "C"; -- that used the name at its last order; null: the installation itself
