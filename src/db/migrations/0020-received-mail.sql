-- Takes a short lock on domains, for the foreign key of a table that is empty at first.

-- Module: received-mail

-- Addresses of sending domains at which tenants receive mail. All routes of a domain name belong to one tenant.
create table mail_routes (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  domain_id bigint not null,
  domain text collate "C" not null, -- its name: A-labels
  local text collate "C" not null, -- lower case; * stands for any text
  forward_to text, -- null: not forwarded
  enabled boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, domain, local),
  foreign key (tenant_id, domain_id) references domains on delete cascade
);
create index mail_routes_by_domain on mail_routes (domain);
create index mail_routes_by_domain_id on mail_routes (tenant_id, domain_id);

-- Messages that routes received, one row for each tenant and message.
create table received_messages (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  key bytea not null, -- hash of envelope and octets: the sender repeats a message if the reply was lost
  sender text not null, -- of the envelope; '': the null reverse-path
  recipients jsonb not null, -- address and route of each
  client text not null, -- IP address
  size_octets bigint not null,
  facts jsonb not null, -- bounded parts of the header, attachments, checks
  text_body text,
  html_body text,
  reply_to_email text collate "C", -- the email of the tenant that it replies to
  raw bytea not null,
  forwarded jsonb not null default '[]', -- address and email of each accepted copy
  received_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, key)
);
create index received_messages_of_day on received_messages (tenant_id, received_at) include (size_octets);
create index received_messages_by_time on received_messages (received_at);

-- Deleted tenants whose received messages housekeeping is still to delete.
create table received_erasures (
  tenant_id text collate "C" primary key
);
