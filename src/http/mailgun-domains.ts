/** Endpoints of Mailgun's API that read domains, and the check of the domain that other paths name. */
import { isSendingDomain } from '#domains'
import { parseDomain } from '#mail'
import { MailgunRefusal, mailgunDomain, mailgunDomainDetails, readDomainsQuery } from '#mailgun'
import { simulatorDomain } from '#simulator'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'

const maxShownLength = 253
const noSuchDomain = (name: string | undefined) => new MailgunRefusal(404, `Domain not found: ${name?.slice(0, maxShownLength)}`)

/**
 * Refuses a path whose domain the key's tenant does not have, verified or not; of a key of the organisation, that no tenant has. Its
 * test keys always have the simulator's domain.
 */
export async function refuseUnknownDomain({ params, credential }: VendorCall, { db, domains }: VendorDeps): Promise<void> {
  const name = parseDomain(params.domain ?? '')
  if (name === undefined) throw noSuchDomain(params.domain)
  if (name === simulatorDomain && credential.mode === 'test') return
  const isKnown =
    credential.tenantId === null ? await isSendingDomain(db, name) : (await domains.find(credential.tenantId, name)) !== undefined
  if (!isKnown) throw noSuchDomain(params.domain)
}

const permission = 'domains:manage'

async function list({ query, credential }: VendorCall, { shownDomains }: VendorDeps) {
  const { limit, skip } = readDomainsQuery(query)
  const all = await shownDomains.list(credential.tenantId)
  return { data: { total_count: all.length, items: all.slice(skip, skip + limit).map(mailgunDomain) } }
}

async function get({ query, params, credential }: VendorCall, { shownDomains }: VendorDeps) {
  readDomainsQuery(query)
  const name = params.name?.toLowerCase()
  const found = (await shownDomains.list(credential.tenantId)).find((one) => one.name === name)
  if (!found) throw noSuchDomain(params.name)
  return { data: mailgunDomainDetails(await shownDomains.get(found.uuid, credential.tenantId)) }
}

export const mailgunDomainEndpoints: readonly VendorEndpoint[] = ['v3', 'v4'].flatMap((version): VendorEndpoint[] => [
  {
    methods: ['GET'],
    path: `/${version}/domains`,
    name: `mailgun.${version}.domains.list`,
    summary: 'List sending domains',
    permission,
    answer: list,
  },
  {
    methods: ['GET'],
    path: `/${version}/domains/:name`,
    name: `mailgun.${version}.domains.get`,
    summary: 'Get a sending domain with its DNS records',
    permission,
    answer: get,
  },
])
