/** DMARC and TLS reports about a sending domain: an extra of Postrider. */

import Type, { type Static, type TProperties } from 'typebox'
import { listSources } from '#delivery'
import {
  type DmarcSummary,
  openReportAddresses,
  type ReportRecords,
  reportRecords,
  type SourceKind,
  summariseDmarc,
  summariseTls,
} from '#domain-reports'
import { type DmarcPolicy, type DomainView, dmarcPolicies, returnPathDomainOf } from '#domains'
import { nullable, tenantParameter } from './common-schemas.ts'
import { type ApiDeps, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const reads = {
  permission: 'domains:manage',
  scope: 'organisation or tenant',
  families: 'both',
  query: query({
    tenantId: tenantParameter,
    days: Type.Integer({ minimum: 1, maximum: 400, default: 30, description: 'Whole days (UTC) up to today' }),
  }),
  refuses: ['not_found', 'tenant_mismatch'],
} as const

const Day = Type.String({ format: 'date', description: 'UTC' })
const Count = (description?: string) => Type.Integer(description === undefined ? { minimum: 0 } : { minimum: 0, description })

const countFields = {
  messages: Count(),
  aligned: Count('Messages that pass DMARC: aligned by DKIM, SPF or both'),
  dkimAligned: Count(),
  spfAligned: Count(),
  quarantined: Count(),
  rejected: Count(),
  unauthenticated: Count('Messages of reports without a valid DKIM signature of their sender, which anyone can have written'),
}

const Suggested = Type.Object({
  type: Type.Literal('TXT'),
  fullName: Type.String(),
  value: Type.String({ description: 'Value to publish' }),
})

const addressFields = {
  address: Type.String({ description: 'Receives the DMARC and TLS reports of this domain' }),
}

const Policy = Type.Unsafe<DmarcPolicy>({ type: 'string', enum: [...dmarcPolicies] })

const DmarcObject = Type.Object({
  ...addressFields,
  record: Type.Object(Suggested.properties, { description: 'The DMARC record of the domain with the report address' }),
  authorisation: Type.Object(Suggested.properties, { description: 'Published once by the operator: postrider dns lists it' }),
  from: Day,
  totals: Type.Object(countFields),
  days: Type.Array(Type.Object({ day: Day, ...countFields })),
  sources: Type.Array(
    Type.Object({
      source: Type.String({ description: 'IP address; empty: further sources, counted together' }),
      kind: Type.Unsafe<SourceKind>({
        type: 'string',
        enum: ['own', 'signed', 'other'],
        description: 'own: an address of this installation; signed: mail with the key of the domain from elsewhere, such as a forwarder',
      }),
      headerFrom: Type.String(),
      ...countFields,
      activeDays: Count('Days with at least one message'),
      lastDay: Day,
      signers: Type.Array(Type.String(), { description: 'Keys whose signatures passed; at most 5' }),
      spfDomains: Type.Array(Type.String(), { description: 'Domains whose SPF check passed; at most 5' }),
    }),
    { description: 'The largest 200' },
  ),
  moreSources: Count(),
  reporters: Type.Array(
    Type.Object({
      reporter: Type.String({ description: 'As the report names itself' }),
      sender: Type.String({ description: 'Domain of the mail' }),
      authenticated: Type.Boolean({ description: 'true: the mail had a valid DKIM signature of its sender' }),
      reports: Count(),
      messages: Count(),
      lastReceivedAt: Type.String({ format: 'date-time' }),
    }),
  ),
  advice: Type.Object({
    policy: nullable(Policy),
    next: nullable(Policy),
    ready: Type.Boolean({ description: 'true: all evidence for next is met' }),
    text: Type.String(),
    evidence: Type.Array(Type.Object({ met: Type.Boolean(), text: Type.String() })),
  }),
})

const sessionFields = {
  successful: Count(),
  failed: Count(),
  unauthenticated: Count('Sessions of reports without a valid DKIM signature of their sender'),
} satisfies TProperties

const TlsObject = Type.Object({
  ...addressFields,
  record: Type.Object(Suggested.properties, { description: 'The record that asks for TLS reports' }),
  from: Day,
  totals: Type.Object(sessionFields),
  days: Type.Array(Type.Object({ day: Day, ...sessionFields })),
  reporters: Type.Array(
    Type.Object({
      reporter: Type.String({ description: 'As the report names itself; empty: further reporters, counted together' }),
      policyType: Type.String({ description: 'sts, tlsa, no-policy-found, or other: any other text' }),
      ...sessionFields,
      lastDay: Day,
    }),
  ),
  failures: Type.Array(
    Type.Object({
      result: Type.String({ description: 'RFC 8460 section 4.3, such as certificate-expired' }),
      receivingMx: Type.String(),
      failed: Count('Sessions'),
      reason: Type.String(),
      lastDay: Day,
    }),
  ),
})

export const retrieveDmarc = route({
  method: 'GET',
  path: '/domains/{domainId}/dmarc',
  name: 'domains.retrieveDmarc',
  summary: 'Get the DMARC reports about a sending domain: sources, alignment, advice',
  ...reads,
  data: DmarcObject,
  handle: async ({ params, tenantId, query: { days } }, deps) => {
    const domain = await deps.shownDomains.get(params.domainId, tenantId)
    const ownAddresses = await addressesOf(deps)
    const published = publishedOf(domain)
    const found = await summariseDmarc(deps.db, { domain, published, ownAddresses, days, nowMs: deps.clock.nowMs() })
    return dmarcToWire(found, recordsFor(domain, deps))
  },
})

export const retrieveTlsReports = route({
  method: 'GET',
  path: '/domains/{domainId}/tls-reports',
  name: 'domains.retrieveTlsReports',
  summary: 'Get the TLS reports about mail to a sending domain',
  ...reads,
  data: TlsObject,
  handle: async ({ params, tenantId, query: { days } }, deps) => {
    const domain = await deps.shownDomains.get(params.domainId, tenantId)
    const { address, tls } = recordsFor(domain, deps)
    return { address, record: tls, ...(await summariseTls(deps.db, { domain, days, nowMs: deps.clock.nowMs() })) }
  },
})

/** The DMARC record that the last check found. */
const publishedOf = ({ dnsRecords: { dmarc } }: DomainView): string | undefined => (dmarc.found.length === 1 ? dmarc.found[0] : undefined)

function recordsFor(domain: DomainView, { secrets, config: { hostname } }: Pick<ApiDeps, 'secrets' | 'config'>): ReportRecords {
  const addresses = openReportAddresses(secrets, returnPathDomainOf(hostname.toLowerCase()))
  return reportRecords(domain, publishedOf(domain), { addresses, hostname })
}

/** The egress sources, and the addresses of the host name. A failed lookup leaves them out. */
async function addressesOf({ db, resolver, config }: Pick<ApiDeps, 'db' | 'resolver' | 'config'>): Promise<string[]> {
  const [sources, named] = await Promise.all([listSources(db), resolver.addresses(config.hostname)])
  return [...sources.map(({ address }) => address), ...(named.kind === 'found' ? named.value : [])]
}

const dmarcToWire = (found: DmarcSummary, { address, dmarc, authorisation }: ReportRecords): Static<typeof DmarcObject> => ({
  address,
  record: dmarc,
  authorisation,
  ...found,
  sources: found.sources.map(({ days: activeDays, ...one }) => ({ ...one, activeDays })),
  reporters: found.reporters.map((one) => ({ ...one, lastReceivedAt: one.lastReceivedAt.toISOString() })),
})
