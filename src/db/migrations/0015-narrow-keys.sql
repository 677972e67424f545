-- Takes short locks on credentials and spool: columns without defaults. Programs of the version before do not know the bounds of a key.

-- Module: credentials

alter table credentials add column allowed_from text[]; -- sending domains and addresses, in lower case; null: all of the tenant
alter table credentials add column allowed_networks text[]; -- in CIDR form; null: all
alter table credentials add column expires_at timestamptz; -- null: never
alter table credentials add column key_end text; -- the last four characters; null: a version before made or took over the key

-- Module: spool

-- The key whose own send limit the email counts against; null: the key has none.
alter table spool add column limited_key bigint;
