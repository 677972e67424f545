-- Takes short locks on credentials and suppressions; blocks writes to emails while it reads their partitions once, for a small index.

-- Module: credentials

alter table credentials add column imported_from text; -- the program that made the key, such as 'postal'; null: Postrider

-- Module: suppressions

alter table suppressions add column keep_until timestamptz; -- housekeeping deletes the entry then; null: never
create index suppressions_ending on suppressions (keep_until) where keep_until is not null;

-- Module: emails

-- Numbers grow with the rows' positions, so that ranges of pages find one, and a new email costs nothing.
create index emails_by_number on emails using brin (number) with (pages_per_range = 32, autosummarize = on);

-- Module: domains

-- The RSA key and the selector were brought along; the Ed25519 key then signs only after its own record was found.
alter table domains add column own_key boolean not null default false;

-- Module: webhooks

alter table webhooks add column format text not null default 'postrider' check (format in ('postrider', 'postal')); -- of bodies and signatures
