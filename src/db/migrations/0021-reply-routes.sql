-- Takes a short lock on mail_routes: a column with a constant default, without a rewrite.

-- Module: received-mail

-- The * of the address stands only for signed names of emails: replies to them.
alter table mail_routes add column replies boolean not null default false;
