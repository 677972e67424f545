/** Prepares the elements of a batch: each is accepted or refused for itself, within limits of the whole batch. */
import { type Clock, nextTurn, Refusal, wrongField } from '#base'
import type { Db } from '#db'
import type { Mailbox } from '#mail'
import type { Tenant } from '#tenants'
import { withinSandboxRules } from './authorize-sender.ts'
import type { BatchResult, Submission } from './submission.ts'
import { type Prepared, type PrepareFacts, prepareSubmission } from './submission-rows.ts'
import { checkSubmission } from './validate-submission.ts'

const maxBatchRecipients = 1000
const maxElementRecipients = 50
/**
 * A batch yields the event loop after this many octets or elements: an element of few octets can have 50 Reply-To addresses, and takes more than
 * a millisecond.
 */
const maxOctetsPerTick = 262_144
const maxElementsPerTick = 8

/** An element of a batch, or the refusal of its shape by the entry point; then its recipients are only counted. */
export type BatchElement<Sent = Omit<Submission, 'from'>> = { submission: Sent } | { refused: Refusal; recipients: number }

/** Also an element that is made for the tenant; `make` may refuse. */
export type UnmadeElement = BatchElement | { make: (tenant: Tenant) => Promise<Omit<Submission, 'from'>>; recipients: number }

/** As the largest body: several elements can have much larger content than the body that they came in. */
const maxMadeLength = 64 * 1_048_576

/** Makes the elements for the tenant, one after the other. One that cannot be made fails alone. */
export async function makeElements(elements: readonly UnmadeElement[], tenant: Tenant): Promise<BatchElement[]> {
  const made: BatchElement[] = []
  let length = 0
  for (const [index, element] of elements.entries()) {
    if (!('make' in element)) {
      made.push(element)
      continue
    }
    const { make, recipients } = element
    try {
      if (length > maxMadeLength)
        throw wrongField('templateId', 'would make the batch larger than 64 MiB', 'payload_too_large', 'Send fewer emails in a batch')
      const submission = await make(tenant)
      length += (submission.html?.length ?? 0) + (submission.text?.length ?? 0)
      made.push({ submission })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      made.push({ refused: within(error, `emails[${index}]`), recipients })
    }
  }
  return made
}

/** Prepares the elements one after the other: a refused one does not refuse the others. Large batches let the event loop take other turns. */
export async function prepareBatch(
  elements: readonly BatchElement<Submission>[],
  factsOf: (from: Mailbox) => Promise<PrepareFacts>,
  { db, clock }: { db: Db; clock: Clock },
): Promise<{ submissions: Prepared[]; results: BatchResult[] }> {
  const submissions: Prepared[] = []
  const results: BatchResult[] = []
  let octetsInTurn = 0
  let elementsInTurn = 0
  for (const [index, element] of elements.entries()) {
    if (octetsInTurn > maxOctetsPerTick || elementsInTurn === maxElementsPerTick) {
      await nextTurn()
      octetsInTurn = 0
      elementsInTurn = 0
    }
    elementsInTurn++
    if ('refused' in element) {
      results.push({ refused: element.refused })
      continue
    }
    try {
      const { submission } = element
      const checked = checkSubmission(submission)
      const { envelope } = checked.recipients
      if (!submission.vendor) refuseCrowdedElement(envelope.length)
      const facts = await factsOf(checked.from)
      const prepared = await withinSandboxRules({ sender: facts.sender, envelope }, { db, nowMs: clock.nowMs() }, () =>
        prepareSubmission(checked, submission, facts),
      )
      submissions.push(prepared)
      octetsInTurn += prepared.sizeOctets
      results.push({ accepted: prepared.accepted })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      results.push({ refused: within(error, `emails[${index}]`) })
    }
  }
  return { submissions, results }
}

/** Checks the elements without a sender, with the same turns as `prepareBatch`. Refuses a batch that is too large. */
export async function checkBatch(
  elements: readonly BatchElement<Submission>[],
  maxElements: number,
): Promise<({ submission: Submission } | { refused: Refusal })[]> {
  refuseOverfullBatch(elements, maxElements)
  const checked: ({ submission: Submission } | { refused: Refusal })[] = []
  for (const [index, element] of elements.entries()) {
    if (index > 0 && index % maxElementsPerTick === 0) await nextTurn()
    try {
      if ('submission' in element) checkSubmission(element.submission)
      checked.push(element)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      checked.push({ refused: error })
    }
  }
  return checked
}

export function refuseOverfullBatch(elements: readonly (UnmadeElement | BatchElement<Submission>)[], maxElements: number): void {
  if (elements.length < 1 || elements.length > maxElements) throw wrongField('emails', `must have 1 to ${maxElements} elements`)
  const recipients = elements.reduce((sum, one) => sum + ('submission' in one ? recipientsOf(one.submission) : one.recipients), 0)
  if (recipients > maxBatchRecipients)
    throw wrongField('emails', `have ${recipients} recipients in total: the maximum is ${maxBatchRecipients}`)
}

const recipientsOf = ({ to, cc, bcc }: Pick<Submission, 'to' | 'cc' | 'bcc'>) => to.length + (cc?.length ?? 0) + (bcc?.length ?? 0)

function refuseCrowdedElement(recipients: number): void {
  if (recipients <= maxElementRecipients) return
  throw new Refusal('validation_error', {
    field: 'to',
    message: `to, cc and bcc have ${recipients} addresses in total: the maximum in a batch is ${maxElementRecipients}`,
  })
}

/** The same refusal, with its field paths prefixed by `path`. */
function within(refusal: Refusal, path: string): Refusal {
  const field = refusal.field === undefined || refusal.field === 'from' ? refusal.field : `${path}.${refusal.field}`
  return new Refusal(refusal.code, {
    message: refusal.message,
    suggestion: refusal.suggestion,
    ...(field === undefined ? {} : { field }),
    ...(refusal.details ? { details: refusal.details.map((one) => ({ ...one, field: `${path}.${one.field}` })) } : {}),
  })
}
