/** Settings of APIs: the served APIs of other vendors, signatures of webhooks, and keys that can be shown again. */
import { choiceFrom, setting } from './setting.ts'

/** Whether the API of another vendor is served. */
const apiOf = (env: string, vendor: string) =>
  setting(env, '`on`', `serves the API of ${vendor}, for programs that were written for it: \`on\` or \`off\``, (v) => {
    if (v !== undefined && v !== 'on' && v !== 'off') throw new Error(`"${v}" is not on or off`)
    return v !== 'off'
  })

export const apiSettings = {
  webhookSignatureHeader: setting(
    'POSTRIDER_WEBHOOK_SIGNATURE_HEADER',
    'X-Webhook-Signature',
    "name of the header with a webhook's RSA signature; with `-KID` appended, of the header with its key id",
    (v) => {
      if (v !== undefined && !/^[A-Za-z0-9-]{1,100}$/.test(v)) throw new Error(`"${v}" is not a header name`)
      return v ?? 'X-Webhook-Signature'
    },
  ),
  postalApi: apiOf('POSTRIDER_POSTAL_API', 'Postal'),
  resendApi: apiOf('POSTRIDER_RESEND_API', 'Resend'),
  sesApi: apiOf('POSTRIDER_SES_API', 'Amazon SES'),
  sendgridApi: apiOf('POSTRIDER_SENDGRID_API', 'SendGrid'),
  postmarkApi: apiOf('POSTRIDER_POSTMARK_API', 'Postmark'),
  mailgunApi: apiOf('POSTRIDER_MAILGUN_API', 'Mailgun'),
  revealKeys: setting(
    'POSTRIDER_REVEAL_KEYS',
    'off',
    '`on` stores an encrypted copy of new keys, so that `reveal=true` can return them again',
    (v) => choiceFrom(v, ['on', 'off'], 'off') === 'on',
  ),
} as const
