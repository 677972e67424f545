-- Takes no lock on other tables. Programs of the version before show deleted test mail in the inbox.

-- Module: emails

-- Single emails that were deleted from a tenant's test inbox. Rows older than the inbox keeps mail are removed by the next deletion.
create table test_inbox_deletions (
  tenant_id text collate "C" not null,
  email_id text collate "C" not null,
  primary key (tenant_id, email_id)
);
