/**
 * Detects reputation blocks and rate refusals in a provider's replies: refusals of Postrider's address, or of the amount and speed of its
 * mail. The provider is then sent less, or sending backs off, because the next email would get the same reply.
 */
import { classify } from '#bounces'
import type { RecipientResult, Reply } from '#smtp'
import type { Shape } from './shaping.ts'

/** Applies a provider's replies to one message to the path limits. */
export function shapeBy(shape: Shape, recipients: readonly RecipientResult[]): void {
  const refusals = recipients.flatMap((one) => (one.state === 'refused' ? [one.reply] : []))
  const throttle = refusals.find((reply) => shape.isThrottle(reply))
  const distrust = refusals.find((reply) => {
    const { fault, classification } = classify(reply)
    // A rate limit can also be a matter of reputation; then the rate is lowered without a backoff.
    return fault === 'reputation' && (classification === 'spam_block' || !shape.isThrottle(reply))
  })
  if (distrust) shape.distrusted(distrust.text)
  else if (throttle) shape.throttled(throttle.text)
  else if (refusals.length > 0 || recipients[0]?.state === 'accepted') shape.accepted(1)
}

/**
 * Before MAIL the server knows only Postrider's address. A reply that sounds like a fault of the sender, such as a missing PTR record,
 * therefore concerns that address.
 */
export function isDistrustAtDoor(reply: Reply): boolean {
  const { fault } = classify(reply)
  return fault === 'reputation' || fault === 'sender'
}
