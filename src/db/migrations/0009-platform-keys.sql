-- Makes a small table; locks nothing that is there.

-- The DKIM key of a domain of the platform's own: that of the sandbox sender. rsa_private: sealed.
create table platform_keys (
  name text collate "C" primary key,
  selector text not null,
  rsa_private bytea not null,
  rsa_public text not null,
  created_at timestamptz not null
);
