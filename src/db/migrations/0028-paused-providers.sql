-- Replaces a check of queue_stops, which is small: a short exclusive lock.

-- A provider (tenant_id '') is not sent to: its mail stays queued, whatever the recipients' domains.
alter table queue_stops drop constraint queue_stops_kind_check;
alter table queue_stops add check (kind in ('destination', 'provider', 'domain'));
