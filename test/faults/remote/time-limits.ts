/** The limits of time that the table is run with: shorter than in life, in the same order; and what follows from them for a row alone. */

import type { Row } from './row-type.ts'
import { expectedOf } from './verdict.ts'

export const bounds = {
  smtp: { connectMs: 1500, greetingMs: 4000, commandMs: 4000, dataMs: 4000, blockMs: 4000, finalReplyMs: 6000, tlsMs: 4000 },
  dnsQueryMs: 500,
  downForMs: 500,
}

/** Where much mail is under way, none of them may strike because the machine is busy. */
export const boundsAmongMany = {
  smtp: { ...bounds.smtp, connectMs: 10_000, commandMs: 8000, dataMs: 8000 },
  dnsQueryMs: 4000,
  downForMs: 1000,
}

export type Limit = keyof typeof bounds.smtp | 'dnsQueryMs'

export const maxAttempts = 2
export const retryBaseMs = 1000
/** Longer than a destination is held to be down after a connection failed, so that a second attempt is one. */
export const retryBaseAmongManyMs = 13_000
/** The longest wait between two attempts: 1.3 times the base, and a tenth. */
const maxRetryMs = retryBaseMs * 1.3 * 1.1
/** For all that is no waiting: claims, look-ups, connections, transactions, on a machine that has other work. */
const workMs = 2500

const limitMs = (limit: Limit) => (limit === 'dnsQueryMs' ? bounds.dnsQueryMs : bounds.smtp[limit])

/** From acceptance to the last outcome that is expected: the limits that each attempt uses up, and the waits between attempts. */
export function withinMs(row: Row): number {
  const attempts = Math.max(...Object.values(expectedOf(row)).map((one) => one.length))
  const waits = row.waits ?? []
  const ofAttemptMs = (row.slowMs ?? 0) + waits.reduce((sum, limit) => sum + limitMs(limit), 0)
  return attempts * (ofAttemptMs + workMs) + (attempts - 1) * maxRetryMs
}

/** By how much what is resident may grow for any row. */
export const maxGrownOfAnyMib = 32
/** A message on its way is held as stored, as text, as parsed, as built and as what waits for the network, perhaps for both attempts. */
export const timesMessage = 20

export const maxGrownMib = ({ message }: Row): number =>
  maxGrownOfAnyMib + Math.ceil((timesMessage * (message?.fileOctets ?? 0)) / 1_048_576)
