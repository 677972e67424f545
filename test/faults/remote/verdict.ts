/**
 * Compares an email as the API reports it, or the messages that a peer received, with the row. Returns a sentence for each deviation; an
 * empty list means no deviation.
 */
import type { Attempts, Row } from './row-type.ts'

interface Delivery {
  status: string
  timestamp: number
  classification: string | null
  smtpEnhancedCode: string | null
  sentWithSsl: boolean
  outcomeUnknown?: boolean
}

/** The form of `GET /v1/emails/{id}?expand=deliveries`. */
export interface EmailState {
  status: string
  timestamp: number
  deliveries: Delivery[]
}

export interface ReceivedMessage {
  from: string
  content: string
}

/** The observations of a peer so far. */
export interface PeerCounters {
  connections(): number
  taken(): ReceivedMessage[]
  /** Octets that the peer passed to the network. */
  written(): number
  /** `taken` contains every message that the peer answered with 250. */
  keepsAll: boolean
}

/** Postrider cannot limit the octets that the kernel buffers on the way. */
const maxWritten = 50_000_000

export const expectedOf = ({ comesTo }: Row): Record<string, Attempts> =>
  Array.isArray(comesTo) ? { ann: comesTo } : (comesTo as Record<string, Attempts>)

/** The backoff of the provider is longer than any test waits. */
export const isLeftAlone = (row: Row): boolean =>
  !row.ends && Object.values(expectedOf(row)).some((one) => one.at(-1)?.startsWith('softfail'))

export const attemptsOf = ({ deliveries }: EmailState): string[] =>
  deliveries.map(({ status, classification, smtpEnhancedCode }) =>
    status === 'sent' ? 'sent' : [status, classification, smtpEnhancedCode].filter((one) => one !== null).join(' '),
  )

/** The status that belongs to the last attempt. */
const endOf = (row: Row, attempts: Attempts) => row.ends ?? attempts.at(-1)?.split(' ')[0]

export function wrongWithEmail(row: Row, wanted: Attempts, told: EmailState): string[] {
  const wrong: string[] = []
  const all = attemptsOf(told)
  // A provider in backoff may be tried again before the test reads the email.
  const attempts = isLeftAlone(row) ? all.slice(0, wanted.length) : all
  if (attempts.join() !== wanted.join()) wrong.push(`came to ${attempts.join(', then ') || 'nothing'} instead of ${wanted.join(', then ')}`)
  else if (all.length === wanted.length && told.status !== endOf(row, wanted))
    wrong.push(`ends as ${told.status} instead of ${endOf(row, wanted)}`)
  if (row.outcomeUnknown && told.deliveries.some((one) => !one.outcomeUnknown)) wrong.push('has an attempt whose outcome is told as known')
  return [...wrong, ...wrongWithTls(row, told)]
}

/** Checks the TLS details of the last attempt, in a row about TLS. */
export function wrongWithTls({ secure }: Row, { deliveries }: EmailState): string[] {
  const last = deliveries.at(-1)
  return secure === undefined || !last || last.sentWithSsl === secure ? [] : [`was sent ${secure ? 'in the clear' : 'over TLS'}`]
}

/** For a peer that was sent one email for each recipient of the row. */
export function wrongWithPeer(row: Row, peer: PeerCounters): string[] {
  const wrong: string[] = []
  const { maxConnections, taken } = row
  if (maxConnections !== undefined && peer.connections() > maxConnections)
    wrong.push(`had ${peer.connections()} connections instead of ${maxConnections} at most`)
  if (taken !== undefined && peer.taken().length !== taken) wrong.push(`took ${peer.taken().length} messages instead of ${taken}`)
  try {
    row.look?.(peer.taken())
  } catch (error) {
    wrong.push(`took what it should not have: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (peer.written() > maxWritten) wrong.push(`could pour ${peer.written()} octets into us`)
  return wrong
}

/** Returns the errors in the logs of the processes; warnings are part of the behaviour. */
export const complaints = (log: string): string[] =>
  log
    .split('\n')
    .filter((line) => /"level":(50|60)/.test(line))
    .map((line) => line.slice(0, 500))
