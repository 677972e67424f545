/** The timeouts with which the table is run: shorter than in production, in the same order. Also derives the limits for a row alone. */

import type { Limit, Row } from './row-type.ts'
import { expectedOf } from './verdict.ts'

export const bounds = {
  smtp: { connectMs: 1500, greetingMs: 4000, commandMs: 4000, dataMs: 4000, blockMs: 4000, finalReplyMs: 6000, tlsMs: 4000 },
  dnsQueryMs: 500,
  downForMs: 500,
} satisfies { smtp: Record<Exclude<Limit, 'dnsQueryMs'>, number>; dnsQueryMs: number; downForMs: number }

/** Under much load, no timeout may fire only because the machine is busy. */
export const boundsAmongMany = {
  smtp: { ...bounds.smtp, connectMs: 10_000, commandMs: 8000, dataMs: 8000 },
  dnsQueryMs: 4000,
  downForMs: 1000,
}

export const maxAttempts = 2
export const retryBaseMs = 1000
/** Longer than a recipient domain is backed off after a failed connection, so that the second attempt opens a connection. */
export const retryBaseAmongManyMs = 13_000
/** The longest wait between two attempts: 1.3 times the base, plus 10%. */
const maxRetryMs = retryBaseMs * 1.3 * 1.1
/** For all work other than waiting: claims, look-ups, connections and transactions on a machine with other load. */
const workMs = 2500

const limitMs = (limit: Limit) => (limit === 'dnsQueryMs' ? bounds.dnsQueryMs : bounds.smtp[limit])

/** Time from acceptance to the last expected outcome: the timeouts that each attempt uses up, and the waits between attempts. */
export function withinMs(row: Row): number {
  const attempts = Math.max(...Object.values(expectedOf(row)).map((one) => one.length))
  const waits = row.waits ?? []
  const ofAttemptMs = (row.slowMs ?? 0) + waits.reduce((sum, limit) => sum + limitMs(limit), 0)
  return attempts * (ofAttemptMs + workMs) + (attempts - 1) * maxRetryMs
}

/** Allowed growth of resident memory for any row. */
export const maxGrownOfAnyMib = 32
/** A message in flight is held several times: stored, as text, parsed, built, and buffered for the network, possibly for both attempts. */
export const timesMessage = 20

export const maxGrownMib = ({ message }: Row): number =>
  maxGrownOfAnyMib + Math.ceil((timesMessage * (message?.fileOctets ?? 0)) / 1_048_576)
