/** Mail in (an extension of the contract): routes of sending domains, and the messages that they received. */
import Type, { type Static } from 'typebox'
import {
  countedBeyond,
  dkimResults,
  dmarcResults,
  getReceived,
  getReceivedOctets,
  getReceivedRaw,
  listReceived,
  type MailRoute,
  type ReceivedSummary,
  routeAddress,
  shownAuthentication,
  spfResults,
} from '#received-mail'
import {
  bodyTenantOrDefault,
  nullable,
  pageFields,
  queriedAddress,
  readInstant,
  tenantFields,
  tenantOrDefault,
  tenantParameter,
} from './common-schemas.ts'
import { hiddenFields, hiddenMark, isContentHidden, refuseHiddenContent } from './content-access.ts'
import { type ApiDeps, listRoute, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'
import { searchTurns } from './search-turns.ts'

const reads = { permission: 'emails:read', scope: 'organisation or tenant', families: 'both' } as const
const manages = { ...reads, permission: 'full access' } as const
const byId = { query: query({ tenantId: tenantParameter }), refuses: ['not_found', 'tenant_mismatch'] } as const

const Instant = Type.String({ format: 'date-time' })
const MailAddress = Type.String({ minLength: 3, maxLength: 320 })
const ForwardTo = nullable(
  Type.String({ minLength: 3, maxLength: 320, description: 'Address that gets every message as well; null: not forwarded' }),
)

const RouteObject = Type.Object({
  id: Type.String(),
  tenantId: Type.String(),
  address: Type.String({ description: 'One * stands for any text; * alone before the @ for every address of the domain' }),
  domainId: Type.Integer(),
  forwardTo: ForwardTo,
  enabled: Type.Boolean({ description: 'false: mail to the address is refused' }),
  replies: Type.Boolean({ description: 'true: only replies to emails that were sent with its id as replyRouteId' }),
  mx: Type.Object({
    fullName: Type.String(),
    value: Type.String({ description: 'MX record to publish; its status is dnsRecords.receiving of the domain' }),
  }),
  createdAt: Instant,
  updatedAt: Instant,
})

export const createRoute = route({
  method: 'POST',
  path: '/routes',
  name: 'routes.create',
  summary: 'Receive mail for an address of a verified domain',
  ...manages,
  leadsContentOut: true,
  body: Type.Object({
    address: MailAddress,
    forwardTo: Type.Optional(ForwardTo),
    enabled: Type.Optional(nullable(Type.Boolean())),
    replies: Type.Optional(
      nullable(
        Type.Boolean({
          description:
            'true: receives only replies to emails that are sent with replyRouteId. The address has one * and at most 12 other characters',
        }),
      ),
    ),
    ...tenantFields,
  }),
  status: 201,
  data: RouteObject,
  refuses: ['domain_not_verified', 'invalid_email_format', 'tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { address, forwardTo, enabled, replies } = call.body
    const wanted = { address, forwardTo: forwardTo ?? null, enabled: enabled ?? true, replies: replies ?? false }
    return routeToWire(await deps.routes.create(await bodyTenantOrDefault(call, deps), wanted), deps)
  },
})

export const listRoutes = listRoute({
  method: 'GET',
  path: '/routes',
  name: 'routes.list',
  summary: "List a tenant's routes by domain and address",
  ...reads,
  query: query({ ...pageFields, tenantId: tenantParameter }),
  data: RouteObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { page, perPage } = call.query
    const { routes, total } = await deps.routes.list(await tenantOrDefault(call, deps), { number: page, size: perPage })
    return { items: routes.map((one) => routeToWire(one, deps)), page, perPage, total }
  },
})

export const retrieveRoute = route({
  method: 'GET',
  path: '/routes/{routeId}',
  name: 'routes.retrieve',
  summary: 'Get a route',
  ...reads,
  ...byId,
  data: RouteObject,
  handle: async (call, deps) => routeToWire(await deps.routes.get(await tenantOrDefault(call, deps), call.params.routeId), deps),
})

export const updateRoute = route({
  method: 'PATCH',
  path: '/routes/{routeId}',
  name: 'routes.update',
  summary: 'Change where a route forwards mail, or disable it',
  ...manages,
  leadsContentOut: true,
  ...byId,
  refuses: [...byId.refuses, 'invalid_email_format'],
  body: Type.Object({ forwardTo: Type.Optional(ForwardTo), enabled: Type.Optional(Type.Boolean()), ...tenantFields }),
  data: RouteObject,
  handle: async (call, deps) => {
    const { forwardTo, enabled } = call.body
    const changed = await deps.routes.update(await bodyTenantOrDefault(call, deps), call.params.routeId, { forwardTo, enabled })
    return routeToWire(changed, deps)
  },
})

export const deleteRoute = route({
  method: 'DELETE',
  path: '/routes/{routeId}',
  name: 'routes.delete',
  summary: 'Delete a route; messages that it received stay until their retention ends',
  ...manages,
  ...byId,
  data: Type.Object({ deleted: Type.Unsafe<true>({ type: 'boolean', enum: [true] }) }),
  handle: async (call, deps) => {
    await deps.routes.remove(await tenantOrDefault(call, deps), call.params.routeId)
    return { deleted: true as const }
  },
})

const Result = <Name extends string>(names: readonly Name[]) => Type.Unsafe<Name>({ type: 'string', enum: [...names] })

const summary = {
  id: Type.String(),
  tenantId: Type.String(),
  recipients: Type.Array(Type.Object({ address: Type.String(), routeId: Type.String() })),
  envelopeFrom: Type.String({ description: 'Empty: the null reverse-path, as of bounces and automatic replies' }),
  clientAddress: Type.String({ description: 'IP address of the server that sent it' }),
  from: Type.String({ description: 'Empty unless From has exactly one address' }),
  fromName: Type.String(),
  subject: Type.String(),
  messageId: Type.String({ description: 'Without angle brackets' }),
  autoSubmitted: Type.String({ description: 'Such as auto-replied (RFC 3834); empty for mail of a person' }),
  size: Type.Integer({ description: 'Octets' }),
  attachmentCount: Type.Integer(),
  inReplyTo: nullable(Type.String({ description: 'Id of the email that it replies to, by its address or the Message-ID in its header' })),
  inReplyToProven: Type.Boolean({
    description: 'true: it was sent to the signed address of that email (replyRouteId), which only its readers know',
  }),
  authentication: nullable(
    Type.Object(
      {
        spf: Type.Object({ result: Result(spfResults), domain: Type.String() }),
        dkim: Type.Array(Type.Object({ result: Result(dkimResults), domain: Type.String(), selector: Type.String() }), {
          description: 'The first 5 signatures, of any domain',
        }),
        dmarc: Type.Object({
          result: Result(dmarcResults),
          domain: Type.String({ description: 'Of From' }),
          policy: nullable(Type.String({ description: 'To apply if the result is fail: none, quarantine or reject' })),
        }),
      },
      { description: 'Checks when it arrived; null: the message was too costly to read' },
    ),
  ),
  forwarded: Type.Array(Type.Object({ to: Type.String(), emailId: Type.String() }), { description: 'Copies, as emails of the tenant' }),
  receivedAt: Instant,
}
const ReceivedObject = Type.Object({
  ...summary,
  to: Type.String(),
  cc: Type.String(),
  replyTo: Type.String(),
  date: Type.String({ description: 'As the sender wrote it' }),
  hops: Type.Integer({ description: 'Received fields: servers that the message passed' }),
  text: nullable(Type.String()),
  html: nullable(Type.String({ description: 'From a stranger: never show it without a sandbox' })),
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), { description: 'The first 60, decoded' }),
  attachments: Type.Array(
    Type.Object({ filename: Type.String(), contentType: Type.String(), size: Type.Integer({ description: 'Octets' }) }),
    { description: 'The first 50' },
  ),
  truncated: Type.Boolean({ description: 'A part was cut or left out; the raw message has it' }),
  ...hiddenFields,
})

export const listReceivedRoute = listRoute({
  method: 'GET',
  path: '/received',
  name: 'received.list',
  summary: `List the messages that routes received, newest first; total counts at most ${countedBeyond.toLocaleString('en')} after the page`,
  ...reads,
  query: query({
    ...pageFields,
    routeId: Type.Optional(Type.String({ maxLength: 64, description: 'Route that received them' })),
    from: Type.Optional(Type.String({ description: 'Address in From, or envelope sender' })),
    to: Type.Optional(Type.String({ description: 'Recipient address' })),
    inReplyTo: Type.Optional(Type.String({ maxLength: 64, description: 'Id of the email that they answer' })),
    after: Type.Optional(Type.String({ description: 'Received later than: unix seconds or ISO 8601' })),
    before: Type.Optional(Type.String({ description: 'Received earlier than' })),
    tenantId: tenantParameter,
  }),
  data: Type.Object(summary),
  refuses: ['invalid_email_format', 'tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { page, perPage, routeId, from, to, inReplyTo, after, before } = call.query
    const filter = {
      tenantId: await tenantOrDefault(call, deps),
      routeId,
      from: from && queriedAddress('from', from).toLowerCase(),
      to: to && queriedAddress('to', to).toLowerCase(),
      inReplyTo,
      after: after === undefined ? undefined : readInstant('after', after),
      before: before === undefined ? undefined : readInstant('before', before),
    }
    const taker = { tenantId: call.credential.tenantId, gone: call.connection?.gone }
    const { messages, total } = await searchTurns.run(taker, () =>
      listReceived(deps.db, filter, { number: page, size: perPage }, deps.clock.nowMs()),
    )
    return { items: messages.map(summaryToWire), page, perPage, total }
  },
})

export const retrieveReceived = route({
  method: 'GET',
  path: '/received/{receivedId}',
  name: 'received.retrieve',
  summary: 'Get a received message with its parts',
  ...reads,
  ...byId,
  data: ReceivedObject,
  handle: async (call, deps): Promise<Static<typeof ReceivedObject>> => {
    const message = await getReceived(deps.db, await tenantOrDefault(call, deps), call.params.receivedId)
    const { to, cc, replyTo, date, hops, headers, attachments, truncated } = message.facts
    const isHidden = await isContentHidden(call.credential, message.tenantId, deps)
    return {
      ...summaryToWire(message),
      to,
      cc,
      replyTo,
      date,
      hops,
      text: isHidden ? null : message.text,
      html: isHidden ? null : message.html,
      headers: isHidden ? [] : headers,
      attachments: isHidden
        ? []
        : attachments.map(({ filename, contentType, sizeOctets }) => ({ filename, contentType, size: sizeOctets })),
      truncated,
      ...hiddenMark(isHidden),
    }
  },
})

/** Octets of memory for each octet of a message: itself, its text in base64, and the answer. */
const memoryFactor = 4

export const retrieveReceivedRaw = route({
  method: 'GET',
  path: '/received/{receivedId}/raw',
  name: 'received.retrieveRaw',
  summary: 'Get a received message as it arrived',
  ...reads,
  ...byId,
  large: true,
  data: Type.Object({ id: Type.String(), rawMessage: Type.String({ contentEncoding: 'base64' }) }),
  handle: async (call, deps) => {
    const { receivedId } = call.params
    const tenantId = await tenantOrDefault(call, deps)
    await refuseHiddenContent(call.credential, tenantId, deps)
    const octets = await getReceivedOctets(deps.db, tenantId, receivedId)
    return deps.answerMemory.use({ tenantId, octets, memoryFactor, connection: call.connection }, async () => {
      const raw = await getReceivedRaw(deps.db, tenantId, receivedId)
      return { id: receivedId, rawMessage: raw.toString('base64') }
    })
  },
})

const routeToWire = (one: MailRoute, { config }: Pick<ApiDeps, 'config'>): Static<typeof RouteObject> => ({
  id: one.id,
  tenantId: one.tenantId,
  address: routeAddress(one),
  domainId: one.domainId,
  forwardTo: one.forwardTo,
  enabled: one.enabled,
  replies: one.replies,
  mx: { fullName: one.domain, value: `10 ${config.hostname.toLowerCase()}` },
  createdAt: one.createdAt.toISOString(),
  updatedAt: one.updatedAt.toISOString(),
})

const summaryToWire = ({ facts, ...one }: ReceivedSummary) => ({
  id: one.id,
  tenantId: one.tenantId,
  recipients: one.recipients.map(({ address, routeId }) => ({ address, routeId })),
  envelopeFrom: one.sender,
  clientAddress: one.client,
  from: facts.from,
  fromName: facts.fromName,
  subject: facts.subject,
  messageId: facts.messageId,
  autoSubmitted: facts.autoSubmitted,
  size: one.sizeOctets,
  attachmentCount: facts.attachmentCount,
  inReplyTo: one.replyToEmail,
  inReplyToProven: facts.isReplyProven ?? false,
  authentication: facts.authentication && shownAuthentication(facts.authentication),
  forwarded: one.forwarded.map(({ to, emailId }) => ({ to, emailId })),
  receivedAt: one.receivedAt.toISOString(),
})
