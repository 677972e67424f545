/**
 * The modules, lowest first: the only list that states direction. A module may use the modules before it in this list, never
 * those after it. Changing the list needs a decision record (docs/decisions/).
 */
export const modules = `base mail dkim net smtp bounces simulator db tenants members openid credentials limits
  domains events suppressions emails spool request-logs tracking templates certificates accept delivery returns domain-reports tls-reports received-mail message-checks
  webhooks
  usage reputation privacy housekeeping installation crash-test mta-sts dns-updates doctor vendors postal resend sendgrid postmark ses mailgun imports agents inbound http cli`.split(
  /\s+/,
)

/** RFCs as code: no tables, no tenants, no environment. */
export const libraries = ['mail', 'dkim', 'net', 'smtp', 'bounces', 'simulator']

/** Translate and decide nothing; only main.ts and main/ may open them, and they do not know each other. */
export const entryPoints = ['inbound', 'http', 'cli']

/** The two hot commits, which alone may write tables of several modules. */
export const commonCommits = ['src/accept/commit.ts', 'src/delivery/record-outcomes.ts']
