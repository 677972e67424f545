/**
 * The sending domains of an account at another service, by its API as publicly documented, and their addition here. Names only: keys of
 * DKIM stay with the service, so that each domain gets new ones. Every answer is bounded in time, octets and pages.
 */
import { type Clock, type Ids, Refusal, type Secrets } from '#base'
import type { Db } from '#db'
import { addDomain, listDomains, makeDomain } from '#domains'
import { parseDomain } from '#mail'
import type { Get } from '#net'
import { AccountApi, type ApiRow, basic, bearer, maxPages, type VendorAccount } from './account-api.ts'
import { type AwsKey, awsHeaders, strictlyEncoded } from './aws-request.ts'

type PagedVendor = 'resend' | 'sendgrid' | 'mailgun' | 'postmark'
export const domainVendors = ['resend', 'sendgrid', 'mailgun', 'postmark', 'ses'] as const

interface DomainsApi {
  url: string
  headers: (key: string) => Record<string, string>
  /** `last`: the id of the last domain of the page before. */
  page: (size: number, skip: number, last: string) => string
  /** The list in an answer. */
  list: (answer: ApiRow) => unknown
  name: string
  /** The field that is different in each domain; `name` by default. */
  id?: string
  /** Whether the service owns the domain, so that its mail cannot move. */
  isOwn?: (row: ApiRow) => boolean
}

const apis: Readonly<Record<PagedVendor, DomainsApi>> = {
  resend: {
    url: 'https://api.resend.com',
    headers: bearer,
    page: (size, _, last) => `/domains?limit=${size}${last === '' ? '' : `&after=${encodeURIComponent(last)}`}`,
    list: ({ data }) => data,
    name: 'name',
    id: 'id',
  },
  sendgrid: {
    url: 'https://api.sendgrid.com',
    headers: bearer,
    page: (size, skip) => `/v3/whitelabel/domains?limit=${size}&offset=${skip}`,
    list: (answer) => answer,
    name: 'domain',
  },
  mailgun: {
    url: 'https://api.mailgun.net',
    headers: basic,
    page: (size, skip) => `/v4/domains?limit=${size}&skip=${skip}`,
    list: ({ items }) => items,
    name: 'name',
    isOwn: ({ type, name }) => type === 'sandbox' || (typeof name === 'string' && /^sandbox[^.]*\.mailgun\.org$/i.test(name)),
  },
  postmark: {
    url: 'https://api.postmarkapp.com',
    headers: (key) => ({ 'x-postmark-account-token': key }),
    page: (size, skip) => `/domains?count=${size}&offset=${skip}`,
    list: ({ Domains }) => Domains,
    name: 'Name',
  },
}

const textsOf = (rows: readonly ApiRow[], name: string): string[] => [
  ...new Set(rows.map((row) => row[name]).filter((one) => typeof one === 'string')),
]

/** The names of all domains except the service's own, as the service writes them. */
export async function listVendorDomains({ vendor, key, apiUrl }: VendorAccount<PagedVendor>, get: Get): Promise<string[]> {
  const { url, headers, page, list, name, id = name, isOwn = () => false } = apis[vendor]
  const api = new AccountApi({ vendor, records: 'domains', baseUrl: apiUrl ?? url, headers: () => headers(key), get })
  const rows = await api.pages(page, list, id)
  return textsOf(
    rows.filter((row) => !isOwn(row)),
    name,
  )
}

export interface SesAccount {
  key: AwsKey
  region: string
  apiUrl: string | undefined
}

/** The same for Amazon SES: its identities that are domains. Single addresses are left out. */
export async function listSesDomains({ key, region, apiUrl }: SesAccount, get: Get, clock: Clock): Promise<string[]> {
  const headers = (url: string) => awsHeaders(key, url, { region, service: 'ses', nowMs: clock.nowMs() })
  const api = new AccountApi({
    vendor: 'ses',
    records: 'domains',
    baseUrl: apiUrl ?? `https://email.${region}.amazonaws.com`,
    headers,
    get,
  })
  const names = new Set<string>()
  let token = ''
  for (let page = 1; ; page++) {
    const answer = await api.ask(`/v2/email/identities?${token === '' ? '' : `NextToken=${strictlyEncoded(token)}&`}PageSize=1000`)
    if (!answer) throw api.noList(404)
    const domains = api.rows(answer.EmailIdentities).filter(({ IdentityType }) => IdentityType !== 'EMAIL_ADDRESS')
    for (const name of textsOf(domains, 'IdentityName')) names.add(name)
    if (typeof answer.NextToken !== 'string' || answer.NextToken === '' || answer.NextToken === token) return [...names]
    if (page >= maxPages) throw api.tooMany()
    token = answer.NextToken
  }
}

export interface DomainsReport {
  found: number
  added: string[]
  existing: number
  failed: { name: string; problem: string }[]
}

/** Adds the missing domains to the tenant, each with keys of its own, unverified; with `dryRun` only compares. */
export async function importDomains(
  names: readonly string[],
  tenantId: string,
  dryRun: boolean,
  { db, clock, ids, secrets }: { db: Db; clock: Clock; ids: Ids; secrets: Secrets },
): Promise<DomainsReport> {
  const there = new Set((await listDomains(db, tenantId)).map(({ name }) => name))
  const report: DomainsReport = { found: names.length, added: [], existing: 0, failed: [] }
  for (const given of names) {
    const name = parseDomain(given)
    if (name === undefined) report.failed.push({ name: given, problem: 'is not a domain' })
    else if (there.has(name)) report.existing++
    else {
      there.add(name)
      try {
        if (!dryRun) {
          const made = await makeDomain({ tenantId, name, trusted: false, ownKey: undefined }, { nowMs: clock.nowMs(), ids, secrets })
          await db.transaction((tx) => addDomain(tx, made))
        }
        report.added.push(name)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        report.failed.push({ name, problem: error.message })
      }
    }
  }
  return report
}
