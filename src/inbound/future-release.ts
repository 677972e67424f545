/**
 * FUTURERELEASE (RFC 4865): the parameters HOLDFOR and HOLDUNTIL of MAIL schedule a message. Limits are those of scheduled sending.
 */
import { maxAheadMs, parseScheduledTime, type ScheduledTime } from '#accept'
import { ReplyError } from './smtp-replies.ts'

/** Names of the parameters. */
export const futureReleaseParameters = ['HOLDFOR', 'HOLDUNTIL']

const maxSeconds = maxAheadMs / 1000
/** RFC 4865 section 4: one to nine digits, not zero. */
const interval = /^[1-9]\d{0,8}$/

const inUtc = (atMs: number) => new Date(atMs).toISOString().replace(/\.\d+/, '')

/** The line of the EHLO reply: the longest interval in seconds, and the latest time. */
export const futureReleaseKeyword = (nowMs: number) => `FUTURERELEASE ${maxSeconds} ${inUtc(nowMs + maxAheadMs)}`

const refuse = (problem: string): never => {
  throw new ReplyError(501, '5.5.4', problem)
}

/** When the message is to leave; undefined: at once. Refuses wrong parameters, and times in the past or beyond the limits. */
export function readFutureRelease(parameters: Readonly<Record<string, string>>, nowMs: number): ScheduledTime | undefined {
  const { HOLDFOR: seconds, HOLDUNTIL: until } = parameters
  if (seconds !== undefined && until !== undefined) return refuse('HOLDFOR and HOLDUNTIL exclude each other')
  if (seconds !== undefined) {
    if (!interval.test(seconds)) return refuse('HOLDFOR must be a number of seconds')
    if (Number(seconds) > maxSeconds) return refuse(`HOLDFOR must be at most ${maxSeconds} seconds`)
    return { inMs: Number(seconds) * 1000 }
  }
  if (until === undefined) return undefined
  const atMs = parseScheduledTime(until)
  if (atMs === undefined || /^[\d.]+$/.test(until)) return refuse('HOLDUNTIL must be a time such as 2030-01-31T09:30:00Z')
  if (atMs <= nowMs) return refuse('HOLDUNTIL is in the past')
  if (atMs > nowMs + maxAheadMs) return refuse(`HOLDUNTIL must be at most ${inUtc(nowMs + maxAheadMs)}`)
  return until
}
