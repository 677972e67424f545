-- Locks members, which are few, for a moment, and rebuilds its indexes; makes two tables.

-- One address may be a member of several tenants, each with a password of its own; an owner of one learns nothing of the others.
alter table members
  drop constraint members_pkey,
  drop constraint members_id_key,
  add primary key (id),
  add unique nulls not distinct (address, tenant_id);

-- Secrets that a process knows besides the one it was given: `fingerprint` is sealed under `opened_by`. Empty until the first rotation.
create table secrets (
  opened_by text collate "C" not null,
  fingerprint text collate "C" not null,
  sealed bytea not null,
  primary key (opened_by, fingerprint)
);

-- The last rotation, if there was one. announced: every process learns the new secret; sealing: all seal with it, and what is there is
-- sealed anew; done.
create table secret_rotation (
  only_one boolean primary key default true check (only_one),
  old_fingerprint text not null,
  new_fingerprint text not null,
  step text not null check (step in ('announced', 'sealing', 'done')),
  began_at timestamptz not null
);
