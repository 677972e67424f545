/**
 * Decides whether a person or a program opened a mail or followed a link, with the reason. Programs that identify themselves are checked
 * first, then behaviour that no person shows; any other request that looks like a reader counts as a person. There is no hidden link to
 * detect machines (docs/decisions/016-no-honeypot-link.md).
 */
import ipaddr from 'ipaddr.js'
import { isInNetwork } from '#base'
import { type AgentKind, agentRules, dataCentres, readerAgent } from './bot-rules.ts'

export interface Judgement {
  source: AgentKind
  reason: string
}

/** The facts of the request itself. */
export interface TrackedRequest {
  kind: 'open' | 'click'
  atMs: number
  ipAddress: string
  userAgent: string
  isHead: boolean
  isPrefetch: boolean
}

/** The facts known from other requests. */
export interface Surroundings {
  /** When the recipient's server accepted the email; null: no delivery is known. */
  deliveredAtMs: number | null
  /** Another link of the same email was followed within a second. */
  isOneOfSeveral: boolean
  /** The same address requested the same link by HEAD within the minute before. */
  isAfterHead: boolean
}

/** Mail gateways scan received mail within this time. */
const secondsAfterDeliveryMs = 20_000
/** The reply to the final dot may arrive after the recipient has the mail. */
const slowReplyMs = 1000

const networksOfDataCentres = dataCentres.map((text) => ipaddr.parseCIDR(text))

const prefetch = /^\s*(?:prefetch|prerender|preview)\b/i

/** The headers by which browsers and proxies declare a prefetch. */
export const isPrefetch = (headers: Readonly<Record<string, string | string[] | undefined>>): boolean =>
  ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) => prefetch.test(String(headers[name] ?? '')))

export function classifyRequest(request: TrackedRequest, around: Surroundings): Judgement {
  const machine = (reason: string): Judgement => ({ source: 'machine', reason })
  const { userAgent, atMs } = request
  if (request.isHead) return machine('head-request')
  if (request.isPrefetch) return machine('prefetch-header')
  const known = agentRules.find(({ pattern }) => pattern.test(userAgent))
  if (known?.source === 'machine') return machine(known.reason)
  if (request.kind === 'click' && around.isAfterHead) return machine('head-before-get')
  if (request.kind === 'click' && around.isOneOfSeveral) return machine('several-links-within-a-second')
  const { deliveredAtMs } = around
  if (deliveredAtMs === null) return { source: 'unknown', reason: 'not-known-as-delivered' }
  if (atMs < deliveredAtMs - slowReplyMs) return machine('before-delivery')
  if (known) return { source: known.source, reason: known.reason }
  if (atMs < deliveredAtMs + secondsAfterDeliveryMs && isInNetwork(networksOfDataCentres, request.ipAddress))
    return machine('data-centre-seconds-after-delivery')
  return readerAgent.test(userAgent) ? { source: 'human', reason: 'reader' } : { source: 'unknown', reason: 'unknown-program' }
}
