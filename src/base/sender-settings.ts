/** Settings of the operator as a sender: its DNS records, DKIM keys and reputation, its own addresses, and the reports that it sends. */
import { parseDnsUpdate } from './dns-update-target.ts'
import { choiceFrom, countFrom, itemsFrom, setting } from './setting.ts'

/** An IPv6 question before the zone takes 64 octets, and a name has at most 253. */
const maxZoneOctets = 180
const maxZones = 20

function blocklistZones(value: string | undefined): string[] {
  const zones = itemsFrom(value).map((item) => item.toLowerCase().replace(/\.$/, ''))
  const wrong = zones.find(
    (zone) => zone.length > maxZoneOctets || !/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/.test(zone),
  )
  if (wrong !== undefined) throw new Error(`"${wrong}" is not a DNS zone such as bl.example.org`)
  if (zones.length > maxZones) throw new Error(`has more than ${maxZones} zones`)
  return [...new Set(zones)]
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

export const senderSettings = {
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
    (v) => (v?.toLowerCase() === 'off' ? undefined : countFrom(v, 180, 7)),
  ),
  dkimRotateTxt: setting(
    'POSTRIDER_DKIM_ROTATE_TXT',
    'off',
    '`on` also prepares new keys for domains with TXT records, and uses them when their owner has published them',
    (v) => choiceFrom(v, ['on', 'off'], 'off') === 'on',
  ),
  blocklists: setting(
    'POSTRIDER_BLOCKLISTS',
    'none',
    'comma-separated DNS blocklists, at most 20, that Postrider asks once a day about its own addresses (docs/reputation.md)',
    blocklistZones,
  ),
  postmaster: setting(
    'POSTRIDER_POSTMASTER',
    'none',
    "address that receives mail for postmaster@ and abuse@ of this server's own names; if unset, the server refuses such mail",
    (v) => v,
  ),
  sandboxSender: setting('POSTRIDER_SANDBOX_SENDER', '`sandbox@` + POSTRIDER_HOSTNAME', 'address of the sandbox sender', (v) =>
    v?.toLowerCase(),
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
} as const
