/** Sending domains (contract section 10). */

import Type, { type Static } from 'typebox'
import { deleteDomain } from '#delivery'
import {
  type DmarcPolicy,
  type DnsRecord,
  type Domain,
  type DomainService,
  type DomainView,
  dmarcPolicies,
  dmarcPolicyOf,
  requiredRecords,
} from '#domains'
import { hasRoute, receivingRecord } from '#received-mail'
import { nullable, tenantFields, tenantNamedIn, tenantParameter } from './common-schemas.ts'
import { type ApiDeps, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const manages = { permission: 'domains:manage', scope: 'organisation or tenant', families: 'both' } as const

const Instant = Type.String({ format: 'date-time' })

const Record = Type.Object({
  type: Type.Unsafe<DnsRecord['type']>({ type: 'string', enum: ['TXT', 'CNAME', 'MX'] }),
  name: Type.String({ description: 'Relative to the zone; `@` at the apex' }),
  fullName: Type.String(),
  value: Type.String({ description: 'Value to publish' }),
  status: nullable(
    Type.Unsafe<NonNullable<DnsRecord['status']>>({
      type: 'string',
      enum: ['OK', 'Missing', 'Invalid'],
      description: 'null: not checked yet',
    }),
  ),
  found: Type.Array(Type.String(), { description: 'Values found by the last check; at most 5' }),
  problem: nullable(Type.String()),
  suggestion: nullable(Type.String()),
})

const summaryFields = {
  id: Type.Integer(),
  name: Type.String({ description: 'A-labels' }),
  verified: Type.Boolean({ description: 'true: the tenant can send from the domain' }),
  tenant_id: Type.String(),
  tenant_name: Type.String(),
  tenantId: Type.String(),
  createdAt: Instant,
}

const DkimKeys = Type.Object(
  {
    bits: Type.Integer({ description: 'Length of the RSA key that signs; receivers distrust less than 2048' }),
    since: Type.String({ format: 'date-time', description: 'Since when it signs' }),
    delegated: Type.Boolean({ description: 'true: the selectors are CNAMEs, and rotation needs nothing from the owner of the domain' }),
    aliases: Type.Array(Record, {
      description: 'CNAME records to publish once in place of the TXT records; empty unless Postrider writes DNS',
    }),
    next: nullable(
      Type.Object({
        selector: Type.String(),
        createdAt: Instant,
        checkedAt: nullable(Instant),
        seenSince: nullable(Type.String({ format: 'date-time', description: 'Since when every resolver returns its record' })),
        usedFrom: nullable(Type.String({ format: 'date-time', description: 'When it signs, if the record stays' })),
        problem: nullable(Type.String()),
        records: Type.Array(Record, { description: 'TXT records to publish; with CNAME records they need no action' }),
      }),
    ),
    kept: Type.Array(Type.Object({ selector: Type.String(), until: nullable(Instant) }), {
      description: 'Keys that no longer sign, whose records must stay until then',
    }),
  },
  { description: 'DKIM keys and their rotation' },
)

const DomainObject = Type.Object({
  ...summaryFields,
  uuid: Type.String({ format: 'uuid' }),
  trusted: Type.Boolean({ description: 'true: the operator lets the tenant send without DNS verification' }),
  verifiedAt: nullable(Instant),
  dnsCheckedAt: nullable(Instant),
  dnsRecords: Type.Object({
    zone: Type.String({ description: 'The registrable domain by the Public Suffix List' }),
    spf: Record,
    dkim: Record,
    returnPath: Record,
    dkimEd25519: Type.Object(Record.properties, { description: 'Optional: not required for verified' }),
    dmarc: Type.Object(Record.properties, { description: 'Recommendation only' }),
    mx: Type.Object(Record.properties, { description: 'Recommendation only; the value is an example' }),
    receiving: Type.Optional(Type.Object(Record.properties, { description: 'MX record for mail in; only for a domain with routes' })),
  }),
  dkimKeys: DkimKeys,
})

const byId = {
  ...manages,
  query: query({ tenantId: tenantParameter }),
  refuses: ['not_found', 'tenant_mismatch'],
} as const

export const createDomain = route({
  method: 'POST',
  path: '/domains',
  name: 'domains.create',
  summary: 'Add a sending domain',
  ...manages,
  body: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 253, description: 'Host name with at least two labels' }),
    ...tenantFields,
  }),
  status: 201,
  data: DomainObject,
  refuses: ['domain_already_exists', 'tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { shownDomains, domains, tenants }) => {
    const made = await shownDomains.create(await tenantNamedIn(call, tenants), call.body.name)
    domains.forget()
    return domainToWire(made)
  },
})

export const listDomainsRoute = route({
  method: 'GET',
  path: '/domains',
  name: 'domains.list',
  summary: 'List sending domains',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({
    domains: Type.Array(
      Type.Object({
        ...summaryFields,
        recordsRequired: Type.Integer({ description: 'DNS records that verification requires' }),
        recordsFound: Type.Integer({ description: 'Those of them that the last check found' }),
        dnsCheckedAt: nullable(Type.String({ format: 'date-time', description: 'null: not checked yet' })),
        dmarcPolicy: nullable(
          Type.Unsafe<DmarcPolicy>({
            type: 'string',
            enum: [...dmarcPolicies],
            description: 'Of the DMARC record that the last check found; null: none was found',
          }),
        ),
      }),
    ),
  }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ tenantId }, { shownDomains }) => ({ domains: (await shownDomains.list(tenantId)).map(listedToWire) }),
})

export const retrieveDomain = route({
  method: 'GET',
  path: '/domains/{domainId}',
  name: 'domains.retrieve',
  summary: 'Get a sending domain, with the DNS records to publish',
  ...byId,
  data: DomainObject,
  handle: async ({ params, tenantId }, deps) => withReceiving(await deps.shownDomains.get(params.domainId, tenantId), deps),
})

export const verifyDomain = route({
  method: 'POST',
  path: '/domains/{domainId}/verify',
  name: 'domains.verify',
  summary: 'Check the DNS records of a sending domain now',
  ...byId,
  data: DomainObject,
  handle: async ({ params, tenantId }, deps) => {
    const verified = await deps.shownDomains.verify(params.domainId, tenantId)
    deps.domains.forget()
    return withReceiving(verified, deps)
  },
})

export const deleteDomainRoute = route({
  method: 'DELETE',
  path: '/domains/{domainId}',
  name: 'domains.delete',
  summary: 'Delete a sending domain; its queued emails fail',
  ...byId,
  data: Type.Object({ message: Type.String() }),
  handle: async ({ params, tenantId }, { db, clock, shownDomains, domains }) => {
    await deleteDomain(db, await shownDomains.get(params.domainId, tenantId), clock.nowMs())
    domains.forget()
    return { message: 'The domain has been deleted' }
  },
})

const summaryToWire = ({ id, name, verified, tenantId, tenantName, createdAt }: Domain & { tenantName: string }) => ({
  id,
  name,
  verified,
  tenant_id: tenantId,
  tenant_name: tenantName,
  tenantId,
  createdAt: createdAt.toISOString(),
})

const listedToWire = (domain: Awaited<ReturnType<DomainService['list']>>[number]) => ({
  ...summaryToWire(domain),
  recordsRequired: requiredRecords.length,
  recordsFound: requiredRecords.filter((kind) => domain[`${kind}Status`] === 'OK').length,
  dnsCheckedAt: domain.checkedAt?.toISOString() ?? null,
  dmarcPolicy: dmarcPolicyOf(domain.dmarcRecord ?? ''),
})

const domainToWire = (domain: DomainView): Static<typeof DomainObject> => ({
  ...summaryToWire(domain),
  uuid: domain.uuid,
  trusted: domain.trusted,
  verifiedAt: domain.verifiedAt?.toISOString() ?? null,
  dnsCheckedAt: domain.checkedAt?.toISOString() ?? null,
  dnsRecords: domain.dnsRecords,
  dkimKeys: keysToWire(domain.keys),
})

/** With the MX record, if the domain has routes. */
async function withReceiving(domain: DomainView, { db, config }: Pick<ApiDeps, 'db' | 'config'>): Promise<Static<typeof DomainObject>> {
  const shown = domainToWire(domain)
  if (!(await hasRoute(db, domain))) return shown
  return { ...shown, dnsRecords: { ...shown.dnsRecords, receiving: receivingRecord(domain.dnsRecords.mx, config.hostname) } }
}

function keysToWire({ bits, keySince, delegated, aliases, others, usedFrom, nextRecords }: DomainView['keys']): Static<typeof DkimKeys> {
  const next = others.find(({ state }) => state === 'next')
  return {
    bits,
    since: keySince.toISOString(),
    delegated,
    aliases,
    next: next
      ? {
          selector: next.selector,
          createdAt: next.createdAt.toISOString(),
          checkedAt: next.checkedAt?.toISOString() ?? null,
          seenSince: next.seenSince?.toISOString() ?? null,
          usedFrom: usedFrom?.toISOString() ?? null,
          problem: next.problem,
          records: nextRecords,
        }
      : null,
    kept: others.flatMap((one) =>
      one.state === 'retired' ? [{ selector: one.selector, until: one.keepUntil?.toISOString() ?? null }] : [],
    ),
  }
}
