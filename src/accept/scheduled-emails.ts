/**
 * Cancels and reschedules scheduled messages until they leave. All emails of a message change together or not at all. They are locked in
 * the spool first, so that no claim takes one meanwhile; one that a claim has taken already makes the request fail.
 */
import { Refusal } from '#base'
import type { Db, Tx } from '#db'
import { type Content, type ContentCodec, type Email, findContentBody, listEmailsOfMessage, markCancelled, setSchedule } from '#emails'
import { appendEvents, dataWithoutAttempt } from '#events'
import { getTestClockOffsetMs, lockUnsent, removeLocked, scheduleLocked } from '#spool'
import { refuseOtherSenders, storedSenderOf } from './authorize-sender.ts'
import { checkScheduledTime, resolveScheduledTime, type ScheduledTime, type ScheduledWish } from './scheduled-time.ts'
import type { MailScope } from './submission.ts'

/** A scheduled message after the change. */
export interface ScheduledMessage {
  /** The id of the first recipient's email, as the send returned it. */
  id: string
  tenantId: string
  scheduledAt: Date
  /** null: not cancelled. */
  cancelledAt: Date | null
  /** In the order of the recipients. */
  emails: readonly { id: string; recipient: string }[]
}

/** The result of `work`, which needs memory for reading a content and storing it again. It may wait before it begins. */
export type WithMemory = <Result>(email: Pick<Email, 'tenantId' | 'contentId'>, work: () => Promise<Result>) => Promise<Result>

type MessageEmails = readonly [ScheduledEmail, ...ScheduledEmail[]]
type ScheduledEmail = Email & { scheduledAt: Date }

const notScheduled = (message: string) => new Refusal('email_not_scheduled', { message: `the email ${message}` })
const isHeld = () => notScheduled('is held')

/** All emails of the scheduled message that an email belongs to. Refuses `not_found` and `email_not_scheduled`. */
async function messageOf(db: Db | Tx, emailId: string, { tenantId, allowedFrom }: MailScope): Promise<MessageEmails> {
  const [first, ...others] = await listEmailsOfMessage(db, emailId, tenantId)
  if (!first) throw new Refusal('not_found', { message: `no such email: ${emailId.slice(0, 40)}` })
  refuseOtherSenders(storedSenderOf(first), { allowedFrom }, 'from')
  if (!first.scheduledAt) throw notScheduled('was not scheduled')
  return [first, ...others] as unknown as MessageEmails
}

const isCancelled = (emails: MessageEmails) => emails.every((one) => one.cancelledAt !== null)

function shown(emails: MessageEmails, changed: Partial<Pick<ScheduledMessage, 'scheduledAt' | 'cancelledAt'>> = {}): ScheduledMessage {
  const [{ contentId: id, tenantId, scheduledAt, cancelledAt }] = emails
  return { id, tenantId, scheduledAt, cancelledAt, ...changed, emails: emails.map((one) => ({ id: one.id, recipient: one.recipient })) }
}

const idsOf = (emails: MessageEmails) => emails.map((one) => one.id)

const hasLeft = ({ status }: Email) => status !== 'pending' && status !== 'held'

/** Why an email of the message cannot change any more. */
function refusalOf(emails: MessageEmails): Refusal {
  if (isCancelled(emails)) return notScheduled('was cancelled')
  const left = emails.find(hasLeft)
  if (left) return notScheduled(emails.length === 1 ? `has left: its status is ${left.status}` : `has left for ${left.recipient}`)
  return notScheduled('is leaving now')
}

export async function cancelScheduled(
  emailId: string,
  scope: MailScope,
  { db, nowMs }: { db: Db; nowMs: number },
): Promise<ScheduledMessage> {
  const found = await messageOf(db, emailId, scope)
  if (isCancelled(found)) return shown(found)
  return db.transaction(async (tx) => {
    const locked = await lockUnsent(tx, found[0].tenantId, idsOf(found))
    if (locked.length < found.length) {
      // Another request may have cancelled it meanwhile.
      const now = await messageOf(tx, emailId, scope)
      if (isCancelled(now)) return shown(now)
      throw refusalOf(now)
    }
    const clockOffsetMs = found[0].test ? await getTestClockOffsetMs(tx, found[0].tenantId) : 0
    const cancelledAt = new Date(nowMs + clockOffsetMs)
    await removeLocked(tx, found[0].tenantId, idsOf(found))
    await markCancelled(tx, found, cancelledAt)
    const held = new Set(locked.filter((one) => one.isHeld).map((one) => one.emailId))
    await appendEvents(
      tx,
      found.map((one) => ({
        tenantId: one.tenantId,
        kind: 'MessageDeliveryFailed' as const,
        emailId: one.id,
        at: new Date(nowMs),
        data: dataWithoutAttempt('cancelled before its scheduled time', held.has(one.id) ? 'held' : 'pending', { nowMs, clockOffsetMs }),
      })),
    )
    return shown(found, { cancelledAt })
  })
}

/** About the octets of its encoding. */
const sizeOf = (message: Content['message']): number =>
  message.kind === 'raw'
    ? message.raw.length
    : [message.html, message.text, ...message.attachments.map((one) => one.content)].reduce((sum, one) => sum + (one?.length ?? 0), 0)

export async function reschedule(
  emailId: string,
  scope: MailScope,
  given: ScheduledTime,
  { db, codec, nowMs, withMemory }: { db: Db; codec: ContentCodec; nowMs: number; withMemory: WithMemory },
): Promise<ScheduledMessage> {
  const wish = checkScheduledTime(given) as ScheduledWish
  const found = await messageOf(db, emailId, scope)
  const [first] = found
  const clockOffsetMs = first.test ? await getTestClockOffsetMs(db, first.tenantId) : 0
  const atMs = resolveScheduledTime(wish, nowMs + clockOffsetMs, { acceptedAtMs: first.acceptedAt.getTime() })
  if (isCancelled(found) || found.some(hasLeft)) throw refusalOf(found)
  if (found.some((one) => one.status === 'held')) throw isHeld()
  const scheduledAt = new Date(atMs)
  return withMemory(first, async () => {
    const body = await findContentBody(db, first)
    if (!body) throw refusalOf(found)
    // The Date field and the signatures have the time at which the message leaves.
    const content = { ...(await codec.decode(body, first.tenantId)), acceptedAtMs: atMs }
    const rewritten = await codec.encode(content, { tenantId: first.tenantId, sizeOctets: sizeOf(content.message) })
    return db.transaction(async (tx) => {
      const locked = await lockUnsent(tx, first.tenantId, idsOf(found))
      if (locked.length < found.length) throw refusalOf(await messageOf(tx, emailId, scope))
      if (locked.some((one) => one.isHeld)) throw isHeld()
      await scheduleLocked(tx, first.tenantId, idsOf(found), new Date(atMs - clockOffsetMs))
      await setSchedule(tx, found, scheduledAt, rewritten)
      return shown(found, { scheduledAt })
    })
  })
}
