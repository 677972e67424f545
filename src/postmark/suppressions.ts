/** Entries of suppression lists as Postmark's suppressions. */
import type { Suppression } from '#suppressions'
import { JsonFields } from '#vendors'
import { postmarkReason } from '#webhooks'
import { PostmarkRefusal, refusePostmarkField } from './errors.ts'

const maxEntries = 50
const maxAddressLength = 1000

export function postmarkSuppression({ address, reason, source, createdAt }: Suppression) {
  return {
    EmailAddress: address,
    ...postmarkReason(reason, source === 'automatic'),
    CreatedAt: createdAt.toISOString(),
  }
}

/** The addresses in the body of a creation or a deletion, as given. */
export function readSuppressionList(body: unknown): string[] {
  const fields = new JsonFields(body, '', refusePostmarkField)
  const entries = fields.objects('Suppressions', maxEntries)
  if (entries.length === 0) throw new PostmarkRefusal(300, "The 'Suppressions' field is missing.")
  const addresses = entries.map((entry) => {
    const address = entry.needed('EmailAddress', maxAddressLength)
    entry.refuseOthers()
    return address
  })
  fields.refuseOthers()
  return addresses
}
