/** Reputation by sending domain, egress source and provider, blocklists, and changes since yesterday: an extra of Postrider. */

import Type, { type Static } from 'typebox'
import { rejectUnstorableText } from '#base'
import {
  type FindingKind,
  findingKinds,
  type Grouping,
  groupings,
  maxDays,
  type ReputationFinding,
  type ReputationSummary,
  type SourceState,
  summariseReputation,
} from '#reputation'
import { nullable, tenantParameter } from './common-schemas.ts'
import { route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const Day = Type.String({ format: 'date', description: 'UTC' })
const Count = (description?: string) => Type.Integer(description === undefined ? { minimum: 0 } : { minimum: 0, description })
const Rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, description })

const countFields = {
  accepted: Count('Attempts that a server accepted'),
  secured: Count('Accepted over TLS'),
  deferred: Count('Attempts refused for a time'),
  failed: Count('Attempts refused permanently'),
  blocked: Count('Attempts refused as spam or for reputation; neither deferred nor failed'),
  bounced: Count('Bounces that arrived later'),
  complained: Count('Complaints'),
}

const Dmarc = nullable(
  Type.Object(
    { messages: Count('Messages of authenticated DMARC reports'), aligned: Count('Those that pass DMARC') },
    { description: 'null: no reports; they have neither the provider nor test mail' },
  ),
)

const Name = (description: string) => nullable(Type.String({ description }))

const Finding = Type.Object({
  kind: Type.Unsafe<FindingKind>({ type: 'string', enum: findingKinds }),
  severity: Type.Unsafe<ReputationFinding['severity']>({ type: 'string', enum: ['warning', 'problem'] }),
  day: Day,
  tenantId: Name('null: of the whole installation'),
  domain: Name('Sending domain'),
  source: Name('Source address; empty: chosen by the operating system'),
  provider: Name('Mailbox provider'),
  blocklist: Name('DNS zone of the blocklist'),
  before: nullable(Rate('Share on the day before; null: without comparison')),
  now: nullable(Rate('Share now')),
  text: Type.String(),
})

const Source = Type.Object({
  address: Type.String(),
  pool: Name('null: the address of the host name, or the figures of a tenant'),
  warmUp: nullable(
    Type.Object(
      { day: Type.Integer({ minimum: 1 }), messagesPerDay: Type.Integer({ minimum: 0, description: 'To each provider' }) },
      { description: 'null: no warm-up, or a completed one' },
    ),
  ),
  blocklists: Type.Array(
    Type.Object({
      blocklist: Type.String({ description: 'DNS zone, without the key of a registered user' }),
      listed: Type.Boolean(),
      codes: Type.Array(Type.String(), { description: 'Of the listing, in 127.0.0.0/8' }),
      since: Type.String({ format: 'date-time' }),
      checkedAt: nullable(Type.String({ format: 'date-time', description: 'null: not checked yet' })),
      problem: Name('Why the list is ignored or did not answer'),
    }),
    { description: 'Those of POSTRIDER_BLOCKLISTS' },
  ),
})

const filterOf = (description: string) => Type.Optional(Type.String({ maxLength: 253, description }))

export const retrieveReputation = route({
  method: 'GET',
  path: '/reputation',
  name: 'reputation.retrieve',
  summary: 'Get the reputation of the mail: outcomes by domain, source or provider, blocklists, and changes since yesterday',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'both',
  query: query({
    tenantId: tenantParameter,
    days: Type.Integer({ minimum: 1, maximum: maxDays, default: 7, description: 'Whole days (UTC) up to today' }),
    groupBy: Type.Unsafe<Grouping>({ type: 'string', enum: groupings, default: 'domain' }),
    domain: filterOf('Only mail from this sending domain'),
    source: filterOf('Only mail from this source address'),
    provider: filterOf('Only mail to this mailbox provider'),
    test: Type.Boolean({ default: false, description: 'true: only simulated mail; false: only live mail' }),
  }),
  data: Type.Object({
    from: Day,
    to: Day,
    groupBy: Type.Unsafe<Grouping>({ type: 'string', enum: groupings }),
    totals: Type.Object({ ...countFields, dmarc: Dmarc }),
    groups: Type.Array(
      Type.Object({
        name: Type.String({ description: 'Empty: a source chosen by the operating system, or an unknown provider' }),
        ...countFields,
        dmarc: Dmarc,
      }),
      { description: 'The largest 200' },
    ),
    moreGroups: Count(),
    days: Type.Array(Type.Object({ day: Day, ...countFields }), { description: 'Days without figures are absent' }),
    sources: Type.Array(Source, { description: 'For a tenant: those that sent its mail in the period' }),
    findings: Type.Array(Finding, { description: 'Changes since yesterday of live mail, without regard to the filters; at most 100' }),
  }),
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ query: { domain, source, provider, groupBy, days, test }, tenantId }, { db, clock }) => {
    for (const [field, text] of Object.entries({ domain, source, provider })) if (text !== undefined) rejectUnstorableText(field, text)
    const question = { tenantId, days, groupBy, test, domain: domain?.toLowerCase(), source, provider }
    return { groupBy, ...reputationToWire(await summariseReputation(db, question, clock.nowMs())) }
  },
})

const reputationToWire = ({ findings, sources, ...found }: ReputationSummary) => ({
  ...found,
  sources: sources.map(sourceToWire),
  findings: findings.map(({ zone, ...one }): Static<typeof Finding> => ({ ...one, blocklist: zone })),
})

const sourceToWire = ({ blocklists, ...source }: SourceState): Static<typeof Source> => ({
  ...source,
  blocklists: blocklists.map(({ zone, since, checkedAt, ...one }) => ({
    ...one,
    blocklist: zone,
    since: since.toISOString(),
    checkedAt: checkedAt?.toISOString() ?? null,
  })),
})
