/** GET /emails/{emailId} (contract 7.8): one email with the requested content, deliveries and activity. */
import Type, { type Static } from 'typebox'
import { Refusal, wrongField } from '#base'
import { inSnapshot, type Queryable } from '#db'
import { type ContentPart, explain, type ShownContent } from '#delivery'
import { type Email, emailStatuses, findEmail, listAttempts } from '#emails'
import { findComplaint } from '#returns'
import { listHits } from '#tracking'
import { instantFields, instantOf, knownEmailId, nullable, tenantParameter, timesOf } from './common-schemas.ts'
import { hiddenFields, hiddenMark, hiddenText, isContentHidden } from './content-access.ts'
import { route } from './define-endpoint.ts'
import { AttemptSchema, deliveryToWire } from './delivery-schema.ts'
import { query } from './query-parameters.ts'

const Open = Type.Object({
  ipAddress: Type.String(),
  userAgent: Type.String(),
  ...instantFields,
  source: Type.Unsafe<'human' | 'machine' | 'unknown'>({
    type: 'string',
    enum: ['human', 'machine', 'unknown'],
    description: 'Human or machine, by best estimate',
  }),
  reason: Type.String({ description: 'Reason for the value of `source`' }),
})
const Click = Type.Object({ url: Type.String(), ...Open.properties })
const HitCounts = Type.Object({ human: Type.Integer(), machine: Type.Integer(), unknown: Type.Integer() })

const AttachmentSent = Type.Object({
  filename: Type.String(),
  contentType: Type.String(),
  size: Type.Integer({ description: 'Octets' }),
  hash: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256' }),
  data: Type.String({ contentEncoding: 'base64' }),
})

const EmailDetails = Type.Object({
  id: Type.String(),
  tenantId: Type.String(),
  to: Type.String(),
  from: Type.String(),
  subject: Type.String(),
  status: Type.Unsafe<Email['status']>({ type: 'string', enum: emailStatuses }),
  scope: Type.Unsafe<'outgoing'>({ type: 'string', enum: ['outgoing', 'incoming'] }),
  ...instantFields,
  messageId: Type.String(),
  scheduledAt: Type.Optional(Type.String({ format: 'date-time', description: 'When it leaves or left, if it was scheduled' })),
  cancelledAt: Type.Optional(
    Type.String({ format: 'date-time', description: 'When it was cancelled before it left; its status is hardfail' }),
  ),
  tag: Type.Optional(Type.String()),
  spam: Type.Boolean(),
  spamScore: Type.Number(),
  test: Type.Boolean({ description: 'Sent with a test key' }),
  ...hiddenFields,
  explanation: Type.Object(
    {
      now: Type.String(),
      next: Type.String(),
      nextAt: nullable(Type.String({ format: 'date-time' })),
      blockedBy: nullable(Type.String()),
      queuePosition: nullable(Type.Integer()),
    },
    { description: 'Current state of the email, its reason, and the next step' },
  ),
  metadata: Type.Optional(Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } })),
  htmlBody: Type.Optional(Type.String({ description: 'expand: content' })),
  plainBody: Type.Optional(Type.String({ description: 'expand: content' })),
  headers: Type.Optional(
    Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' }, description: 'expand: headers' }),
  ),
  deliveries: Type.Optional(Type.Array(AttemptSchema, { description: 'expand: deliveries' })),
  activity: Type.Optional(
    Type.Object(
      {
        opens: Type.Array(Open),
        clicks: Type.Array(Click),
        counts: Type.Object({ opens: HitCounts, clicks: HitCounts }),
        complaint: nullable(Type.Object(instantFields, { description: 'The complaint of the recipient; null: none' })),
      },
      { description: 'expand: activity; oldest first' },
    ),
  ),
  attachments: Type.Optional(Type.Array(AttachmentSent, { description: 'expand: attachments' })),
  rawMessage: Type.Optional(
    Type.String({
      contentEncoding: 'base64',
      description:
        'expand: raw; the message as sent, base64. For a server without 8BITMIME, Postrider converts an 8-bit message to 7 bits and signs it again',
    }),
  ),
})

type ContentFields = Pick<Static<typeof EmailDetails>, 'htmlBody' | 'plainBody' | 'headers' | 'attachments' | 'rawMessage'>

const contentToWire = ({ html, text, headers, attachments, raw }: ShownContent): ContentFields => ({
  ...(html === undefined ? {} : { htmlBody: html }),
  ...(text === undefined ? {} : { plainBody: text }),
  ...(headers === undefined ? {} : { headers }),
  ...(attachments === undefined
    ? {}
    : { attachments: attachments.map(({ content, ...one }) => ({ ...one, size: content.length, data: content.toString('base64') })) }),
  ...(raw === undefined ? {} : { rawMessage: raw.toString('base64') }),
})

const contentParts = ['content', 'headers', 'attachments', 'raw'] as const satisfies ContentPart[]
const expansions = ['content', 'headers', 'deliveries', 'activity', 'attachments', 'raw'] as const satisfies (
  | ContentPart
  | 'deliveries'
  | 'activity'
)[]
type Expansion = (typeof expansions)[number]

export const retrieveEmail = route({
  method: 'GET',
  path: '/emails/{emailId}',
  name: 'emails.retrieve',
  summary: 'Get an email in detail',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({
    expand: Type.Optional(Type.String({ description: `Comma-separated: full, ${expansions.join(', ')}` })),
    tenantId: tenantParameter,
  }),
  data: EmailDetails,
  refuses: ['not_found', 'tenant_mismatch'],
  large: true,
  handle: async (call, deps) => {
    const { params, query, tenantId, credential } = call
    const { db, contents } = deps
    const wanted = readExpand(query.expand)
    const id = knownEmailId(params.emailId)
    const find = async (on: Queryable) => {
      const email = await findEmail(on, id, tenantId)
      if (!email) throw new Refusal('not_found', { message: 'no such email' })
      return { email, attempts: wanted.has('deliveries') ? await listAttempts(on, email) : undefined }
    }
    const { email, attempts } = wanted.has('deliveries') ? await inSnapshot(db, find) : await find(db)
    const isHidden = await isContentHidden(credential, email.tenantId, deps)
    const parts = new Set(isHidden ? [] : contentParts.filter((one) => wanted.has(one)))
    const complainedAt = await findComplaint(db, email)
    const [explanation, content, activity] = await Promise.all([
      explain(deps, email, complainedAt),
      parts.size > 0 ? contents.use(email, call.connection, (held) => held.read(parts)) : undefined,
      wanted.has('activity') ? listHits(db, email) : undefined,
    ])
    return {
      id: email.id,
      tenantId: email.tenantId,
      to: email.recipient,
      from: email.fromHeader,
      subject: email.subject,
      status: email.status,
      scope: 'outgoing' as const,
      ...instantOf(email.acceptedAt),
      messageId: email.messageId,
      ...timesOf(email),
      ...(email.tag === null ? {} : { tag: email.tag }),
      spam: false,
      spamScore: 0,
      test: email.test,
      ...hiddenMark(isHidden),
      explanation: { ...explanation, nextAt: explanation.nextAt?.toISOString() ?? null },
      ...(email.metadata === null ? {} : { metadata: email.metadata }),
      ...(content ? contentToWire(content) : {}),
      ...(attempts ? { deliveries: attempts.map(deliveryToWire) } : {}),
      ...(activity ? { activity: activityToWire(activity, complainedAt, isHidden) } : {}),
    }
  },
})

function activityToWire({ trackingEvents, counts }: Awaited<ReturnType<typeof listHits>>, complainedAt: Date | null, isHidden: boolean) {
  const toWire = ({ ipAddress, userAgent, at, source, reason }: (typeof trackingEvents)[number]) => ({
    ipAddress,
    userAgent,
    ...instantOf(at),
    source,
    reason,
  })
  return {
    opens: trackingEvents.filter((one) => one.kind === 'open').map(toWire),
    clicks: trackingEvents.filter((one) => one.kind === 'click').map((one) => ({ url: isHidden ? hiddenText : one.url, ...toWire(one) })),
    counts: { opens: counts.open, clicks: counts.click },
    complaint: complainedAt && instantOf(complainedAt),
  }
}

function readExpand(text: string | undefined): ReadonlySet<Expansion> {
  const words = (text ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
  const unknown = words.find((word) => word !== 'full' && !expansions.some((one) => one === word))
  if (unknown !== undefined) throw wrongField('expand', `must be a comma-separated list of full, ${expansions.join(', ')}`)
  return new Set(words.includes('full') ? expansions : (words as Expansion[]))
}
