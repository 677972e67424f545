/**
 * Reports why queued mail is not being claimed: its provider is paused, backing off, or at its limit. Database rows hold these states; DNS
 * is queried for the domain's provider only if at least one of them applies.
 */
import { LRUCache } from 'lru-cache'
import type { Clock, Config } from '#base'
import type { Db } from '#db'
import { findRoute, type Resolver } from '#net'
import { listQueuePauses } from '#spool'
import { listSources } from './egress/egress-sources.ts'
import { listWarmUps, type WarmUpLine } from './egress/warm-up.ts'
import { openProviders } from './shaping/providers.ts'
import { type InForce, listShaping } from './shaping/shaping.ts'

export interface DelayReason {
  /** Completes "It is due and waits: ". */
  reason: string
  /** Undefined: the mail may be claimed at any time. */
  until: Date | undefined
}

export interface DelayReasons {
  /** The delay reason of live mail to this domain; undefined: unknown. */
  find(domain: string): Promise<DelayReason | undefined>
  /** The name of the provider whose limits apply to this domain; undefined: its MX records are not known. Cached for a minute. */
  providerOf(domain: string): Promise<string | undefined>
}

interface DelayReasonDeps {
  db: Db
  clock: Clock
  resolver: Resolver
  config: Pick<Config, 'relay' | 'providerRules'>
}

/** Lookup timeout for `explain`. */
const maxLookUpMs = 2000
const namedForMs = 60_000
const maxNamed = 1000
/** Only the codes of a reply are shown. Its text concerned another tenant's mail and may name recipients. */
const replyCodes = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?(?!\S)/

/** The start of the delay reason for a paused provider, here and in the spool. */
export const pausedWords = (provider: string) => `${provider} is paused by the operator: `

export function openDelayReasons({ db, clock, resolver, config }: DelayReasonDeps): DelayReasons {
  const providers = openProviders(config.providerRules)

  const providerOf = async (domain: string): Promise<{ name: string; isNamed: boolean; among: readonly string[] } | undefined> => {
    if (config.relay) return { name: 'relay', isNamed: true, among: [] }
    let cancel = () => {}
    const late = new Promise<undefined>((resolve) => {
      cancel = clock.after(maxLookUpMs, () => resolve(undefined))
    })
    const route = await Promise.race([findRoute(domain, resolver, { ownNames: [], random: () => 0 }), late])
    cancel()
    if (route?.kind !== 'hosts') return undefined
    const provider = providers.ofRoute(route)
    return { ...provider, among: [provider, ...providers.among(route)].map(({ name }) => name) }
  }

  const named = new LRUCache<string, { name: string | undefined; atMs: number }>({ max: maxNamed })
  return {
    async providerOf(domain) {
      const known = named.get(domain)
      if (known && clock.nowMs() - known.atMs < namedForMs) return known.name
      const name = (await providerOf(domain))?.name
      named.set(domain, { name, atMs: clock.nowMs() })
      return name
    },
    async find(domain) {
      const nowMs = clock.nowMs()
      const [shaped, warmUps, sources, all] = await Promise.all([
        listShaping(db),
        listWarmUps(db, nowMs),
        listSources(db),
        listQueuePauses(db),
      ])
      const pauses = all.filter((one) => one.kind === 'provider')
      if (pauses.length === 0 && !shaped.some((one) => limitOf(one, nowMs)) && !warmUps.some(isFull)) return undefined
      const provider = await providerOf(domain)
      if (!provider) return undefined
      const queuePause = pauses.find((one) => provider.among.includes(one.name))
      if (queuePause) return { reason: pausedWords(queuePause.name) + queuePause.reason, until: undefined }
      const full = warmUps.filter((one) => one.provider === (provider.isNamed ? provider.name : 'others') && isFull(one))
      const [first] = full
      if (first && full.length === sources.length)
        return { reason: `the warm-up allows ${first.ceiling} messages to ${first.provider} today`, until: undefined }
      // With several source addresses, the first one that is free takes the mail.
      const limits = shaped.filter((one) => one.provider === provider.name).map((one) => limitOf(one, nowMs))
      return limits.includes(undefined) ? undefined : limits.sort((a, b) => untilMs(a) - untilMs(b))[0]
    },
  }
}

const isFull = ({ taken, ceiling }: WarmUpLine) => taken >= ceiling
const untilMs = (limit: DelayReason | undefined) => limit?.until?.getTime() ?? 0

function limitOf({ provider, connectionsOpen, connections, rate, backoffUntilMs, cause }: InForce, nowMs: number): DelayReason | undefined {
  if (backoffUntilMs !== null && backoffUntilMs > nowMs) {
    const until = new Date(backoffUntilMs)
    const [codes] = replyCodes.exec(cause ?? '') ?? []
    const why = codes === undefined ? '' : ` (its reply: ${codes.replace('-', ' ')})`
    return { reason: `backing off from ${provider} until ${until.toISOString()}${why}`, until }
  }
  if (rate !== null) return { reason: `${provider} is limited to ${Number(rate.toPrecision(2))} messages per second`, until: undefined }
  if (connectionsOpen >= connections)
    return { reason: `all ${connections} connections allowed to ${provider} are in use`, until: undefined }
  return undefined
}
