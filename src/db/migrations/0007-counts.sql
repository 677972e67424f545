-- Makes the tables of counts. The indexes of emails are made on the partitions as well, whose writers wait while that lasts: small in
-- an installation that has just begun, minutes in one with hundreds of millions of emails.

-- A held recipient that was let go keeps 'released' in held_because until its next attempt: its email is pending, whatever came before.

-- How many emails were accepted in a span of time (UTC), and in which state they are now. tenant_id '' is the sum of all tenants.
-- Quarters of an hour are what every time zone's days are made of; days are for speed; seconds for finding the page of a list, and are
-- forgotten where a quarter holds few.
create table email_counts (
  tenant_id text collate "C" not null,
  span text collate "C" not null check (span in ('second', 'quarter', 'day')),
  starts_at timestamptz not null,
  accepted bigint not null,
  test bigint not null,
  sent bigint not null,
  softfail bigint not null,
  hardfail bigint not null,
  bounced bigint not null,
  held bigint not null,
  primary key (tenant_id, span, starts_at)
) with (fillfactor = 70);
create index email_counts_seconds on email_counts (starts_at) where span = 'second';

-- The last event that the counts know of.
create table email_counts_position (
  single boolean primary key check (single),
  xact xid8 not null,
  id bigint not null
);
insert into email_counts_position (single, xact, id) values (true, '0', 0);

create index emails_by_recipient on emails (lower(recipient), id);
create index emails_by_sender on emails (sender, id);
create index emails_by_tag on emails (tag, id) where tag is not null;

create index tenants_by_name on tenants (name collate "C", id);
