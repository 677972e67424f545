/** Requests to the APIs of other services, as they are publicly documented: with the service's key, each bounded in time and octets. */
import { Refusal } from '#base'
import type { Get } from '#net'

const pageSize = 100
export const maxPages = 100
const maxOctets = 2 * 1_048_576
const withinMs = 20_000

export type ApiRow = Readonly<Record<string, unknown>>

export interface VendorAccount<Vendor extends string> {
  vendor: Vendor
  key: string
  /** Scheme and host of the API; undefined: the usual one. */
  apiUrl: string | undefined
}

interface AccountApiDeps {
  vendor: string
  /** The records that the key must be able to read. */
  records: 'domains' | 'webhooks'
  /** Scheme and host. */
  baseUrl: string
  headers: (url: string) => Readonly<Record<string, string>>
  get: Get
}

export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
export const basic = (key: string) => ({ authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` })

const wrong = (message: string, suggestion: string) => new Refusal('validation_error', { message, suggestion })

/** One service with one key. Refuses a key that the service does not accept, and unknown answers. */
export class AccountApi {
  readonly #deps: AccountApiDeps

  constructor(deps: AccountApiDeps) {
    this.#deps = deps
  }

  /** The answer; undefined: the service does not know the path. */
  async ask(path: string): Promise<ApiRow | undefined> {
    const { vendor, records, baseUrl, headers, get } = this.#deps
    const url = baseUrl.replace(/\/+$/, '') + path
    const { statusCode, body, isWhole, error } = await get({ url, headers: headers(url), withinMs, maxOctets })
    if (statusCode === null) throw wrong(`${vendor} cannot be reached: ${error ?? 'no response'}`, 'Run the command again later')
    if (statusCode === 401 || statusCode === 403)
      throw wrong(`${vendor} does not accept the key (${statusCode})`, `Give a key that may read ${records}`)
    if (statusCode === 404) return undefined
    if (statusCode === 429) throw wrong(`${vendor} accepts no more requests at present (429)`, 'Run the command again later')
    const answer = statusCode === 200 && isWhole ? parsed(body ?? '') : undefined
    if (!answer) throw this.noList(statusCode)
    return answer
  }

  /** The list in an answer. */
  rows(value: unknown): ApiRow[] {
    if (!Array.isArray(value)) throw this.noList(200)
    return value.filter((row): row is ApiRow => typeof row === 'object' && row !== null)
  }

  /**
   * The rows of all pages. `pathOf` gets the size of a page, the number of rows before, and the last row's `key`, which is different in each row.
   */
  async pages(
    pathOf: (size: number, skip: number, last: string) => string,
    list: (answer: ApiRow) => unknown,
    key: string,
  ): Promise<ApiRow[]> {
    const found = new Map<string, ApiRow>()
    let last = ''
    for (let page = 1, read = 0; ; page++) {
      const answer = await this.ask(pathOf(pageSize, read, last))
      if (!answer) throw this.noList(404)
      const rows = this.rows(list(answer))
      const before = found.size
      for (const row of rows) {
        const id = row[key]
        if (typeof id !== 'string') continue
        found.set(id, row)
        last = id
      }
      read += rows.length
      // A short page need not be the last: a service may have its own limit. A page without a new row is: it may not know the page's number.
      if (answer.has_more === false || found.size === before) return [...found.values()]
      if (page > maxPages) throw this.tooMany()
    }
  }

  tooMany(): Refusal {
    const { vendor, records } = this.#deps
    return wrong(`${vendor} has more than ${maxPages} pages of ${records}`, `Add the ${records} by the API`)
  }

  noList(statusCode: number): Refusal {
    const { vendor, records } = this.#deps
    return wrong(`${vendor} answered ${statusCode}, without a list of ${records}`, 'Check --from and --api')
  }
}

function parsed(text: string): ApiRow | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as ApiRow) : undefined
  } catch {
    return undefined
  }
}
