-- Adds nullable columns to webhooks: a short exclusive lock, no rewrite.

-- Since when a webhook is disabled, and why: 'gone' (its receiver answered 410) or 'asked' (by a request). null: it is enabled, or was
-- disabled before this was kept.
alter table webhooks
  add column disabled_at timestamptz,
  add column disabled_because text;
