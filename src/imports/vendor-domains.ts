/**
 * The sending domains of an account at another service, by its API as publicly documented, and their addition here. Names only: keys of
 * DKIM stay with the service, so that each domain gets new ones. Every answer is bounded in time, octets and pages.
 */
import { type Clock, type Ids, Refusal, type Secrets } from '#base'
import type { Db } from '#db'
import { addDomain, listDomains, makeDomain } from '#domains'
import { parseDomain } from '#mail'
import type { Get } from '#net'

export const domainVendors = ['resend', 'sendgrid', 'mailgun', 'postmark'] as const
export type DomainVendor = (typeof domainVendors)[number]

interface VendorApi {
  url: string
  headers(key: string): Record<string, string>
  /** `last`: the id of the last domain of the page before. */
  page(skip: number, last: string): string
  /** The list in an answer. */
  list(answer: Record<string, unknown>): unknown
  name: string
  id?: string
}

const pageSize = 100
const maxPages = 100
const maxOctets = 2 * 1_048_576
const withinMs = 20_000

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const apis: Readonly<Record<DomainVendor, VendorApi>> = {
  resend: {
    url: 'https://api.resend.com',
    headers: bearer,
    page: (_, last) => `/domains?limit=${pageSize}${last === '' ? '' : `&after=${encodeURIComponent(last)}`}`,
    list: ({ data }) => data,
    name: 'name',
    id: 'id',
  },
  sendgrid: {
    url: 'https://api.sendgrid.com',
    headers: bearer,
    page: (skip) => `/v3/whitelabel/domains?limit=${pageSize}&offset=${skip}`,
    list: (answer) => answer,
    name: 'domain',
  },
  mailgun: {
    url: 'https://api.mailgun.net',
    headers: (key) => ({ authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` }),
    page: (skip) => `/v4/domains?limit=${pageSize}&skip=${skip}`,
    list: ({ items }) => items,
    name: 'name',
  },
  postmark: {
    url: 'https://api.postmarkapp.com',
    headers: (key) => ({ 'x-postmark-account-token': key }),
    page: (skip) => `/domains?count=${pageSize}&offset=${skip}`,
    list: ({ Domains }) => Domains,
    name: 'Name',
  },
}

export interface VendorAccount {
  vendor: DomainVendor
  key: string
  /** Scheme and host of the API; undefined: the usual one. */
  apiUrl: string | undefined
}

const wrong = (message: string, suggestion: string) => new Refusal('validation_error', { message, suggestion })

/** The names of all domains, as the service writes them. Refuses a key that the service does not accept, and unknown answers. */
export async function listVendorDomains({ vendor, key, apiUrl }: VendorAccount, get: Get): Promise<string[]> {
  const api = apis[vendor]
  const names = new Set<string>()
  let last = ''
  for (let page = 0, read = 0; page < maxPages; page++) {
    const url = `${(apiUrl ?? api.url).replace(/\/+$/, '')}${api.page(read, last)}`
    const rows = rowsOf(api, vendor, await get({ url, headers: api.headers(key), withinMs, maxOctets }))
    const before = names.size
    for (const row of rows) {
      const name = row[api.name]
      if (typeof name === 'string') names.add(name)
    }
    read += rows.length
    const id = api.id === undefined ? undefined : rows.at(-1)?.[api.id]
    last = typeof id === 'string' ? id : ''
    // A page without a new name ends the list too: the service may not know the page's number.
    if (rows.length < pageSize || names.size === before) break
  }
  return [...names]
}

function rowsOf(api: VendorApi, vendor: string, { statusCode, body, isWhole, error }: Awaited<ReturnType<Get>>): Record<string, unknown>[] {
  if (statusCode === null) throw wrong(`${vendor} cannot be reached: ${error ?? 'no response'}`, 'Run the command again later')
  if (statusCode === 401 || statusCode === 403)
    throw wrong(`${vendor} does not accept the key (${statusCode})`, 'Give a key that may read domains: of the account, for Postmark')
  const answer = statusCode === 200 && isWhole ? parsed(body ?? '') : undefined
  const list = answer && api.list(answer)
  if (!Array.isArray(list)) throw wrong(`${vendor} answered ${statusCode}, without a list of domains`, 'Check --from and --api')
  return list.filter((row): row is Record<string, unknown> => typeof row === 'object' && row !== null)
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
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
