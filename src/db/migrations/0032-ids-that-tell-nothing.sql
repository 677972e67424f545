-- Gives domains, track domains, webhooks and credentials ids that the program draws, instead of one sequence for all tenants, and
-- replaces two indexes by unique ones. Locks these small tables for a moment. Ids that are there stay. Makes an index of suppressions, for
-- the list of all tenants; whoever suppresses waits meanwhile.
alter table domains alter column id drop identity;
alter table track_domains alter column id drop identity;
alter table webhooks alter column id drop identity;
alter table credentials alter column id drop identity;

drop index domains_by_id;
create unique index domains_by_id on domains (id);
drop index track_domains_by_id;
create unique index track_domains_by_id on track_domains (id);

create index suppressions_in_order on suppressions (id);
