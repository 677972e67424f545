/**
 * The API of SendGrid: at the root for requests with a Bearer key below /v3, and under /compat/sendgrid. Each personalization is one message;
 * all of a request are accepted together or not at all.
 */
import type { IncomingHttpHeaders } from 'node:http'
import Type from 'typebox'
import type { BatchResult } from '#accept'
import { personalize, readSendGridMail, SendGridRefusal, sendgridFailure, sendgridScopes } from '#sendgrid'
import { keyIn } from './authorize.ts'
import { inTurns, lengthOf, refuseIncomplete, whenRoom } from './many-messages.ts'
import { sendgridSuppressionEndpoints } from './sendgrid-suppressions.ts'
import { sendgridWebhookEndpoints } from './sendgrid-webhooks.ts'
import { callerOf } from './v1/send-emails.ts'
import { keepingRenderer, type VendorApi, type VendorEndpoint } from './vendor-api.ts'

/** SendGrid's paths, served or not. */
const rootPath = /^\/v3(?:\/|$)/
const bearer = /^bearer\s/i
const maxPersonalizations = 1000

const Address = Type.Object({ email: Type.String(), name: Type.String() })
const pairs = (maxProperties: number) => Type.Unsafe<object>({ type: 'object', maxProperties, additionalProperties: { type: 'string' } })
const setting = Type.Object({ enable: Type.Boolean(), text: Type.String(), html: Type.String(), substitution_tag: Type.String() })
/** The counts of one personalization are averages, because the bounds are those of the whole body. */
const Mail = Type.Object({
  from: Address,
  subject: Type.String(),
  personalizations: Type.Array(
    Type.Object({
      to: Type.Array(Address, { maxItems: 1 }),
      cc: Type.Array(Address, { maxItems: 0 }),
      bcc: Type.Array(Address, { maxItems: 0 }),
      from: Address,
      subject: Type.String(),
      headers: pairs(5),
      custom_args: pairs(10),
      substitutions: pairs(30),
    }),
    { maxItems: maxPersonalizations },
  ),
  reply_to_list: Type.Array(Address, { maxItems: 50 }),
  content: Type.Array(Type.Object({ type: Type.String(), value: Type.String() }), { maxItems: 10 }),
  headers: pairs(50),
  custom_args: pairs(50),
  categories: Type.Array(Type.String(), { maxItems: 10 }),
  attachments: Type.Array(
    Type.Object({
      content: Type.String(),
      type: Type.String(),
      filename: Type.String(),
      disposition: Type.String(),
      content_id: Type.String(),
    }),
    { maxItems: 100 },
  ),
  mail_settings: Type.Array(setting, { maxItems: 10 }),
  tracking_settings: Type.Array(setting, { maxItems: 10 }),
})

/** Ends a submission in sandbox mode, after all checks of a real one and before its commit. */
class OnlyChecked extends Error {}

const sendEndpoint: VendorEndpoint = {
  methods: ['POST'],
  path: '/v3/mail/send',
  name: 'sendgrid.mail.send',
  summary: 'Send a mail to up to 1,000 personalizations',
  permission: 'emails:send',
  body: Mail,
  sends: true,
  async answer(call, { accept, ids }) {
    const { body, credential } = call
    const mail = readSendGridMail(body)
    const caller = callerOf(credential)
    const requestId = mail.personalizations.length > 1 ? ids.token(22) : undefined
    const send = async (gone?: AbortSignal) => {
      const submissions = await inTurns(personalize(mail, requestId), gone)
      const { renderer, result } = keepingRenderer<readonly BatchResult[]>()
      const render = (results: readonly BatchResult[]) => {
        refuseIncomplete(results)
        if (mail.isSandbox) throw new OnlyChecked()
        return renderer.render(results)
      }
      const elements = submissions.map((submission) => ({ submission }))
      const sent = await accept.sendEach(undefined, elements, caller, { render }, maxPersonalizations).catch((error: unknown) => {
        if (error instanceof OnlyChecked) return undefined
        throw error
      })
      if (!sent) return { data: undefined }
      const [first] = result().flatMap((one) => ('accepted' in one ? [one.accepted.id] : []))
      return { status: 202, data: undefined, headers: { 'x-message-id': requestId ?? first ?? '' }, sent }
    }
    return whenRoom(call, mail.personalizations.length * lengthOf(mail), send)
  },
}

const scopesEndpoint: VendorEndpoint = {
  methods: ['GET'],
  path: '/v3/scopes',
  name: 'sendgrid.scopes.list',
  summary: "List the key's scopes",
  permission: 'any key',
  answer: async ({ credential }) => ({ data: { scopes: sendgridScopes(credential.permissions) } }),
}

/** A key of Postrider, with or without `SG.` before it, which silences a warning of SendGrid's SDKs. */
function keyOf(headers: IncomingHttpHeaders): string {
  const key = keyIn(headers.authorization)
  if (headers['on-behalf-of'] !== undefined)
    throw new SendGridRefusal(403, 'the header On-Behalf-Of is not served: use a key of the tenant', null, 'Create a key for the tenant')
  return key.replace(/^SG\./, '')
}

export const sendgridApi: VendorApi = {
  name: 'sendgrid',
  page: 'docs/sendgrid-api.md',
  isAddressed: ({ authorization }, path) => authorization !== undefined && bearer.test(authorization) && rootPath.test(path),
  keyOf,
  failure: sendgridFailure,
  endpoints: [sendEndpoint, scopesEndpoint, ...sendgridSuppressionEndpoints, ...sendgridWebhookEndpoints],
}
