/**
 * Requests the links of a message, only when a caller asks: HEAD, then GET if HEAD is not answered well. At most 50 links, 5 seconds each, ten
 * at a time, without credentials, redirects or bodies, and only to addresses that the guard allows.
 */
import { type Clock, Refusal } from '#base'
import type { Get } from '#net'

/** `refuses`: the server answers, and may answer a person otherwise. `unchecked`: no request was sent. */
export type LinkState = 'works' | 'refuses' | 'broken' | 'unchecked'

export interface CheckedLink {
  url: string
  state: LinkState
  /** null: no HTTP response. */
  statusCode: number | null
  message: string
}

export interface LinkChecks {
  /**
   * In the order of `links`; those beyond the limit are `unchecked`. Refuses `rate_limit_exceeded` while a check of the same tenant, or
   * too many of others, are running in this process.
   */
  check(tenantId: string, links: readonly string[]): Promise<CheckedLink[]>
}

export const maxCheckedLinks = 50
const withinMs = 5000
/** A GET is not begun with less time. */
const leastMs = 500
const atOnce = 10
/** Checks at a time in one process. */
const maxRunning = 4
const retryAfterSeconds = 5
/** The status is enough. */
const maxOctets = 1
const headers = { 'user-agent': 'Postrider link check', accept: '*/*' }

/** `get` allows plain http, because no secret is sent. */
export function openLinkChecks({ get, clock }: { get: Get; clock: Clock }): LinkChecks {
  const running = new Set<string>()
  return {
    async check(tenantId, links) {
      if (running.has(tenantId) || running.size >= maxRunning)
        throw new Refusal('rate_limit_exceeded', { message: 'links are being checked already', retryAfterSeconds })
      running.add(tenantId)
      try {
        const checked = new Map<string, CheckedLink>()
        const web = links.filter(isWeb).slice(0, maxCheckedLinks)
        const left = web.values()
        const work = async () => {
          for (const url of left) checked.set(url, await request(url, get, clock))
        }
        await Promise.all(Array.from({ length: atOnce }, work))
        return links.map(
          (url) => checked.get(url) ?? unchecked(url, isWeb(url) ? `only ${maxCheckedLinks} links are checked` : 'not a web page'),
        )
      } finally {
        running.delete(tenantId)
      }
    },
  }
}

const isWeb = (url: string) => /^https?:/i.test(url)
const unchecked = (url: string, message: string): CheckedLink => ({ url, state: 'unchecked', statusCode: null, message })

async function request(url: string, get: Get, clock: Clock): Promise<CheckedLink> {
  const startedMs = clock.monotonicMs()
  const head = await get({ method: 'HEAD', url, headers, withinMs, maxOctets })
  if (head.isRefused) return unchecked(url, head.error ?? 'the address is not allowed')
  if (head.statusCode !== null && head.statusCode < 400) return judge(url, head)
  // Many servers refuse HEAD, or answer it otherwise than GET.
  const leftMs = Math.floor(withinMs - (clock.monotonicMs() - startedMs))
  return judge(url, leftMs < leastMs ? head : await get({ url, headers, withinMs: leftMs, maxOctets }))
}

/** Refusals of programs, logins and bursts: a person with a browser may see the page. */
const refusing = new Set([401, 403, 405, 406, 429])

function judge(url: string, { statusCode, error }: Awaited<ReturnType<Get>>): CheckedLink {
  if (statusCode === null) return { url, state: 'broken', statusCode, message: error ?? 'no response' }
  if (statusCode < 300) return { url, state: 'works', statusCode, message: 'the page exists' }
  if (statusCode < 400) return { url, state: 'works', statusCode, message: 'redirects to another address, which was not requested' }
  if (refusing.has(statusCode)) return { url, state: 'refuses', statusCode, message: 'the server refuses programs, or needs a login' }
  return { url, state: 'broken', statusCode, message: statusCode < 500 ? 'the page does not exist' : 'the server fails' }
}
