-- Makes the table of request logs; locks nothing that is there.

-- One authenticated API request. tenant_id '' is the organisation. details: {rateLimit, context, error, email, sdk} as the API shows
-- them. nth: orders what one process noted in the same millisecond. bodies: sealed, what is kept of the request's and the response's body; the sizes are those of the real ones.
create table request_logs (
  tenant_id text collate "C" not null,
  at timestamptz not null,
  request_id text collate "C" not null,
  nth integer not null,
  method text not null,
  path text not null,
  endpoint text collate "C" not null,
  status_code smallint not null,
  duration_ms integer not null,
  credential_id bigint not null,
  key_prefix text not null,
  details jsonb not null,
  request_octets bigint,
  response_octets bigint,
  bodies bytea,
  primary key (tenant_id, at, request_id)
) partition by range (at);
-- Ciphertext does not compress.
alter table request_logs alter column bodies set storage external;
create index request_logs_by_time on request_logs (at, request_id);
create index request_logs_by_id on request_logs (request_id);
-- Few are errors, and those are looked for; other filters read along by time, because every index costs every request.
create index request_logs_errors on request_logs (at, request_id) where status_code >= 400;
