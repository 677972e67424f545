/** Sends the messages of both versions of SES's API. */
import type { AcceptedSubmission } from '#accept'
import type { Credential } from '#credentials'
import type { SesMail } from '#ses'
import { callerOf } from './v1/send-emails.ts'
import { keepingRenderer, type VendorDeps } from './vendor-api.ts'

/** Sends a message in either form; the id is that of the message. */
export async function sendSesMail(mail: SesMail, credential: Credential, { accept }: VendorDeps) {
  const { renderer, result } = keepingRenderer<AcceptedSubmission>()
  const caller = callerOf(credential)
  const sent =
    'raw' in mail
      ? await accept.sendRaw(undefined, mail.raw, caller, renderer)
      : await accept.send(undefined, mail.submission, caller, renderer)
  return { id: result().id, sent }
}
