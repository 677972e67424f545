-- Takes no lock on an existing table.

-- Module: mta-sts

-- The stage of the MTA-STS policy of the return-path name.
create table mta_sts_stage (
  only_one boolean primary key default true check (only_one),
  hostname text collate "C" not null, -- the MX host: another name begins again
  mode text check (mode in ('testing', 'enforce', 'none')), -- of the served policy; null: none is served
  mode_since timestamptz,
  listed text check (listed in ('testing', 'enforce', 'none')), -- the mode that the DNS record announces; null: no record
  leads_here boolean not null, -- the policy's host name leads to this installation, and may have a certificate
  certificate_ends_at timestamptz, -- of the mail port, when it was last seen valid
  good_since timestamptz, -- since then every conclusive probe found a valid certificate
  bad_since timestamptz, -- since then no probe did
  problem text,
  looked_at timestamptz not null,
  next_at timestamptz not null
);
