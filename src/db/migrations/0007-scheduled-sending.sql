-- Takes short locks on emails and spool; blocks writes to spool while it reads it once, for an index that is empty at first. Programs of the
-- version before leave scheduled emails alone, and one of this version sends them.

-- Module: emails

-- When a scheduled email is to leave, for test mail by the tenant's test clock; null: not scheduled.
alter table emails add column scheduled_at timestamptz;
alter table emails add column cancelled_at timestamptz; -- before its scheduled time; null: not cancelled

-- Module: spool

-- Another state: scheduled (until scheduled_at). The time is real and stays afterwards.
alter table spool add column scheduled_at timestamptz;
create index spool_scheduled on spool (scheduled_at) where state = 'scheduled';
