/**
 * Reads all settings from the environment by one table, which also generates `docs/generated/config.md` and `postrider serve --help`.
 * Longer than other files, because the table is kept in one piece.
 */

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { availableParallelism, hostname, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { parseDnsUpdate } from './dns-update-target.ts'
import { type Network, networkFrom } from './ip-networks.ts'
import { issuerFrom, openIdProblem, roleValuesFrom } from './openid-settings.ts'

const roleNames = ['api', 'delivery', 'inbound', 'webhooks', 'housekeeping'] as const

/** The roles that may have processes of their own. */
export const hostedRoleNames = ['delivery', 'inbound', 'webhooks'] as const
export type HostedRole = (typeof hostedRoleNames)[number]

const gibioctet = 2 ** 30

/** A process costs 60 MiB or more; one that shares its core with all others gains no time for them. */
function rolesApart(): HostedRole[] {
  const cores = availableParallelism()
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  if (cores > 2 && memory > 2 * gibioctet) return [...hostedRoleNames]
  return cores === 2 && memory >= gibioctet ? ['delivery'] : []
}

interface Setting<T> {
  env: string
  /** As shown in the table; the actual default is the result of `read` for an absent variable. */
  default: string
  means: string
  read: (value: string | undefined) => T
}

export class ConfigError extends Error {}

const setting = <T>(env: string, shownDefault: string, means: string, read: (value: string | undefined) => T): Setting<T> => ({
  env,
  default: shownDefault,
  means,
  read: (value) => {
    try {
      return read(value === '' ? undefined : value)
    } catch (error) {
      throw new ConfigError(`${env}: ${(error as Error).message}`)
    }
  },
})

/** Whether the API of another vendor is served. */
const apiOf = (env: string, vendor: string) =>
  setting(env, '`on`', `serves the API of ${vendor}, for programs that were written for it: \`on\` or \`off\``, (v) => {
    if (v !== undefined && v !== 'on' && v !== 'off') throw new Error(`"${v}" is not on or off`)
    return v !== 'off'
  })

function port(value: string | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (!/^\d{1,5}$/.test(value) || Number(value) > 65535) throw new Error(`"${value}" is not a port`)
  return Number(value)
}

function count(value: string | undefined, fallback: number, minimum = 1): number {
  if (value === undefined) return fallback
  if (!/^\d{1,9}$/.test(value) || Number(value) < minimum) throw new Error(`"${value}" is not a whole number of at least ${minimum}`)
  return Number(value)
}

/** Percentage, with decimals; `off` means no limit. */
function percent(value: string | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (value.toLowerCase() === 'off') return Number.POSITIVE_INFINITY
  if (!/^\d{1,3}(\.\d{1,6})?$/.test(value) || Number(value) > 100) throw new Error(`"${value}" is not a percentage such as 0.3, or off`)
  return Number(value)
}

/** A number, or `unlimited` as null. */
function limit(value: string | undefined, fallback: number): number | null {
  if (value?.toLowerCase() === 'unlimited') return null
  return count(value, fallback)
}

function host(value: string | undefined, fallback: string): string {
  const name = (value ?? fallback).toLowerCase()
  if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(name) || name.length > 253) {
    if (value === undefined) return 'localhost'
    throw new Error(`"${value}" is not a host name`)
  }
  return name
}

function oneOf<const T extends string>(value: string | undefined, choices: readonly T[], fallback: T): T {
  const choice = choices.find((candidate) => candidate === (value ?? fallback))
  if (choice === undefined) throw new Error(`"${value}" is not one of ${choices.join(', ')}`)
  return choice
}

const list = (value: string | undefined) =>
  (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

function networks(value: string | undefined): Network[] {
  return list(value).map((item) => {
    const network = networkFrom(item)
    if (!network) throw new Error(`"${item}" is not a network in CIDR form such as 10.0.0.0/8`)
    return network
  })
}

/** `ip`, `ip:port` or `[ip6]:port`, in the form of node:dns. */
function resolvers(value: string | undefined): string[] {
  return list(value).map((item) => {
    const address = /^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(isIP(item) === 6 ? `[${item}]` : item)
    if (!address || !isIP(address[1] as string)) throw new Error(`"${item}" is not a resolver address such as 127.0.0.1:53`)
    return isIP(item) === 6 ? `[${item}]` : item
  })
}

/** An IPv6 question before the zone takes 64 octets, and a name has at most 253. */
const maxZoneOctets = 180
const maxZones = 20

function blocklistZones(value: string | undefined): string[] {
  const zones = list(value).map((item) => item.toLowerCase().replace(/\.$/, ''))
  const wrong = zones.find(
    (zone) => zone.length > maxZoneOctets || !/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/.test(zone),
  )
  if (wrong !== undefined) throw new Error(`"${wrong}" is not a DNS zone such as bl.example.org`)
  if (zones.length > maxZones) throw new Error(`has more than ${maxZones} zones`)
  return [...new Set(zones)]
}

export interface Relay {
  host: string
  port: number
  /** TLS from the first octet (smtps). */
  implicitTls: boolean
  auth: { user: string; password: string } | undefined
}

/** Parses `smtp[s]://[user:pass@]host:port`; throws an Error with the expected form. */
export function parseRelay(value: string): Relay {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === '') throw new Error('expected smtp[s]://[user:pass@]host:port')
  const implicitTls = url.protocol === 'smtps:'
  const auth = url.username === '' ? undefined : { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (implicitTls ? 465 : 587) : Number(url.port),
    implicitTls,
    auth,
  }
}

export interface TlsReporter {
  organisation: string
  /** An email address. */
  contact: string
}

/** The organisation and the contact address in a report (RFC 8460 section 4.4). */
function tlsReporter(value: string | undefined): TlsReporter | undefined {
  if (value === undefined || value === 'off') return undefined
  const [, organisation = '', contact = ''] =
    /^([^<>"\u0000-\u001f]{1,200}) <([\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253})>$/.exec(value) ?? []
  if (organisation.trim() === '') throw new Error(`"${value}" is not a name with an address, such as Example Ltd <tls@example.com>`)
  return { organisation: organisation.trim(), contact }
}

const machineName = host(undefined, hostname())

export const settings = {
  dataDirectory: setting('POSTRIDER_DATA', './data', 'data directory: embedded PostgreSQL, generated secrets', (v) =>
    resolve(v ?? './data'),
  ),
  databaseUrl: setting(
    'DATABASE_URL',
    'embedded',
    'URL of a PostgreSQL server (15 or later) to use instead of the embedded one; may list several hosts',
    (v) => v,
  ),
  databaseUrlFile: setting('DATABASE_URL_FILE', 'none', 'file that contains DATABASE_URL', (v) => v),
  host: setting('HOST', '127.0.0.1', 'address the HTTP server listens on', (v) => v ?? '127.0.0.1'),
  port: setting('PORT', '3025', 'port of the HTTP server: API `/v1`, reference `/docs`, `/healthz`, `/readyz`, `/metrics`', (v) =>
    port(v, 3025),
  ),
  publicUrl: setting('POSTRIDER_PUBLIC_URL', '`http://localhost:` + PORT', 'public base URL of the HTTP server, used in links', (v) => {
    if (v === undefined) return undefined
    const url = v
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw new Error(`"${url}" is not an http or https URL`)
    return url.replace(/\/+$/, '')
  }),
  hostname: setting(
    'POSTRIDER_HOSTNAME',
    "the machine's name",
    'public host name: EHLO name, fallback domain of Message-IDs, base of the return-path and SPF names',
    (v) => host(v, machineName),
  ),
  roles: setting('POSTRIDER_ROLES', 'all', `comma-separated roles: ${roleNames.join(', ')}`, (v) =>
    v === undefined || v === 'all' ? [...roleNames] : list(v).map((name) => oneOf(name, roleNames, 'api')),
  ),
  separateProcesses: setting(
    'POSTRIDER_SEPARATE_PROCESSES',
    'by the machine',
    `comma-separated roles with processes of their own: ${hostedRoleNames.join(', ')}, or \`none\`. Default: all; delivery with two cores or 2 GiB of memory; none with one core or less than 1 GiB`,
    (v) => (v === undefined ? rolesApart() : v === 'none' ? [] : list(v).map((name) => oneOf(name, hostedRoleNames, 'delivery'))),
  ),
  deliveryProcesses: setting(
    'POSTRIDER_DELIVERY_PROCESSES',
    'half the cores',
    'delivery processes of this instance; each has its own signing threads',
    (v) => count(v, Math.ceil(availableParallelism() / 2)),
  ),
  relay: setting(
    'POSTRIDER_RELAY',
    'none',
    '`smtp[s]://[user:pass@]host:port` of a relay for all live mail, instead of direct delivery to MX hosts',
    (value) => (value === undefined ? undefined : parseRelay(value)),
  ),
  resolvers: setting('POSTRIDER_DNS', 'system', 'comma-separated resolvers (`ip[:port]`) for all DNS lookups', resolvers),
  trustedResolvers: setting(
    'POSTRIDER_DNS_TRUSTED',
    'none',
    'comma-separated resolvers (`ip`) whose DNSSEC result is trusted for DANE, in addition to resolvers on this machine',
    resolvers,
  ),
  dnsUpdate: setting(
    'POSTRIDER_DNS_UPDATE',
    'none',
    'where Postrider writes the DNS records of its own names: `rfc2136://KEYNAME:SECRET@HOST[:PORT]/ZONE` or `exec:/path/to/program` (docs/dns-updates.md)',
    (v) => (v === undefined ? undefined : parseDnsUpdate(v)),
  ),
  dkimRotateDays: setting(
    'POSTRIDER_DKIM_ROTATE_DAYS',
    '180',
    'days after which new DKIM keys replace those of domains with CNAME selectors, at least 7, or `off` (docs/dkim-rotation.md)',
    (v) => (v?.toLowerCase() === 'off' ? undefined : count(v, 180, 7)),
  ),
  dkimRotateTxt: setting(
    'POSTRIDER_DKIM_ROTATE_TXT',
    'off',
    '`on` also prepares new keys for domains with TXT records, and uses them when their owner has published them',
    (v) => oneOf(v, ['on', 'off'], 'off') === 'on',
  ),
  blocklists: setting(
    'POSTRIDER_BLOCKLISTS',
    'none',
    'comma-separated DNS blocklists, at most 20, that Postrider asks once a day about its own addresses (docs/reputation.md)',
    blocklistZones,
  ),
  mxPort: setting('POSTRIDER_MX_PORT', '25', 'port for connections to MX hosts (for tests and labs)', (v) => port(v, 25)),
  mtaStsPort: setting('POSTRIDER_MTA_STS_PORT', '443', 'port for fetching MTA-STS policies (for tests and labs)', (v) => port(v, 443)),
  providerRules: setting(
    'POSTRIDER_PROVIDER_RULES',
    'none',
    'JSON file that extends or replaces the shipped provider rules (format: src/delivery/shaping/providers.json)',
    (v) => v,
  ),
  scenario: setting(
    'POSTRIDER_SIMULATOR_SCENARIO',
    'none',
    'JSON file that scripts the simulated hosts for test mail (docs/testing-your-email.md)',
    (v) => v,
  ),
  smtpHost: setting('POSTRIDER_SMTP_HOST', 'HOST', 'address the SMTP listeners listen on', (v) => v),
  smtpPort: setting(
    'POSTRIDER_SMTP_PORT',
    '2525',
    'port for incoming mail: bounces, complaints, reports, and mail for routes (public port 25)',
    (v) => port(v, 2525),
  ),
  submissionPort: setting('POSTRIDER_SUBMISSION_PORT', '2587', 'port for submission with STARTTLS (public port 587)', (v) => port(v, 2587)),
  submissionTlsPort: setting('POSTRIDER_SUBMISSION_TLS_PORT', '2465', 'port for submission with implicit TLS (public port 465)', (v) =>
    port(v, 2465),
  ),
  tlsCert: setting(
    'POSTRIDER_TLS_CERT',
    'self-signed',
    'PEM file with the certificate chain of the SMTP listeners; reloaded when it changes',
    (v) => v,
  ),
  tlsKey: setting('POSTRIDER_TLS_KEY', 'self-signed', 'PEM file with the private key of that certificate', (v) => v),
  https: setting(
    'POSTRIDER_HTTPS',
    'off',
    '`on` opens an HTTPS and an HTTP port and obtains the certificates of all names by ACME (docs/https.md)',
    (v) => oneOf(v, ['on', 'off'], 'off') === 'on',
  ),
  httpsHost: setting('POSTRIDER_HTTPS_HOST', 'all addresses', 'address of the HTTPS and HTTP ports', (v) => v),
  httpsPort: setting('POSTRIDER_HTTPS_PORT', '443', 'HTTPS port; requests to the public port 443 must lead to it', (v) => port(v, 443)),
  httpPort: setting(
    'POSTRIDER_HTTP_PORT',
    '80',
    'HTTP port for challenges and redirections; requests to the public port 80 must lead to it',
    (v) => port(v, 80),
  ),
  acmeDirectory: setting(
    'POSTRIDER_ACME_DIRECTORY',
    "Let's Encrypt",
    'directory URL of the certificate authority; with POSTRIDER_HTTPS=on you agree to its terms of service',
    (v) => {
      if (v === undefined) return 'https://acme-v02.api.letsencrypt.org/directory'
      if (!v.startsWith('https://') || !URL.canParse(v)) throw new Error(`"${v}" is not an https URL`)
      return v
    },
  ),
  acmeContact: setting('POSTRIDER_ACME_CONTACT', 'none', 'email address that the certificate authority may write to', (v) => {
    if (v !== undefined && !/^[^\s@,?]+@[^\s@,?]+$/.test(v)) throw new Error(`"${v}" is not an email address`)
    return v
  }),
  postmaster: setting(
    'POSTRIDER_POSTMASTER',
    'none',
    "address that receives mail for postmaster@ and abuse@ of this server's own names; if unset, the server refuses such mail",
    (v) => v,
  ),
  secret: setting(
    'POSTRIDER_SECRET',
    'generated',
    'secret that encrypts stored private keys and signs return paths; generated in the data directory (0600), required when DATABASE_URL is set',
    (v) => {
      if (v !== undefined && v.length < 16) throw new Error('must have at least 16 characters')
      return v
    },
  ),
  secretFile: setting('POSTRIDER_SECRET_FILE', 'none', 'file that contains POSTRIDER_SECRET', (v) => v),
  newSecret: setting(
    'POSTRIDER_SECRET_NEW',
    'none',
    'next secret, for `postrider secret rotate`; while both are set, the database may use either',
    (v) => {
      if (v !== undefined && v.length < 16) throw new Error('must have at least 16 characters')
      return v
    },
  ),
  newSecretFile: setting('POSTRIDER_SECRET_NEW_FILE', 'none', 'file that contains POSTRIDER_SECRET_NEW', (v) => v),
  sandboxSender: setting('POSTRIDER_SANDBOX_SENDER', '`sandbox@` + POSTRIDER_HOSTNAME', 'address of the sandbox sender', (v) =>
    v?.toLowerCase(),
  ),
  allowedNetworks: setting(
    'POSTRIDER_ALLOWED_NETWORKS',
    'none',
    'comma-separated networks in CIDR form that mail and webhooks may connect to although they are private, loopback or link-local',
    networks,
  ),
  feedbackId: setting(
    'POSTRIDER_FEEDBACK_ID',
    'off',
    'pattern of the header Feedback-ID, such as `{tag}:{domain}:{tenant}:Example`; at most four parts, the last a constant of 5 to 15 characters',
    (v) => {
      if (v === undefined || v === 'off') return undefined
      if (!/^(?:(?:[\w.-]{1,40}|\{(?:tag|tenant|domain)\}):){0,3}[A-Za-z0-9_-]{5,15}$/.test(v))
        throw new Error(`"${v}" is not a pattern of up to four parts, such as {tag}:{domain}:{tenant}:Example`)
      return v
    },
  ),
  tlsReports: setting(
    'POSTRIDER_TLS_REPORTS',
    'off',
    'name and contact address of the sender of TLS reports, such as `Example Ltd <tls@example.com>`; if set, Postrider sends them each day (docs/tls-reports.md)',
    tlsReporter,
  ),
  webhookSignatureHeader: setting(
    'POSTRIDER_WEBHOOK_SIGNATURE_HEADER',
    'X-Webhook-Signature',
    "name of the header with a webhook's RSA signature; with `-KID` appended, of the header with its key id",
    (v) => {
      if (v !== undefined && !/^[A-Za-z0-9-]{1,100}$/.test(v)) throw new Error(`"${v}" is not a header name`)
      return v ?? 'X-Webhook-Signature'
    },
  ),
  postalApi: apiOf('POSTRIDER_POSTAL_API', 'Postal'),
  resendApi: apiOf('POSTRIDER_RESEND_API', 'Resend'),
  sesApi: apiOf('POSTRIDER_SES_API', 'Amazon SES'),
  sendgridApi: apiOf('POSTRIDER_SENDGRID_API', 'SendGrid'),
  postmarkApi: apiOf('POSTRIDER_POSTMARK_API', 'Postmark'),
  mailgunApi: apiOf('POSTRIDER_MAILGUN_API', 'Mailgun'),
  rateLimit: setting('POSTRIDER_RATE_LIMIT', '10', 'requests per second per key, or `unlimited`', (v) => limit(v, 10)),
  sendLimit: setting('POSTRIDER_SEND_LIMIT', '100', 'emails per clock hour for the organisation, or `unlimited`', (v) => limit(v, 100)),
  autoPauseComplaintPercent: setting(
    'POSTRIDER_AUTO_PAUSE_COMPLAINT_PERCENT',
    '0.3',
    'complaints per 100 emails in 24 hours that pause a tenant automatically (warning at half), or `off`',
    (v) => percent(v, 0.3),
  ),
  autoPauseHardBouncePercent: setting(
    'POSTRIDER_AUTO_PAUSE_HARD_BOUNCE_PERCENT',
    '8',
    'emails to addresses that do not exist, per 100 emails in 24 hours, that pause a tenant automatically (warning at half), or `off`',
    (v) => percent(v, 8),
  ),
  autoPauseMinEmails: setting(
    'POSTRIDER_AUTO_PAUSE_MIN_EMAILS',
    '100',
    'minimum emails in 24 hours before a tenant can be paused automatically',
    (v) => count(v, 100),
  ),
  trustedProxies: setting(
    'POSTRIDER_TRUSTED_PROXIES',
    'none',
    'comma-separated networks of proxies whose forwarding headers are trusted',
    networks,
  ),
  metricsToken: setting(
    'POSTRIDER_METRICS_TOKEN',
    'none',
    'bearer token that `/metrics` requires; if unset, `/metrics` accepts only loopback connections without forwarding headers',
    (v) => v,
  ),
  oidcIssuer: setting(
    'POSTRIDER_OIDC_ISSUER',
    'none',
    'issuer URL of an identity provider (OpenID Connect), with which members of the organisation may sign in (docs/sign-in.md)',
    (v) => (v === undefined ? undefined : issuerFrom(v)),
  ),
  oidcClientId: setting('POSTRIDER_OIDC_CLIENT_ID', 'none', 'client id of Postrider at the identity provider', (v) => v),
  oidcClientSecret: setting('POSTRIDER_OIDC_CLIENT_SECRET', 'none', 'client secret of Postrider at the identity provider', (v) => v),
  oidcClientSecretFile: setting('POSTRIDER_OIDC_CLIENT_SECRET_FILE', 'none', 'file that contains POSTRIDER_OIDC_CLIENT_SECRET', (v) => v),
  oidcName: setting('POSTRIDER_OIDC_NAME', "the issuer's host name", 'name of the identity provider on the sign-in page', (v) => {
    if (v !== undefined && v.length > 60) throw new Error('must have at most 60 characters')
    return v
  }),
  oidcScope: setting('POSTRIDER_OIDC_SCOPE', '`openid email`', 'scopes that a sign-in asks for, separated by spaces', (v) =>
    (v ?? 'openid email').split(/\s+/).join(' ').trim(),
  ),
  oidcRoleClaim: setting(
    'POSTRIDER_OIDC_ROLE_CLAIM',
    'none',
    'claim whose values give the role of a member, such as `groups` or `realm_access.roles`; if unset, members keep the role that they have here',
    (v) => v,
  ),
  oidcRoles: setting(
    'POSTRIDER_OIDC_ROLES',
    'none',
    'comma-separated roles and values of that claim, such as `owner=mail-owners,admin=ops,viewer=staff`; a person without one is refused',
    (v) => roleValuesFrom(list(v)),
  ),
  passwordSignIn: setting(
    'POSTRIDER_PASSWORD_SIGN_IN',
    'on',
    '`off`: members of the organisation sign in with the identity provider only; members of tenants keep their passwords',
    (v) => oneOf(v, ['on', 'off'], 'on') === 'on',
  ),
  revealKeys: setting(
    'POSTRIDER_REVEAL_KEYS',
    'off',
    '`on` stores an encrypted copy of new keys, so that `reveal=true` can return them again',
    (v) => oneOf(v, ['on', 'off'], 'off') === 'on',
  ),
  keepContentDays: setting('POSTRIDER_KEEP_CONTENT_DAYS', '30', 'retention of email content, in days', (v) => count(v, 30)),
  keepEmailDays: setting('POSTRIDER_KEEP_EMAIL_DAYS', '90', 'retention of emails, their attempts and events, in days', (v) => count(v, 90)),
  keepLogDays: setting('POSTRIDER_KEEP_LOG_DAYS', '90', 'retention of request logs, in days', (v) => count(v, 90)),
  keepWebhookDays: setting('POSTRIDER_KEEP_WEBHOOK_DAYS', '30', 'retention of webhook deliveries, in days', (v) => count(v, 30)),
  keepReportDays: setting(
    'POSTRIDER_KEEP_REPORT_DAYS',
    '400',
    'retention of DMARC and TLS reports and of the figures of reputation, in days',
    (v) => count(v, 400),
  ),
  keepReceivedDays: setting('POSTRIDER_KEEP_RECEIVED_DAYS', '30', 'retention of received mail, in days', (v) => count(v, 30)),
  firstStart: setting('POSTRIDER_FIRST_START', 'print', '`quiet`: the first start creates no keys and prints no secrets', (v) =>
    oneOf(v, ['print', 'quiet'], 'print'),
  ),
  maxAttempts: setting(
    'POSTRIDER_MAX_ATTEMPTS',
    '30',
    'delivery attempts before an email fails permanently (30 attempts take about four days)',
    (v) => count(v, 30),
  ),
  retryBaseSeconds: setting(
    'POSTRIDER_RETRY_BASE_SECONDS',
    '300',
    'base of the retry delay in seconds: the delay after attempt n is 1.3^n times this, at most POSTRIDER_RETRY_MAX_SECONDS, ±10 %',
    (v) => count(v, 300),
  ),
  retryMaxSeconds: setting('POSTRIDER_RETRY_MAX_SECONDS', '21600', 'maximum retry delay in seconds', (v) => count(v, 21_600)),
  leaseMs: setting(
    'POSTRIDER_LEASE_MS',
    '8000',
    'milliseconds a delivery process owns its shards without renewal; mail of a dead process waits that long',
    (v) => count(v, 8000, 200),
  ),
  // Platforms set these variables for all their programs: invalid values are logged by traces.ts and do not stop mail.
  tracesBase: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'none',
    'base URL of an OpenTelemetry collector (OTLP over HTTP); traces go to `/v1/traces` below it (docs/tracing.md)',
    (v) => v,
  ),
  tracesUrl: setting('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'none', 'full URL for traces, instead of OTEL_EXPORTER_OTLP_ENDPOINT', (v) => v),
  tracesHeaders: setting(
    'OTEL_EXPORTER_OTLP_HEADERS',
    'none',
    'headers sent with traces: `name=value,name=value`, values percent-encoded',
    (v) => v,
  ),
  tracesSampler: setting(
    'OTEL_TRACES_SAMPLER',
    'parentbased_always_on',
    'trace sampler: `always_on`, `always_off` or `traceidratio`, each also with the prefix `parentbased_`',
    (v) => v ?? 'parentbased_always_on',
  ),
  tracesShare: setting('OTEL_TRACES_SAMPLER_ARG', '1', 'ratio of traces that a `traceidratio` sampler sends, from 0 to 1', (v) => v ?? '1'),
  tracesExporter: setting('OTEL_TRACES_EXPORTER', 'otlp', '`none` turns traces off', (v) => v ?? 'otlp'),
  tracesDisabled: setting('OTEL_SDK_DISABLED', 'false', '`true` turns traces off', (v) => v?.toLowerCase() === 'true'),
  logLevel: setting('POSTRIDER_LOG_LEVEL', 'info', '`debug`, `info`, `warn`, `error` or `silent`', (v) =>
    oneOf(v, ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  ),
  logFormat: setting('POSTRIDER_LOG_FORMAT', '`text` on a terminal, otherwise `json`', '`json` or `text`: form of the log lines', (v) =>
    v === undefined ? undefined : oneOf(v, ['json', 'text'], 'json'),
  ),
} as const

type Settings = { -readonly [Name in keyof typeof settings]: ReturnType<(typeof settings)[Name]['read']> }

export interface Config
  extends Omit<
    Settings,
    'databaseUrlFile' | 'secretFile' | 'newSecretFile' | 'oidcClientSecretFile' | 'sandboxSender' | 'publicUrl' | 'smtpHost'
  > {
  sandboxSender: string
  smtpHost: string
  publicUrl: string
}

function readSecretFile(env: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`${env}: ${(error as Error).message}`)
  }
}

/** Reads all settings; throws ConfigError with the variable's name and the problem. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const read = Object.fromEntries(
    Object.entries(settings).map(([name, one]) => [name, one.read(environment[one.env])]),
  ) as unknown as Settings
  const { databaseUrlFile, secretFile, newSecretFile, oidcClientSecretFile, ...rest } = read
  if (databaseUrlFile !== undefined) rest.databaseUrl = readSecretFile('DATABASE_URL_FILE', databaseUrlFile)
  if (secretFile !== undefined) rest.secret = readSecretFile('POSTRIDER_SECRET_FILE', secretFile)
  if (newSecretFile !== undefined) rest.newSecret = readSecretFile('POSTRIDER_SECRET_NEW_FILE', newSecretFile)
  if (oidcClientSecretFile !== undefined) rest.oidcClientSecret = readSecretFile('POSTRIDER_OIDC_CLIENT_SECRET_FILE', oidcClientSecretFile)
  const problem = openIdProblem(rest)
  if (problem !== undefined) throw new ConfigError(problem)
  if ((rest.tlsCert === undefined) !== (rest.tlsKey === undefined))
    throw new ConfigError('POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY: set both or neither')
  const config = {
    ...rest,
    smtpHost: rest.smtpHost ?? rest.host,
    sandboxSender: rest.sandboxSender ?? `sandbox@${rest.hostname}`,
    publicUrl: rest.publicUrl ?? `http://localhost:${rest.port}`,
  }
  refuseUnusableHttps(config)
  refuseUnusableReports(config)
  return config
}

const isPublicName = (name: string) => isIP(name.replace(/^\[|\]$/g, '')) === 0 && name.includes('.') && !/\.(localhost|local)$/.test(name)

/** Certificates need public host names. */
function refuseUnusableHttps({ https, publicUrl, hostname, roles, tlsCert }: Config): void {
  if (!https) return
  const { protocol, hostname: publicHost } = new URL(publicUrl)
  if (roles.includes('api') && (protocol !== 'https:' || !isPublicName(publicHost)))
    throw new ConfigError(
      `POSTRIDER_HTTPS=on needs a POSTRIDER_PUBLIC_URL with https and a public host name, such as https://mail.example.com: "${publicUrl}" is not one`,
    )
  if (roles.includes('inbound') && tlsCert === undefined && !isPublicName(hostname))
    throw new ConfigError(
      `POSTRIDER_HTTPS=on needs a public host name in POSTRIDER_HOSTNAME for the certificate of the SMTP listeners: "${hostname}" is not one. Set it, or POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY`,
    )
}

/** Reports are signed by the domain of the sandbox sender, which their receivers look up. */
function refuseUnusableReports({ tlsReports, sandboxSender }: Config): void {
  const domain = sandboxSender.slice(sandboxSender.lastIndexOf('@') + 1)
  if (tlsReports && !isPublicName(domain))
    throw new ConfigError(
      `POSTRIDER_TLS_REPORTS needs a public host name in POSTRIDER_HOSTNAME, whose key signs the reports: "${domain}" is not one`,
    )
}

export interface ShownSetting {
  name: string
  means: string
  default: string
  /** null: default. A secret setting is only reported as set. */
  value: string | null
}

/** Settings that are secrets, and those that may contain one: URLs, and blocklists with the key of a registered user. */
const secretSettings = new Set([
  'DATABASE_URL',
  'POSTRIDER_RELAY',
  'POSTRIDER_DNS_UPDATE',
  'POSTRIDER_BLOCKLISTS',
  'POSTRIDER_SECRET',
  'POSTRIDER_SECRET_NEW',
  'POSTRIDER_METRICS_TOKEN',
  'POSTRIDER_OIDC_CLIENT_SECRET',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
])

/** The settings in force, without secrets. */
export const shownSettings = (environment: Record<string, string | undefined>): ShownSetting[] =>
  Object.values(settings).map(({ env, default: usual, means }) => ({
    name: env,
    means,
    default: usual,
    value: environment[env] ? (secretSettings.has(env) ? 'set' : environment[env]) : null,
  }))

/** Variables with secrets. Every process of the same user can read another's initial environment, so child processes start without them. */
const isSecretSetting = (name: string) => secretSettings.has(name) || /^(POSTRIDER_KEY|PGPASSWORD|PGPASSFILE)$/.test(name)

type Environment = Record<string, string | undefined>

/** Returns a copy of the environment and removes the secrets from the original, so that child processes do not inherit them. */
export function takeEnvironment(environment: Environment): Environment {
  const taken = { ...environment }
  for (const name of Object.keys(taken)) if (secretSettings.has(name)) delete environment[name]
  return taken
}

/** The environment that a child process starts with, and the part it gets through a pipe. */
export function partedEnvironment(environment: Environment): { open: Environment; secret: Environment } {
  const parted = (isSecret: boolean) =>
    Object.fromEntries(Object.entries(environment).filter(([name]) => isSecretSetting(name) === isSecret))
  return { open: parted(false), secret: parted(true) }
}
