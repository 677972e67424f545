/** Tools that answer questions about domains and their reports, transports and tenants. */
import Type from 'typebox'
import { Limit, TenantId, usualLimit } from './email-tools.ts'
import { type Fields, facts, fieldsOf, listOf, question, type Tool } from './tool.ts'

const listDomains = question({
  name: 'list_domains',
  title: 'List sending domains',
  description: 'Sending domains with their ids, and whether each is verified.',
  input: Type.Object({ tenantId: TenantId }),
  async read({ tenantId }, { caller }) {
    const domains = listOf(fieldsOf((await caller.call('domains.list', { query: { tenantId } })).data).domains)
    return {
      domains: domains.slice(0, maxDomains).map((one) => facts(one, ['id', 'name', 'verified', 'tenantId', 'createdAt'])),
      total: domains.length,
    }
  },
})

const maxDomains = 100
const DomainId = Type.Integer({ minimum: 1, description: 'Id of the domain, from list_domains' })
const recordNames = ['spf', 'dkim', 'returnPath', 'dkimEd25519', 'dmarc', 'mx'] as const

const showDomain = question({
  name: 'show_domain',
  title: 'Show the DNS records of a domain',
  description: 'The DNS records that a sending domain needs, the values that the last check found, and what is missing.',
  input: Type.Object({ domainId: DomainId }),
  async read({ domainId }, { caller, quote }) {
    const found = fieldsOf((await caller.call('domains.retrieve', { params: { domainId: String(domainId) } })).data)
    const records = fieldsOf(found.dnsRecords)
    return {
      ...facts(found, ['id', 'name', 'tenantId', 'verified', 'trusted', 'verifiedAt', 'dnsCheckedAt']),
      records: recordNames.map((purpose) => {
        const record = fieldsOf(records[purpose])
        return {
          purpose,
          ...facts(record, ['type', 'status']),
          untrusted: {
            name: quote.text(record.fullName ?? record.name),
            value: quote.text(record.value, 600),
            found: quote.list(record.found),
            problem: quote.text(record.problem),
            suggestion: quote.text(record.suggestion),
          },
        }
      }),
    }
  },
})

const countNames = ['messages', 'aligned', 'dkimAligned', 'spfAligned', 'quarantined', 'rejected', 'unauthenticated']
const maxSources = 10

const dmarcSummary = question({
  name: 'dmarc_summary',
  title: 'Summarise the DMARC reports of a domain',
  description: 'Counts of the DMARC reports about a sending domain, its largest sources, and whether a stricter policy is ready.',
  input: Type.Object({
    domainId: DomainId,
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: 400, description: 'Default 30' })),
  }),
  async read({ domainId, days }, { caller, quote }) {
    const { data } = await caller.call('domains.retrieveDmarc', { params: { domainId: String(domainId) }, query: { days } })
    const found = fieldsOf(data)
    const advice = fieldsOf(found.advice)
    const sourceOf = (one: Fields) => ({
      ...facts(one, ['kind', 'activeDays', 'lastDay', ...countNames]),
      untrusted: { source: quote.text(one.source), headerFrom: quote.text(one.headerFrom), signers: quote.list(one.signers) },
    })
    return {
      from: facts(found, ['from']).from,
      totals: facts(fieldsOf(found.totals), countNames),
      sources: listOf(found.sources).slice(0, maxSources).map(sourceOf),
      advice: { ...facts(advice, ['policy', 'next', 'ready']), untrusted: { text: quote.text(advice.text, 500) } },
    }
  },
})

const listTransports = question({
  name: 'list_transports',
  title: 'List transports',
  description: 'The SMTP relays of the installation, their state, and the shares of the mail that they get.',
  input: Type.Object({}),
  async read(_given, { caller, quote }) {
    const found = fieldsOf((await caller.call('transports.list', {})).data)
    return {
      ...facts(found, ['default']),
      transports: listOf(found.transports).map((one) =>
        facts(one, ['name', 'host', 'port', 'tls', 'connections', 'rate', 'failover', 'fallback', 'state']),
      ),
      rules: listOf(found.rules).map((one) => ({
        ...facts(one, ['tenantId', 'domain']),
        shares: listOf(one.shares).map((share) => facts(share, ['transport', 'percent'])),
        untrusted: { tag: quote.text(one.tag) },
      })),
    }
  },
})

const listTenants = question({
  name: 'list_tenants',
  title: 'List tenants',
  description: 'The tenants of the organisation with their ids and status.',
  input: Type.Object({ page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })), limit: Limit }),
  async read({ page, limit = usualLimit }, { caller, quote }) {
    const { data, total } = await caller.call('tenants.list', { query: { page, perPage: limit } })
    return {
      tenants: listOf(data).map((one) => ({
        ...facts(one, ['id', 'status', 'createdAt']),
        untrusted: { name: quote.text(one.name) },
      })),
      total: total ?? null,
    }
  },
})

export const domainTools: readonly Tool[] = [listDomains, showDomain, dmarcSummary, listTransports, listTenants]
