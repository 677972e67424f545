-- Makes the table of opens and clicks; locks nothing that is there.

-- One load of an open pixel or one use of a tracked link; lies in the partition of its email. id: made when it came, so that writing it
-- twice keeps one. url is empty for opens. source: whether a person or a program did it, as far as can be told; reason: why so.
create table hits (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  at timestamptz not null,
  id text collate "C" not null,
  kind text not null check (kind in ('open', 'click')),
  url text not null,
  ip_address text not null,
  user_agent text not null,
  source text not null check (source in ('human', 'machine', 'unknown')),
  reason text not null,
  primary key (tenant_id, email_id, at, id)
) partition by range (email_id);
