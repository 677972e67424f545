/** GET /emails/{emailId} (contract 7.8): one email, and as much of its content, deliveries and activity as is asked for. */
import { createHash } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import { keysFor, rebuildMessage } from '#delivery'
import type { Domains } from '#domains'
import { type Content, decodeContent, type Email, emailStatuses, findContentBody, findEmail, listAttempts } from '#emails'
import { readMessage, textFromHtml } from '#mail'
import { openTokens, type Tokens } from '#tracking'
import { Delivery, deliveryToWire } from './delivery.ts'
import { query } from './query.ts'
import { route } from './route.ts'
import { instantFields, instantOf, knownEmailId, tenantParameter } from './wire.ts'

const Open = Type.Object({ ipAddress: Type.String(), userAgent: Type.String(), ...instantFields })
const Click = Type.Object({ url: Type.String(), ...Open.properties })

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
  tag: Type.Optional(Type.String()),
  spam: Type.Boolean(),
  spamScore: Type.Number(),
  test: Type.Boolean({ description: 'Sent with a test key' }),
  metadata: Type.Optional(Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } })),
  htmlBody: Type.Optional(Type.String({ description: 'expand: content' })),
  plainBody: Type.Optional(Type.String({ description: 'expand: content' })),
  headers: Type.Optional(
    Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' }, description: 'expand: headers' }),
  ),
  deliveries: Type.Optional(Type.Array(Delivery, { description: 'expand: deliveries' })),
  activity: Type.Optional(Type.Object({ opens: Type.Array(Open), clicks: Type.Array(Click) }, { description: 'expand: activity' })),
  attachments: Type.Optional(Type.Array(AttachmentSent, { description: 'expand: attachments' })),
  rawMessage: Type.Optional(Type.String({ contentEncoding: 'base64', description: 'expand: raw; the octets that were sent' })),
})

const expansions = ['content', 'headers', 'deliveries', 'activity', 'attachments', 'raw'] as const
type Expansion = (typeof expansions)[number]

export const retrieveEmail = route({
  method: 'GET',
  path: '/emails/{emailId}',
  name: 'emails.retrieve',
  summary: 'One email in detail',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({
    expand: Type.Optional(Type.String({ description: `Comma-separated: full, ${expansions.join(', ')}` })),
    tenantId: tenantParameter,
  }),
  data: EmailDetails,
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ params, query, tenantId }, { db, domains, secrets }) => {
    const wanted = readExpand(query.expand)
    const email = await findEmail(db, knownEmailId(params.emailId), tenantId)
    if (!email) throw new Refusal('not_found', { message: 'there is no such email' })
    const needsContent = ['content', 'headers', 'attachments', 'raw'].some((one) => wanted.has(one as Expansion))
    const [attempts, body] = await Promise.all([
      wanted.has('deliveries') ? listAttempts(db, email) : undefined,
      needsContent ? findContentBody(db, email) : undefined,
    ])
    return {
      id: email.id,
      tenantId: email.tenantId,
      to: email.recipient,
      from: email.fromText,
      subject: email.subject,
      status: email.status,
      scope: 'outgoing' as const,
      ...instantOf(email.acceptedAt),
      messageId: email.messageId,
      ...(email.tag === null ? {} : { tag: email.tag }),
      spam: false,
      spamScore: 0,
      test: email.test,
      ...(email.metadata === null ? {} : { metadata: email.metadata }),
      ...(body ? await contentToWire(decodeContent(body), email, wanted, { domains, tokens: openTokens(secrets) }) : {}),
      ...(attempts ? { deliveries: attempts.map(deliveryToWire) } : {}),
      ...(wanted.has('activity') ? { activity: { opens: [], clicks: [] } } : {}),
    }
  },
})

function readExpand(text: string | undefined): ReadonlySet<Expansion> {
  const words = (text ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
  if (words.includes('full')) return new Set(expansions)
  const unknown = words.find((word) => !expansions.some((one) => one === word))
  if (unknown !== undefined) {
    const message = `must be a comma list of full, ${expansions.join(', ')}`
    throw new Refusal('validation_error', { field: 'expand', message: `expand ${message}`, details: [{ field: 'expand', message }] })
  }
  return new Set(words as Expansion[])
}

type ReadMessage = ReturnType<typeof readMessage>
type ContentFields = Pick<Static<typeof EmailDetails>, 'htmlBody' | 'plainBody' | 'headers' | 'attachments' | 'rawMessage'>

interface ContentDeps {
  domains: Domains
  tokens: Tokens
}

/** Headers and the raw form are as sent; bodies and attachments are as given, before links were rewritten. */
async function contentToWire(
  content: Content,
  email: Email,
  wanted: ReadonlySet<Expansion>,
  { domains, tokens }: ContentDeps,
): Promise<ContentFields> {
  const { message } = content
  const recipient = { tenantId: email.tenantId, emailId: email.id }
  const needsSent = wanted.has('headers') || wanted.has('raw')
  const sent = needsSent
    ? rebuildMessage(content, (await keysFor(content, email.tenantId, domains)) ?? [], recipient, tokens).octets
    : Buffer.alloc(0)
  const { tracking: _, ...given } = content
  const read =
    message.kind === 'raw' && (wanted.has('content') || wanted.has('attachments'))
      ? readMessage(rebuildMessage(given, [], recipient, tokens).octets)
      : undefined
  return {
    ...(wanted.has('content') ? bodiesOf(message, read) : {}),
    ...(wanted.has('headers') ? { headers: readMessage(sent).headers } : {}),
    ...(wanted.has('attachments') ? { attachments: attachmentsOf(message, read) } : {}),
    ...(wanted.has('raw') ? { rawMessage: sent.toString('base64') } : {}),
  }
}

function bodiesOf(message: Content['message'], read: ReadMessage | undefined): Pick<ContentFields, 'htmlBody' | 'plainBody'> {
  const html = message.kind === 'parts' ? message.html : read?.html
  const text = message.kind === 'parts' ? message.text : read?.text
  return { ...(html === undefined ? {} : { htmlBody: html }), plainBody: text ?? (html === undefined ? '' : textFromHtml(html)) }
}

function attachmentsOf(message: Content['message'], read: ReadMessage | undefined): Static<typeof AttachmentSent>[] {
  const parts =
    message.kind === 'parts'
      ? message.attachments.map((one) => ({ ...one, content: Buffer.from(one.content, 'base64') }))
      : (read?.attachments ?? [])
  return parts.map(({ filename, contentType, content }) => ({
    filename,
    contentType,
    size: content.length,
    hash: createHash('sha256').update(content).digest('hex'),
    data: content.toString('base64'),
  }))
}
