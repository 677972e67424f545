/** The formats of webhooks: bodies and headers as Postrider or another vendor sends them. */
import { mailgunBody } from './mailgun-format.ts'
import type { WebhookFormat } from './manage-webhooks.ts'
import { postalBody, postalHeaders } from './postal-format.ts'
import { postmarkBody } from './postmark-format.ts'
import { resendBody, resendHeaders } from './resend-format.ts'
import { sendgridBody } from './sendgrid-format.ts'
import { sendgridHeaders } from './sendgrid-signature.ts'
import { sesBody } from './ses-format.ts'
import type { Signed } from './sign-request.ts'
import type { InstallationKey } from './signing-keys.ts'

interface Signing {
  key: InstallationKey
  /** The webhook's current one. */
  secret: Buffer
  own: Readonly<Record<string, string>>
}

interface FormatFacts {
  secret: Buffer
  nowMs: number
  isTest: boolean
  /** Of a MessageHeld; undefined: not recorded. */
  holdReason?: string | undefined
  /** The event suppressed the email's recipient. */
  isSuppressed: boolean
}

interface Format {
  /** The body to sign and send. The event of a body that is already in the format stays as it is, because replays repeat it. */
  body(own: Buffer, messageId: string | undefined, by: FormatFacts): Buffer
  /** Headers in addition to Postrider's own, which are given. */
  headers(signed: Signed, by: Signing): Promise<Record<string, string>>
}

const noHeaders = async () => ({})

export const formats: Readonly<Record<WebhookFormat, Format>> = {
  postrider: { body: (own) => own, headers: noHeaders },
  postal: { body: postalBody, headers: (signed, { key }) => postalHeaders(signed, key) },
  resend: { body: resendBody, headers: async (_signed, { own }) => resendHeaders(own) },
  sendgrid: { body: sendgridBody, headers: async (signed, { secret }) => sendgridHeaders(signed, secret) },
  ses: { body: sesBody, headers: noHeaders },
  postmark: { body: (own, messageId, { isSuppressed }) => postmarkBody(own, messageId, isSuppressed), headers: noHeaders },
  mailgun: { body: (own, _messageId, by) => mailgunBody(own, by), headers: noHeaders },
}
