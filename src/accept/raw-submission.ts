/** Validates a raw message and reads the facts that acceptance needs. Its size is limited before it is decoded. */
import { Refusal } from '#base'
import { type Originator, readRaw } from '#mail'
import { checkScheduledTime, type ScheduledWish } from './scheduled-time.ts'
import type { RawSubmission } from './submission.ts'
import { base64Octets } from './validate-attachments.ts'
import { checkMetadata, checkSender, checkTag, largestMessageOctets } from './validate-submission.ts'

export interface CheckedRaw {
  octets: number
  /** The fields that identify the sender, From first; `field` is the name. */
  originators: Originator[]
  subject: string
  messageId: string | undefined
  takesFeedbackId: boolean
  tag: string | null
  metadata: Record<string, string> | null
  /** null: sent at once. */
  scheduled: ScheduledWish | null
}

const originatorForms =
  'Write the header once, with one address: name@example.com or "Name" <name@example.com>. Quote names that contain , : ; or @'

const carriageReturn = 0x0d
const lineFeed = 0x0a

/** By index, because millions of regular expression matches or iterator steps take seconds; undefined if it is not ASCII. */
function withoutLineEnds(text: string): string | undefined {
  if (!text.includes('\n') && !text.includes('\r')) return text
  const octets = Buffer.from(text)
  if (octets.length !== text.length) return undefined
  let length = 0
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    if (octet !== carriageReturn && octet !== lineFeed) octets[length++] = octet
  }
  return octets.toString('latin1', 0, length)
}

const rawProblems: Record<Extract<ReturnType<typeof readRaw>, string>, string> = {
  'no-header-block': 'has no header block',
  'no-from': 'has no From header',
  'several-from': 'has more than one From header',
  'bad-from': 'has a From header that is ambiguous or not exactly one address',
  'header-line-malformed': 'has a malformed line in its header block',
}

const refuseRaw = (message: string, suggestion?: string): never => {
  throw new Refusal('invalid_raw_message', {
    field: 'rawMessage',
    message: `rawMessage ${message}`,
    ...(suggestion === undefined ? {} : { suggestion }),
  })
}

function rawOctets({ rawMessage, traceOctets = 0 }: RawSubmission): Buffer {
  const compact = withoutLineEnds(rawMessage)
  const tooLarge = () => new Refusal('payload_too_large', { field: 'rawMessage', message: 'rawMessage is larger than 14 MB' })
  if (compact === undefined) return refuseRaw('is not standard base64')
  // Longer base64 is refused without decoding.
  if (compact.length > largestMessageOctets * 1.5) throw tooLarge()
  const octets = base64Octets(compact) ?? refuseRaw('is not standard base64')
  if (octets > largestMessageOctets + traceOctets) throw tooLarge()
  return Buffer.from(compact, 'base64')
}

/** The facts in a raw message; refuses `invalid_raw_message` and `payload_too_large`. */
export function checkRaw(submission: RawSubmission): CheckedRaw {
  checkSender(submission.from)
  const octets = rawOctets(submission)
  const facts = readRaw(octets)
  if (typeof facts === 'string') return refuseRaw(rawProblems[facts], facts === 'bad-from' ? originatorForms : undefined)
  if ('unreadable' in facts.originators)
    return refuseRaw(`has an ambiguous ${facts.originators.unreadable} header: programs read it differently`, originatorForms)
  return {
    octets: octets.length,
    originators: [{ field: 'From', address: facts.from.address }, ...facts.originators],
    subject: facts.subject,
    messageId: facts.messageId,
    takesFeedbackId: facts.takesFeedbackId,
    tag: checkTag(submission.tag),
    metadata: checkMetadata(submission.metadata, submission.vendor),
    scheduled: checkScheduledTime(submission.scheduledAt),
  }
}

/** A raw message's subject may contain characters that a text column cannot store. */
export const storableSubject = (text: string) => text.toWellFormed().replaceAll('\0', '').slice(0, 998)
