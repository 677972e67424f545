/**
 * What refusals say of us: of what is thought of our address, and of how much and how fast we send. Then the provider is sent less or
 * is left alone, because the next email would be answered the same.
 */
import { classify } from '#bounces'
import type { RecipientResult, Reply } from '#smtp'
import type { Shape } from './shaping.ts'

/** What the provider's answers to one message say of how we may send. */
export function shapeBy(shape: Shape, recipients: readonly RecipientResult[]): void {
  const refusals = recipients.flatMap((one) => (one.state === 'refused' ? [one.reply] : []))
  const throttle = refusals.find((reply) => shape.isThrottle(reply))
  const distrust = refusals.find((reply) => {
    const { fault, classification } = classify(reply)
    // Our rate is a matter of reputation too, and then nothing has to rest.
    return fault === 'reputation' && (classification === 'spam_block' || !shape.isThrottle(reply))
  })
  if (distrust) shape.distrusted(distrust.text)
  else if (throttle) shape.throttled(throttle.text)
  else if (refusals.length > 0 || recipients[0]?.state === 'accepted') shape.accepted(1)
}

/** Before MAIL nobody was named but us: what sounds like a sender's fault there, as a missing PTR record does, is our address's too. */
export function isDistrustAtDoor(reply: Reply): boolean {
  const { fault } = classify(reply)
  return fault === 'reputation' || fault === 'sender'
}
