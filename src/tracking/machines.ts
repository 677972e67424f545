/**
 * Whether a person opened a mail or followed its link, or a program did, as far as can be told, and why. Programs that say so come
 * first, then what no person does; who only looks like a reader is taken for one. There is no hidden link to catch machines with
 * (docs/decisions/016-no-honeypot-link.md).
 */
import ipaddr from 'ipaddr.js'
import { liesIn } from '#base'
import { agentRules, dataCentres, readerAgent, type Source } from './machine-rules.ts'

export interface Judgement {
  source: Source
  reason: string
}

/** What a request says by itself. */
export interface Asked {
  kind: 'open' | 'click'
  atMs: number
  ipAddress: string
  userAgent: string
  isHead: boolean
  isPrefetch: boolean
}

/** What only others know of it. */
export interface Surroundings {
  /** When the recipient's server took the email; null: not that we know. */
  deliveredAtMs: number | null
  /** Another link of the same email was followed within a second. */
  isOneOfSeveral: boolean
  /** The same link was asked for by HEAD, from the same address, within the minute before. */
  isAfterHead: boolean
}

/** A mail gateway looks at what it received within this time. */
const secondsAfterDeliveryMs = 20_000
/** The reply to the final dot may be read after the recipient has the mail. */
const slowReplyMs = 1000

const networksOfDataCentres = dataCentres.map((text) => ipaddr.parseCIDR(text))

const prefetch = /^\s*(?:prefetch|prerender|preview)\b/i

/** The headers by which browsers and proxies say that nobody has looked yet. */
export const isPrefetch = (headers: Readonly<Record<string, string | string[] | undefined>>): boolean =>
  ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) => prefetch.test(String(headers[name] ?? '')))

export function judge(asked: Asked, around: Surroundings): Judgement {
  const machine = (reason: string): Judgement => ({ source: 'machine', reason })
  const { userAgent, atMs } = asked
  if (asked.isHead) return machine('head-request')
  if (asked.isPrefetch) return machine('prefetch-header')
  const known = agentRules.find(({ pattern }) => pattern.test(userAgent))
  if (known?.source === 'machine') return machine(known.reason)
  if (asked.kind === 'click' && around.isAfterHead) return machine('head-before-get')
  if (asked.kind === 'click' && around.isOneOfSeveral) return machine('several-links-within-a-second')
  const { deliveredAtMs } = around
  if (deliveredAtMs === null) return { source: 'unknown', reason: 'not-known-as-delivered' }
  if (atMs < deliveredAtMs - slowReplyMs) return machine('before-delivery')
  if (known) return { source: known.source, reason: known.reason }
  if (atMs < deliveredAtMs + secondsAfterDeliveryMs && liesIn(networksOfDataCentres, asked.ipAddress))
    return machine('data-centre-seconds-after-delivery')
  return readerAgent.test(userAgent) ? { source: 'human', reason: 'reader' } : { source: 'unknown', reason: 'unknown-program' }
}
