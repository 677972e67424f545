/**
 * Detects reputation blocks, rate refusals and shutdowns in a provider's replies: refusals of Postrider's address, of the amount and speed of
 * its mail, or of all mail. The provider is then sent less, or sending backs off, because the next email would get the same reply.
 */
import { classify } from '#bounces'
import type { RecipientResult, Reply } from '#smtp'
import { isShutdown } from './providers.ts'
import type { PathLimiter } from './shaping.ts'

/** Applies a provider's replies to one message to the path limits. */
export function applyReplies(limiter: PathLimiter, recipients: readonly RecipientResult[]): void {
  const refusals = recipients.flatMap((one) => (one.state === 'refused' ? [one.reply] : []))
  const throttle = refusals.find((reply) => limiter.isThrottle(reply))
  const block = refusals.find((reply) => {
    const { fault, classification } = classify(reply)
    // A rate limit can also be a matter of reputation; then the rate is lowered without a backoff.
    return fault === 'reputation' && (classification === 'spam_block' || !limiter.isThrottle(reply))
  })
  const shutdown = refusals.find(isShutdown)
  if (block) limiter.blocked(block.text)
  else if (throttle) limiter.rateLimited(throttle.text)
  else if (shutdown) limiter.shutDown(shutdown.text)
  else if (refusals.length > 0 || recipients[0]?.state === 'accepted') limiter.accepted(1)
}

/**
 * Before MAIL the server knows only Postrider's address. A reply that sounds like a fault of the sender, such as a missing PTR record,
 * therefore concerns that address.
 */
export function isBlockedAtGreeting(reply: Reply): boolean {
  const { fault } = classify(reply)
  return fault === 'reputation' || fault === 'sender'
}
