/**
 * Compares the results of many messages to one peer with the row. Returns a sentence for each deviation; an empty list means no deviation.
 */

import type { Attempts, Row } from './row-type.ts'
import { maxAttempts } from './time-limits.ts'
import { attemptsOf, type EmailState, expectedOf, isLeftAlone, type PeerCounters, wrongWithTls } from './verdict.ts'

interface OneOfMany {
  mark: number
  /** The recipient, by its name in the row. */
  to: string
  told?: EmailState
}

/** Emails to the peer may wait without an attempt, because another email has already shown the reason. */
export const mayWait = (row: Row): boolean => row.othersWait === true || isLeftAlone(row)

export function wrongAmongMany(row: Row, emails: readonly OneOfMany[]): string[] {
  const wrong: string[] = []
  let asAlone = 0
  for (const { mark, to, told } of emails) {
    if (!told) {
      wrong.push(`email ${mark} is lost`)
      continue
    }
    const wanted = expectedOf(row)[to] ?? []
    const attempts = attemptsOf(told)
    const isOther = isNotOffered(attempts, wanted) || (row.amongMany?.some((one) => one.join() === attempts.join()) ?? false)
    const isAsAlone = mayWait(row) ? isBeginning(attempts, continued(wanted)) : isSame(row, attempts, wanted)
    if (isAsAlone && attempts.length > 0) asAlone++
    if (!isOther && !isAsAlone) wrong.push(`email ${mark} to ${to} came to ${attempts.join(', then ') || 'nothing'}`)
    const end = endOf(told)
    if (told.status !== end) wrong.push(`email ${mark} to ${to} ends as ${told.status} instead of ${end}`)
    wrong.push(...wrongWithTls(row, told).map((one) => `email ${mark} to ${to} ${one}`))
  }
  if (emails.length > 0 && asAlone === 0) wrong.push('no email came to what one alone comes to')
  if (asAlone > (row.maxAmongMany ?? emails.length)) wrong.push(`${asAlone} emails came to what ${row.maxAmongMany} may come to`)
  return wrong
}

/** Matches an email that was deferred first because another email's connection was refused, and then had the attempts of an email alone. */
function isNotOffered(attempts: Attempts, wanted: Attempts): boolean {
  const own = attempts.slice(attempts.findIndex((one) => one !== 'softfail connection_error'))
  return own.length < attempts.length && own.join() === continued(wanted).slice(-own.length).join()
}

/** An attempt with unknown outcome is shown as a softfail even if it is the last. */
const endOf = ({ deliveries }: EmailState) => {
  const last = deliveries.at(-1)
  return last?.outcomeUnknown && deliveries.length === maxAttempts ? 'hardfail' : (last?.status ?? 'pending')
}

/**
 * Matches the attempts of an email alone. If the peer breaks the connection at one email, the email sent right behind it is retried once
 * over another connection. If that breaks too, its attempt ends as a connection error without further detail.
 */
function isSame(row: Row, attempts: Attempts, wanted: Attempts): boolean {
  const isBroken = (one: string) => /^(softfail|hardfail) (protocol|connection)_error$/.test(one)
  const withConnection = (one: string, at: number) => isBroken(wanted[at] ?? '') && /^(softfail|hardfail) connection_error$/.test(one)
  return (
    attempts.length === wanted.length &&
    attempts.every((one, at) => one === wanted[at] || (withConnection(one, at) && statusFits(row, one, wanted[at] ?? '')))
  )
}

/** An email alone may have an unknown outcome; the outcome of an email that was not sent is known. */
const statusFits = (row: Row, one: string, wanted: string) => row.outcomeUnknown === true || one.split(' ')[0] === wanted.split(' ')[0]

/** Adds the next attempt: a provider that was backed off is tried again without success. */
const continued = (wanted: Attempts): Attempts =>
  wanted.at(-1)?.startsWith('softfail') ? [...wanted, (wanted.at(-1) ?? '').replace('softfail', 'hardfail')] : wanted

const isBeginning = (attempts: Attempts, of: Attempts) => attempts.every((one, at) => of[at] === one)

/** A sent email has arrived. It has arrived more than once only if the outcome of an attempt was unknown. */
export function wrongWithTaken(emails: readonly OneOfMany[], peer: PeerCounters): string[] {
  const wrong: string[] = []
  const copies = new Map<number, number>()
  for (const { content } of peer.taken()) {
    const mark = Number(/^Subject: mark (\d+)\./m.exec(content)?.[1])
    copies.set(mark, (copies.get(mark) ?? 0) + 1)
  }
  for (const { mark, told } of emails) {
    const arrived = copies.get(mark) ?? 0
    const isSent = told?.deliveries.at(-1)?.status === 'sent'
    const unknown = told?.deliveries.filter((one) => one.outcomeUnknown).length ?? 0
    if (isSent && arrived === 0 && peer.keepsAll) wrong.push(`email ${mark} is told as sent and never arrived`)
    if (arrived > unknown + (isSent ? 1 : 0))
      wrong.push(`email ${mark} arrived ${arrived} times, with ${unknown} attempts of unknown outcome`)
  }
  return wrong
}
