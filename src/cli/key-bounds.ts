/** The bounds of a narrow key as options of commands, and as text. */
import type { Clock } from '#base'
import { type CommandArguments, type CommandDeps, text, UsageError } from './command-definition.ts'

export const boundsOptions = {
  domain: { type: 'string' },
  from: { type: 'string' },
  network: { type: 'string' },
  expires: { type: 'string' },
  'send-limit': { type: 'string' },
} as const

export const boundsUsage = '[--domain a,b] [--from a,b] [--network a,b] [--expires 90d|TIME] [--send-limit N]'

export const boundsHelp = `--domain a,b       sending domains that the key may send from
--from a,b         addresses that the key may send from
--network a,b      client networks, such as 203.0.113.0/24, that the key may be used from
--expires T        time until which the key is valid: a period such as 12h or 90d, or an ISO 8601 time
--send-limit N     emails per clock hour with the key; further ones wait`

export interface Bounds {
  allowedFrom?: string[] | null | undefined
  allowedNetworks?: string[] | null | undefined
  expiresAt?: string | null | undefined
  sendLimit?: number | null | undefined
}

const none = 'none'
const hourMs = 3_600_000
const periods: Readonly<Record<string, number>> = { h: hourMs, d: 24 * hourMs }

/** Only those given; null removes a bound. Throws a usage error. */
export function boundsIn(given: CommandArguments, { clock }: Pick<CommandDeps, 'clock'>): Bounds {
  const [domain, from, network, expires, sendLimit] = Object.keys(boundsOptions).map((name) => text(given, name))
  const senders = [domain, from].filter((one) => one !== undefined)
  return {
    ...(senders.length === 0 ? {} : { allowedFrom: senders.includes(none) ? null : senders.flatMap(listIn) }),
    ...(network === undefined ? {} : { allowedNetworks: network === none ? null : listIn(network) }),
    ...(expires === undefined ? {} : { expiresAt: expires === none ? null : timeIn(expires, clock) }),
    ...(sendLimit === undefined ? {} : { sendLimit: sendLimit === none ? null : numberIn(sendLimit) }),
  }
}

/** Those of a key. */
export const boundsShownOf = ({ allowedFrom, allowedNetworks, expiresAt, sendLimit }: Bounds): Bounds => ({
  ...(allowedFrom ? { allowedFrom } : {}),
  ...(allowedNetworks ? { allowedNetworks } : {}),
  ...(expiresAt ? { expiresAt } : {}),
  ...(sendLimit ? { sendLimit } : {}),
})

export const shownBounds = ({ allowedFrom, allowedNetworks, expiresAt, sendLimit }: Bounds): string[] => [
  ...(allowedFrom ? [`from ${allowedFrom.join(' ')}`] : []),
  ...(allowedNetworks ? [`used from ${allowedNetworks.join(' ')}`] : []),
  ...(expiresAt ? [`expires ${expiresAt.slice(0, 16)}Z`] : []),
  ...(sendLimit ? [`${sendLimit} emails per hour`] : []),
]

const listIn = (words: string) =>
  words
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')

function timeIn(words: string, clock: Clock): string {
  const [, count, unit = ''] = /^(\d{1,5})([hd])$/.exec(words) ?? []
  return count === undefined ? words : new Date(clock.nowMs() + Number(count) * (periods[unit] ?? 0)).toISOString()
}

function numberIn(words: string): number {
  if (!/^[1-9]\d{0,8}$/.test(words)) throw new UsageError('--send-limit must be a whole number of at least 1, or none')
  return Number(words)
}
