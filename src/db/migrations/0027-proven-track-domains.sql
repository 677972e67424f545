-- Takes a short exclusive lock on track_domains.

-- First check that found the name to lead here while its sending domain was verified; its HTTPS then lasts as long as it leads here.
alter table track_domains add column proven_at timestamptz;

-- These had HTTPS until now.
update track_domains
set proven_at = coalesce(dns_checked_at, created_at)
where dns_status = 'ok'
  or exists (select from domains where domains.tenant_id = track_domains.tenant_id and domains.id = track_domains.domain_id and verified)
  or exists (select from certificates where certificates.name = track_domains.full_name and chain is not null);

-- Earlier, checks ended after seven days.
update track_domains
set next_check_at = coalesce(dns_checked_at, created_at)
where next_check_at is null;
