/**
 * The API of Postmark: at the root for requests with X-Postmark-Server-Token, and under /compat/postmark. One MessageID stands for all
 * recipients of a message: the id of the first recipient's email.
 */
import type { IncomingHttpHeaders } from 'node:http'
import Type from 'typebox'
import {
  type AcceptedSubmission,
  type BatchElement,
  type BatchResult,
  checkBatch,
  checkSubmission,
  refuseOverfullBatch,
  type Submission,
} from '#accept'
import { Refusal } from '#base'
import type { Credential } from '#credentials'
import { type Email, findAttempts, findMessageRecipients, listEmails, listEmailsOfMessage } from '#emails'
import { parseMailbox } from '#mail'
import {
  inactiveRefusal,
  maxPostmarkBatch,
  maxPostmarkRecipients,
  maxPostmarkVisits,
  PostmarkRefusal,
  postmarkDetails,
  postmarkError,
  postmarkFailure,
  postmarkListed,
  postmarkSent,
  readMessageQuery,
  readPostmarkBatch,
  readPostmarkEmail,
} from '#postmark'
import { suppressed } from '#suppressions'
import { findHits } from '#tracking'
import { addressIn, recipientEndpoints } from './postmark-recipients.ts'
import { postmarkWebhookEndpoints } from './postmark-webhooks.ts'
import type { CallerConnection } from './v1/caller-connection.ts'
import { messageTurns, searchTurns } from './v1/search-turns.ts'
import { callerOf } from './v1/send-emails.ts'
import type { VendorApi, VendorDeps, VendorEndpoint } from './vendor-api.ts'

const tokenHeader = 'x-postmark-server-token'
const accountHeader = 'x-postmark-account-token'
const testToken = 'POSTMARK_API_TEST'
/** First segments of Postmark's paths, served or not. */
const rootPath =
  /^\/(?:email|messages|bounces|deliverystats|message-streams|templates|server|servers|stats|triggers|webhooks|domains|senders|data-removals)(?:\/|$)/i

const noSuchMessage = () => new PostmarkRefusal(701, 'This message does not exist.', 404)

const Message = Type.Object({
  From: Type.String(),
  To: Type.String(),
  Headers: Type.Array(Type.Object({ Name: Type.String(), Value: Type.String() }), { maxItems: 50 }),
  Metadata: Type.Unsafe<object>({ type: 'object', maxProperties: 10, additionalProperties: { type: 'string' } }),
  Attachments: Type.Array(Type.Object({ Name: Type.String(), Content: Type.String(), ContentType: Type.String() }), { maxItems: 100 }),
})
const addressesOf = ({ to, cc, bcc }: Pick<Submission, 'to' | 'cc' | 'bcc'>) => [
  ...new Set([...to, ...(cc ?? []), ...(bcc ?? [])].flatMap((text) => parseMailbox(text)?.address.text ?? [])),
]

/** Returns a function that finds the suppressed recipients of a submission, with one query for all of them. */
async function inactiveAmong(submissions: readonly Submission[], { tenantId }: Credential, { db, tenants }: VendorDeps) {
  const owner = tenantId ?? (await tenants.default()).id
  const recipientsOf = (one: Submission) => addressesOf(one).map((address) => ({ tenantId: owner, address }))
  const isSuppressed = await suppressed(db, submissions.flatMap(recipientsOf))
  return (one: Submission) =>
    recipientsOf(one)
      .filter(isSuppressed)
      .map(({ address }) => address)
}

/** Postmark refuses a message whose recipients are all suppressed. */
function refuseInactive(submission: Submission, inactive: readonly string[]): void {
  const { length } = addressesOf(submission)
  if (length > 0 && inactive.length === length) throw inactiveRefusal(inactive)
}

const rehearsed = (submission: Submission, nowMs: number) =>
  postmarkSent({ id: '00000000-0000-0000-0000-000000000000' }, submission, { nowMs, message: 'Test job accepted' })

const sendEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: '/email',
    name: 'postmark.email',
    summary: 'Send a message',
    permission: 'emails:send',
    body: Message,
    sends: true,
    async rehearse(body, clock) {
      const submission = readPostmarkEmail(body)
      checkSubmission(submission)
      return rehearsed(submission, clock.nowMs())
    },
    async answer({ body, credential }, deps) {
      const submission = readPostmarkEmail(body)
      checkSubmission(submission)
      const inactive = (await inactiveAmong([submission], credential, deps))(submission)
      refuseInactive(submission, inactive)
      const render = (accepted: AcceptedSubmission) =>
        Buffer.from(JSON.stringify(postmarkSent(accepted, submission, { nowMs: deps.clock.nowMs(), inactive })))
      const sent = await deps.accept.send(undefined, submission, callerOf(credential), { render })
      return { data: sent.body, sent }
    },
  },
  {
    methods: ['POST'],
    path: '/email/batch',
    name: 'postmark.email.batch',
    summary: 'Send up to 500 messages',
    permission: 'emails:send',
    body: Type.Array(Message, { maxItems: maxPostmarkBatch }),
    sends: true,
    async rehearse(body, clock) {
      const checked = await checkBatch(readPostmarkBatch(body), maxPostmarkBatch)
      return checked.map((one) => ('refused' in one ? postmarkError(one.refused) : rehearsed(one.submission, clock.nowMs())))
    },
    async answer({ body, credential }, deps) {
      const read = readPostmarkBatch(body)
      refuseOverfullBatch(read, maxPostmarkBatch)
      const submissions = read.flatMap((one) => ('submission' in one ? [one.submission] : []))
      const inactiveOf = await inactiveAmong(submissions, credential, deps)
      const elements = read.map((one) => withoutInactive(one, inactiveOf))
      const toBody = (result: BatchResult, index: number) => {
        const element = elements[index]
        if ('refused' in result || !element || 'refused' in element)
          return postmarkError('refused' in result ? result.refused : new Refusal('internal_error'))
        const { submission } = element
        return postmarkSent(result.accepted, submission, { nowMs: deps.clock.nowMs(), inactive: inactiveOf(submission) })
      }
      const render = (results: readonly BatchResult[]) => Buffer.from(JSON.stringify(results.map(toBody)))
      const sent = await deps.accept.sendEach(undefined, elements, callerOf(credential), { render }, maxPostmarkBatch)
      return { data: sent.body, sent }
    },
  },
]

function withoutInactive(element: BatchElement<Submission>, inactiveOf: (submission: Submission) => string[]): BatchElement<Submission> {
  if ('refused' in element) return element
  try {
    refuseInactive(element.submission, inactiveOf(element.submission))
    return element
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { refused: error, recipients: 0 }
  }
}

const messageEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['GET'],
    path: '/messages/outbound',
    name: 'postmark.messages.outbound',
    summary: 'List messages, newest first',
    permission: 'emails:read',
    async answer({ query, credential: { tenantId }, connection }, { db, clock }) {
      const { count, offset, recipient, sender, ...filter } = readMessageQuery(query)
      const wanted = {
        ...filter,
        tenantId,
        recipient: addressIn('recipient', recipient),
        sender: addressIn('fromemail', sender),
      }
      const { emails, total } = await searchTurns.run({ tenantId, gone: connection.gone }, () =>
        listEmails(db, wanted, { number: 1, size: offset + count }, clock.nowMs()),
      )
      const page = emails.slice(offset)
      const recipients = await findMessageRecipients(db, page)
      return { data: { TotalCount: total, Messages: page.map((one) => postmarkListed(one, recipients.get(one.contentId) ?? [one])) } }
    },
  },
  {
    methods: ['GET'],
    path: '/messages/outbound/:id/details',
    name: 'postmark.messages.details',
    summary: 'Get a message with its events',
    large: true,
    permission: 'emails:read',
    async answer(call, deps) {
      const { tenantId } = call.credential
      const facts = await messageTurns.run({ tenantId, gone: call.connection.gone }, () => readFacts(call.params.id ?? '', tenantId, deps))
      return { data: postmarkDetails({ ...facts, ...(await contentOf(facts.emails[0], deps, call.connection)) }) }
    },
  },
  {
    methods: ['GET'],
    path: '/messages/outbound/:id/dump',
    name: 'postmark.messages.dump',
    summary: 'Get a message as sent',
    large: true,
    permission: 'emails:read',
    async answer(call, deps) {
      const [first] = await listEmailsOfMessage(deps.db, call.params.id ?? '', call.credential.tenantId)
      if (!first) throw noSuchMessage()
      return { data: { Body: (await contentOf(first, deps, call.connection)).raw ?? '' } }
    },
  },
]

async function readFacts(id: string, tenantId: string | null, { db }: VendorDeps) {
  const [first, ...others] = (await listEmailsOfMessage(db, id, tenantId)).slice(0, maxPostmarkRecipients)
  if (!first) throw noSuchMessage()
  const emails = [first, ...others] as const
  const ids = emails.map((one) => one.id)
  const [attempts, trackingEvents] = await Promise.all([
    findAttempts(db, first.tenantId, ids),
    findHits(db, first.tenantId, ids, maxPostmarkVisits),
  ])
  return { emails, attempts, trackingEvents }
}

async function contentOf(email: Email, { contents }: VendorDeps, connection: CallerConnection) {
  const read = await contents.use(email, connection, async (held) => {
    const { message, tracking } = await held.decode()
    return { content: message.kind === 'parts' ? message : undefined, tracking, ...(await held.read(new Set(['raw']))) }
  })
  const tracking = { opens: read?.tracking?.opens === true, clicks: read?.tracking?.clicks === true }
  return { content: read?.content, tracking, raw: read?.raw?.toString() }
}

const textIn = (headers: IncomingHttpHeaders, name: string) => {
  const value = headers[name]
  return (Array.isArray(value) ? value[0] : value)?.trim() ?? ''
}

export const postmarkApi: VendorApi = {
  name: 'postmark',
  page: 'docs/postmark-api.md',
  isAddressed: (headers, path) => (headers[tokenHeader] !== undefined || headers[accountHeader] !== undefined) && rootPath.test(path),
  keyOf(headers) {
    const key = textIn(headers, tokenHeader)
    if (key === '') throw new Refusal('authentication_required')
    return key
  },
  isRehearsal: (headers) => textIn(headers, tokenHeader) === testToken,
  failure: postmarkFailure,
  endpoints: [...sendEndpoints, ...messageEndpoints, ...recipientEndpoints, ...postmarkWebhookEndpoints],
}
