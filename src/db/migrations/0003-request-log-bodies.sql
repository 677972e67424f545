-- Takes a short lock on request_logs: two columns without defaults.

-- Module: request-logs

-- Bodies of several entries of one tenant and day, compressed and sealed together.
create table request_log_bodies (
  tenant_id text collate "C" not null,
  at timestamptz not null, -- of the first entry
  id text collate "C" not null, -- made of the request ids of the first and the last entry
  bodies bytea not null, -- sealed; ciphertext does not compress
  primary key (tenant_id, at, id)
) partition by range (at);
alter table request_log_bodies alter column bodies set storage external;

-- Where the bodies of an entry are; null: in its own column, if it has any.
alter table request_logs add column shared_at timestamptz;
alter table request_logs add column shared_id text collate "C";
alter table request_logs add column shared_nth integer; -- from 0
