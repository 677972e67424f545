-- Takes a short exclusive lock on emails. Housekeeping builds the index of the existing partitions; until then, and for programs of the version
-- before, a search by tag reads their rows.

-- Module: emails

-- An index entry has at most 2,704 octets, and a tag of 1,000 characters up to 4,000.
drop index emails_by_tag;
create index emails_by_tag on only emails (tag, id) where octet_length(tag) <= 2000;
