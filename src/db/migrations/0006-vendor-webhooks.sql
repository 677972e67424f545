-- Takes a short lock on webhooks. Programs of the version before send webhooks of the new formats in Postrider's own form.

-- Module: webhooks

alter table webhooks
  drop constraint webhooks_format_check,
  add constraint webhooks_format_check
    check (format in ('postrider', 'postal', 'resend', 'postmark', 'ses', 'sendgrid', 'mailgun'));
