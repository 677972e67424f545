/**
 * /test/… (contract 18a): the received test mail, and a test clock that callers can advance. For test keys, and for people in the
 * dashboard.
 */
import Type, { type Static } from 'typebox'
import { emailIdTimeMs, Refusal, wrongField } from '#base'
import type { Credential } from '#credentials'
import { advanceTestClock } from '#delivery'
import { clearInbox, deleteFromInbox, type InboxFilter, listInbox, newestInInbox, type ReceivedEmail } from '#emails'
import { parseAddress } from '#mail'
import { knownEmailId, nullable, pageFields, readInstant, tenantFields, tenantNamedIn, tenantParameter } from './common-schemas.ts'
import { hiddenFields, hiddenMark, isContentHidden } from './content-access.ts'
import { type ApiDeps, listRoute, route } from './define-endpoint.ts'
import { contentsWithin, type InboxContents, noContents } from './inbox-contents.ts'
import { openInboxWaits } from './inbox-waits.ts'
import { query } from './query-parameters.ts'
import { openTenantTurns } from './tenant-turns.ts'

const maxWaitSeconds = 25
const maxAdvanceSeconds = 30 * 86_400
/** Shorter than the time limit of a request. */
const advanceWithinMs = 25_000
/** More than the largest email has. */
const maxPageCharacters = 16_777_216
const maxWaitingPages = 100
/** The contents of one page at a time are in memory. */
const pages = openTenantTurns({ atOnce: 1, atOnceOfTenant: 1, maxWaiting: maxWaitingPages })
/** Test suites read the inbox in parallel; searches of others do not delay them. */
const lists = openTenantTurns({ atOnce: 4, atOnceOfTenant: 2, maxWaiting: maxWaitingPages })
const maxAdvancing = 100
/** Two jumps of one tenant's clock at once would add up in an order that neither caller sees. */
const advances = openTenantTurns({ atOnce: maxAdvancing, atOnceOfTenant: 1, maxWaiting: maxAdvancing })
const waits = openInboxWaits()

function refuseLive(credential: Credential): void {
  // A person is neither test nor live, and sees mail of both kinds of keys.
  if (credential.mode === 'test' || 'role' in credential) return
  throw new Refusal('permission_denied', {
    message: 'this endpoint requires a test key',
    suggestion: 'Use a key that starts with svc_test_',
  })
}

const InboxItem = Type.Object({
  id: Type.String({ description: 'Same as emailId' }),
  emailId: Type.String(),
  to: Type.String({ description: 'The recipient' }),
  from: Type.String(),
  subject: Type.String(),
  html: nullable(Type.String({ description: 'As sent; null: absent' })),
  text: Type.String({ description: 'As sent' }),
  links: Type.Array(Type.String(), { description: 'Links of html, then of text, without duplicates' }),
  receivedAt: Type.String({ format: 'date-time', description: 'Time of the test clock of the tenant' }),
  truncated: Type.Optional(
    Type.Boolean({
      description: `true: html, text and links are left out, because those before it on the page have ${maxPageCharacters.toLocaleString('en')} characters. A smaller perPage shows them`,
    }),
  ),
  ...hiddenFields,
})

export const listTestInbox = listRoute({
  method: 'GET',
  path: '/test/inbox',
  name: 'test.inbox.list',
  summary: 'List received test mail, newest first; can wait for new mail',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  large: true,
  query: query({
    ...pageFields,
    to: Type.Optional(Type.String({ description: 'Recipient address' })),
    search: Type.Optional(Type.String({ maxLength: 200, description: 'Substring of the recipient, the sender or the subject' })),
    wait: Type.Integer({
      minimum: 0,
      maximum: maxWaitSeconds,
      default: 0,
      description: 'Seconds to wait for matching mail that arrives after the request; with since, earlier mail counts too',
    }),
    since: Type.Optional(
      Type.String({ description: 'Email id: that email and later ones. Unix seconds or ISO 8601 time: accepted at that time or later' }),
    ),
    tenantId: tenantParameter,
  }),
  data: InboxItem,
  refuses: ['invalid_email_format', 'tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { query, tenantId, credential } = call
    refuseLive(credential)
    const { db, clock } = deps
    const taker = { tenantId: credential.tenantId, gone: call.connection?.gone }
    const filter = {
      tenantId,
      recipient: query.to === undefined ? undefined : addressOf(query.to),
      search: query.search,
      since: query.since === undefined ? undefined : sinceOf(query.since),
    }
    if (query.wait > 0) await waits.until(await comes(filter, deps), { ...taker, forMs: query.wait * 1000, clock })
    const { emails, total } = await lists.run(taker, () =>
      listInbox(db, filter, { number: query.page, size: query.perPage }, clock.nowMs()),
    )
    const shown = await pages.run(taker, () => readPage(emails, credential, deps))
    return { items: shown.map(itemToWire), page: query.page, perPage: query.perPage, total }
  },
})

/** Returns the look for new mail, or with `since` for any mail since then. */
async function comes(filter: InboxFilter, { db, clock }: Pick<ApiDeps, 'db' | 'clock'>): Promise<() => Promise<boolean>> {
  const newest = () => newestInInbox(db, filter, clock.nowMs())
  const known = filter.since === undefined ? await newest() : 0
  return async () => (await newest()) > known
}

const sinceOf = (text: string): Date | string =>
  emailIdTimeMs(text) === undefined ? readInstant('since', text, 'an email id, unix seconds') : text

export const clearTestInbox = route({
  method: 'DELETE',
  path: '/test/inbox',
  name: 'test.inbox.clear',
  summary: 'Clear the inbox; the emails stay in the list of emails',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ deleted: Type.Integer() }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ tenantId, credential }, { db, clock }) => {
    refuseLive(credential)
    return { deleted: await clearInbox(db, tenantId, clock.nowMs()) }
  },
})

export const deleteFromTestInbox = route({
  method: 'DELETE',
  path: '/test/inbox/{emailId}',
  name: 'test.inbox.delete',
  summary: 'Delete one email from the inbox; it stays in the list of emails',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ deleted: Type.Integer() }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ params, tenantId, credential }, { db, clock }) => {
    refuseLive(credential)
    if (!(await deleteFromInbox(db, tenantId, knownEmailId(params.emailId), clock.nowMs())))
      throw new Refusal('not_found', { message: 'the test inbox does not have this email' })
    return { deleted: 1 }
  },
})

export const advanceTest = route({
  method: 'POST',
  path: '/test/advance',
  name: 'test.advance',
  summary: "Move a tenant's test clock forward; returns when all events due by then have happened",
  permission: 'emails:send',
  scope: 'organisation or tenant',
  families: 'organisation',
  body: Type.Object({ seconds: Type.Integer({ minimum: 1, maximum: maxAdvanceSeconds }), ...tenantFields }),
  data: Type.Object({
    now: Type.String({
      format: 'date-time',
      description: 'New time of the test clock; earlier than requested if 25 seconds were not enough',
    }),
  }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    refuseLive(call.credential)
    const tenantId = (await tenantNamedIn(call, deps.tenants)) ?? (await deps.tenants.default()).id
    const beganMs = deps.clock.monotonicMs()
    const now = await advances.run({ tenantId, gone: call.connection?.gone }, () => {
      const leftMs = Math.max(0, advanceWithinMs - (deps.clock.monotonicMs() - beganMs))
      return advanceTestClock(deps, tenantId, call.body.seconds * 1000, leftMs)
    })
    return { now: now.toISOString() }
  },
})

function addressOf(text: string): string {
  const address = parseAddress(text)
  if (!address) throw wrongField('to', 'is not an email address', 'invalid_email_format')
  return address.text
}

interface ShownEmail {
  email: ReceivedEmail
  isHidden: boolean
  /** Undefined: left out. */
  contents: InboxContents | undefined
}

async function readPage(emails: readonly ReceivedEmail[], credential: Credential, deps: ApiDeps): Promise<ShownEmail[]> {
  const hidden = new Set<ReceivedEmail>()
  for (const email of emails) if (await isContentHidden(credential, email.tenantId, deps)) hidden.add(email)
  const contents = await contentsWithin(maxPageCharacters, emails, async (email) =>
    hidden.has(email) ? noContents : ((await deps.contents.readAsReceived(email)) ?? noContents),
  )
  return emails.map((email, at) => ({ email, isHidden: hidden.has(email), contents: contents[at] }))
}

const itemToWire = ({ email, isHidden, contents }: ShownEmail): Static<typeof InboxItem> => ({
  id: email.id,
  emailId: email.id,
  to: email.recipient,
  from: email.fromHeader,
  subject: email.subject,
  ...(contents ?? noContents),
  receivedAt: email.receivedAt.toISOString(),
  ...(contents ? {} : { truncated: true }),
  ...hiddenMark(isHidden),
})
