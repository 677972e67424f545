/**
 * The API of Mailgun: at the root for requests with Basic authentication as `api`, and under /compat/mailgun. The messages of a request are
 * accepted together or not at all.
 */
import type { IncomingHttpHeaders } from 'node:http'
import Type from 'typebox'
import type { AcceptedSubmission, BatchResult, Caller } from '#accept'
import { Refusal } from '#base'
import {
  MailgunRefusal,
  mailgunFailure,
  mailgunRawSubmission,
  mailgunSubmissions,
  maxMailgunRecipients,
  messagesOf,
  readMailgunMessage,
  readMailgunRaw,
} from '#mailgun'
import { mailgunDomainEndpoints, refuseUnknownDomain } from './mailgun-domains.ts'
import { mailgunEventEndpoints } from './mailgun-events.ts'
import { mailgunSuppressionEndpoints } from './mailgun-suppressions.ts'
import { mailgunWebhookEndpoints } from './mailgun-webhooks.ts'
import { inTurns, lengthOf, refuseIncomplete, whenRoom } from './many-messages.ts'
import { callerOf } from './v1/send-emails.ts'
import { keepingRenderer, type VendorApi, type VendorCall, type VendorDeps, type VendorEndpoint } from './vendor-api.ts'

/** Versions of Mailgun's API, served or not; /v1 is Postrider's own. */
const rootPath = /^\/v[2-5](?:\/|$)/
const basic = /^basic +([\w+/=-]{1,2000})$/i
const user = 'api:'

const Values = Type.Unsafe<object>({ type: 'object', maxProperties: 25, additionalProperties: { type: 'string' } })
/** Limits the recipient variables, with the average number of values of a recipient. */
const Message = Type.Object({
  'recipient-variables': Type.Unsafe<object>({ type: 'object', maxProperties: maxMailgunRecipients, additionalProperties: Values }),
})

/** In test mode, mail of any key is for the simulator. */
const callerFor = ({ credential }: VendorCall, isTest: boolean): Caller => ({
  ...callerOf(credential),
  ...(isTest ? { mode: 'test' } : {}),
})

const queued = (id: string) => ({ id, message: 'Queued. Thank you.' })

async function send(call: VendorCall, deps: VendorDeps) {
  const { accept, ids, clock } = deps
  await refuseUnknownDomain(call, deps)
  const message = readMailgunMessage(call.body, clock.nowMs())
  const caller = callerFor(call, message.isTest)
  const messageId = messagesOf(message) > 1 ? `${ids.token(22)}@${call.params.domain}` : undefined
  return whenRoom(call, messagesOf(message) * lengthOf(message), async (gone) => {
    const submissions = await inTurns(mailgunSubmissions(message, messageId), gone)
    const { renderer, result } = keepingRenderer<readonly BatchResult[]>()
    const render = (results: readonly BatchResult[]) => {
      refuseIncomplete(results)
      return renderer.render(results)
    }
    const elements = submissions.map((submission) => ({ submission }))
    const sent = await accept.sendEach(undefined, elements, caller, { render }, maxMailgunRecipients)
    const [first] = result().flatMap((one) => ('accepted' in one ? [one.accepted.messageId] : []))
    return { data: queued(messageId === undefined ? (first ?? '') : `<${messageId}>`), sent }
  })
}

async function sendRaw(call: VendorCall, deps: VendorDeps) {
  const { accept, clock } = deps
  await refuseUnknownDomain(call, deps)
  const raw = readMailgunRaw(call.body, clock.nowMs())
  const { renderer, result } = keepingRenderer<AcceptedSubmission>()
  const sent = await accept.sendRaw(undefined, mailgunRawSubmission(raw), callerFor(call, raw.isTest), renderer)
  return { data: queued(result().messageId), sent }
}

const sendEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: '/v3/:domain/messages',
    name: 'mailgun.messages.send',
    summary: 'Send a message to up to 1,000 recipients',
    permission: 'emails:send',
    body: Message,
    formFields: { json: ['recipient-variables'] },
    sends: true,
    answer: send,
  },
  {
    methods: ['POST'],
    path: '/v3/:domain/messages.mime',
    name: 'mailgun.messages.mime',
    summary: 'Send a complete message',
    permission: 'emails:send',
    formFields: { hidden: ['message'] },
    sends: true,
    answer: sendRaw,
  },
]

/** The user name and the password as one text; undefined without Basic authentication. */
function credentialsIn({ authorization }: IncomingHttpHeaders): string | undefined {
  const encoded = basic.exec(authorization?.trim() ?? '')?.[1]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString()
}

function keyOf(headers: IncomingHttpHeaders): string {
  if (headers['x-mailgun-on-behalf-of'] !== undefined)
    throw new MailgunRefusal(403, 'the header X-Mailgun-On-Behalf-Of is not served: use a key of the tenant')
  const given = credentialsIn(headers)
  if (given === undefined) throw new Refusal('authentication_required')
  if (!given.startsWith(user)) throw new Refusal('invalid_api_key')
  return given.slice(user.length)
}

export const mailgunApi: VendorApi = {
  name: 'mailgun',
  page: 'docs/mailgun-api.md',
  isAddressed: (headers, path) => rootPath.test(path) && credentialsIn(headers)?.startsWith(user) === true,
  keyOf,
  failure: mailgunFailure,
  takesForms: 'fields',
  endpoints: [
    ...sendEndpoints,
    ...mailgunEventEndpoints,
    ...mailgunSuppressionEndpoints,
    ...mailgunDomainEndpoints,
    ...mailgunWebhookEndpoints,
  ],
}
