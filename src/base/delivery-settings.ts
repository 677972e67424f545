/** Settings of delivery: the relay, DNS resolvers, permitted networks, destination ports, provider rules, retries and leases. */
import { isIP } from 'node:net'
import { countFrom, itemsFrom, networksFrom, portFrom, setting } from './setting.ts'

/** `ip`, `ip:port` or `[ip6]:port`, in the form of node:dns. */
function resolvers(value: string | undefined): string[] {
  return itemsFrom(value).map((item) => {
    const address = /^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(isIP(item) === 6 ? `[${item}]` : item)
    if (!address || !isIP(address[1] as string)) throw new Error(`"${item}" is not a resolver address such as 127.0.0.1:53`)
    return isIP(item) === 6 ? `[${item}]` : item
  })
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

export const deliverySettings = {
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
  allowedNetworks: setting(
    'POSTRIDER_ALLOWED_NETWORKS',
    'none',
    'comma-separated networks in CIDR form that mail and webhooks may connect to although they are private, loopback or link-local',
    networksFrom,
  ),
  mxPort: setting('POSTRIDER_MX_PORT', '25', 'port for connections to MX hosts (for tests and labs)', (v) => portFrom(v, 25)),
  mtaStsPort: setting('POSTRIDER_MTA_STS_PORT', '443', 'port for fetching MTA-STS policies (for tests and labs)', (v) => portFrom(v, 443)),
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
  maxAttempts: setting(
    'POSTRIDER_MAX_ATTEMPTS',
    '30',
    'delivery attempts before an email fails permanently (30 attempts take about four days)',
    (v) => countFrom(v, 30),
  ),
  retryBaseSeconds: setting(
    'POSTRIDER_RETRY_BASE_SECONDS',
    '300',
    'base of the retry delay in seconds: the delay after attempt n is 1.3^n times this, at most POSTRIDER_RETRY_MAX_SECONDS, ±10%',
    (v) => countFrom(v, 300),
  ),
  retryMaxSeconds: setting('POSTRIDER_RETRY_MAX_SECONDS', '21600', 'maximum retry delay in seconds', (v) => countFrom(v, 21_600)),
  leaseMs: setting(
    'POSTRIDER_LEASE_MS',
    '8000',
    'milliseconds a delivery process owns its shards without renewal; mail of a dead process waits that long',
    (v) => countFrom(v, 8000, 200),
  ),
} as const
