-- Makes a table; locks domains for a moment, because the new table refers to it.

-- Host names below a sending domain under which opens and clicks are counted; gone with their sending domain.
create table track_domains (
  tenant_id text collate "C" not null,
  id bigint generated always as identity,
  domain_id bigint not null,
  name text not null,
  full_name text not null,
  track_clicks boolean not null,
  track_opens boolean not null,
  ssl_enabled boolean not null,
  excluded_click_domains text,
  dns_status text check (dns_status in ('ok', 'missing', 'invalid')),
  dns_error text,
  dns_checked_at timestamptz,
  next_check_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, domain_id) references domains (tenant_id, id) on delete cascade
);
create unique index track_domains_by_full_name on track_domains (full_name);
create index track_domains_by_id on track_domains (id);
create index track_domains_of_domain on track_domains (tenant_id, domain_id);
create index track_domains_due on track_domains (next_check_at) where next_check_at is not null;
