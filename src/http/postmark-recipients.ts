/** Endpoints of Postmark's API about recipients: bounces, and the suppression list. */
import Type from 'typebox'
import { Refusal, wrongField } from '#base'
import type { Credential } from '#credentials'
import { type Email, findNumberedEmail, findNumbers, lastAttempts, listEmails, listEmailsOfMessage } from '#emails'
import { parseAddress } from '#mail'
import {
  bounceStatuses,
  PostmarkRefusal,
  postmarkBounce,
  postmarkError,
  postmarkSuppression,
  readBounceQuery,
  readSuppressionList,
  readSuppressionQuery,
} from '#postmark'
import { listSuppressionsByAddress, type Suppression, suppressed } from '#suppressions'
import { jsonInSteps } from './v1/json-in-steps.ts'
import { searchTurns } from './v1/search-turns.ts'
import type { VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { addToList, findListed, isSuppressed, listsOf, removeFromLists } from './vendor-lists.ts'

const noSuchBounce = () => new PostmarkRefusal(407, 'The bounce does not exist.', 404)

const Suppressions = Type.Object({
  Suppressions: Type.Array(Type.Object({ EmailAddress: Type.String() }), { maxItems: 50 }),
})

/** The normalised address of a filter. */
export function addressIn(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const address = parseAddress(text)
  if (!address) throw wrongField(name, 'is not an email address', 'invalid_email_format')
  return address.text
}

/** The bounces of these emails, with the state of their recipients. */
async function bouncesOf(emails: readonly Email[], db: VendorDeps['db']) {
  const numbers = new Map<string, number>()
  for (const [tenantId, own] of Map.groupBy(emails, (one) => one.tenantId))
    for (const [id, number] of await findNumbers(
      db,
      tenantId,
      own.map((one) => one.id),
    ))
      numbers.set(id, number)
  const attempts = await lastAttempts(
    db,
    emails.map(({ tenantId, id }) => ({ tenantId, emailId: id })),
  )
  const recipientOf = ({ tenantId, recipient }: Email) => ({ tenantId, address: recipient })
  const isSuppressed = await suppressed(db, emails.map(recipientOf))
  return emails.map((one) =>
    postmarkBounce({ ...one, number: numbers.get(one.id) ?? 0 }, attempts.get(one.id), isSuppressed(recipientOf(one))),
  )
}

async function findBounce(id: string | undefined, { tenantId }: Credential, db: VendorDeps['db']): Promise<Email> {
  const email = /^\d{1,15}$/.test(id ?? '') ? await findNumberedEmail(db, { number: Number(id) }, tenantId) : undefined
  if (!email || !bounceStatuses.some((one) => one === email.status)) throw noSuchBounce()
  return email
}

const bounceEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['GET'],
    path: '/bounces',
    name: 'postmark.bounces.list',
    summary: 'List bounces, newest message first',
    permission: 'emails:read',
    async answer({ query, credential: { tenantId }, connection }, { db, clock }) {
      const { count, offset, recipient, tag, messageId, after, before } = readBounceQuery(query)
      const emailsOfMessage = messageId === undefined ? undefined : await listEmailsOfMessage(db, messageId, tenantId)
      const ids = emailsOfMessage?.map((one) => one.id)
      const filter = {
        tenantId,
        recipient: addressIn('emailFilter', recipient),
        tag,
        after,
        before,
        findIds: ids && (async () => ids),
      }
      const size = offset + count
      const found: Awaited<ReturnType<typeof listEmails>>[] = []
      await searchTurns.run({ tenantId, gone: connection.gone }, async () => {
        for (const status of bounceStatuses) found.push(await listEmails(db, { ...filter, status }, { number: 1, size }, clock.nowMs()))
      })
      const newestFirst = found.flatMap((one) => one.emails).sort((one, other) => (one.id < other.id ? 1 : -1))
      const total = found.reduce((sum, one) => sum + one.total, 0)
      return { data: { TotalCount: total, Bounces: await bouncesOf(newestFirst.slice(offset, size), db) } }
    },
  },
  {
    methods: ['GET'],
    path: '/bounces/:id',
    name: 'postmark.bounces.get',
    summary: 'Get a bounce',
    permission: 'emails:read',
    async answer({ params, credential }, { db }) {
      const [bounce] = await bouncesOf([await findBounce(params.id, credential, db)], db)
      return { data: bounce }
    },
  },
  {
    methods: ['PUT'],
    path: '/bounces/:id/activate',
    name: 'postmark.bounces.activate',
    summary: 'Remove the recipient of a bounce from the suppression list',
    permission: 'suppressions:manage',
    async answer({ params, credential }, deps) {
      const email = await findBounce(params.id, credential, deps.db)
      await removeFromLists(email.recipient, credential, deps, email.tenantId)
      const [Bounce] = await bouncesOf([email], deps.db)
      return { data: { Message: 'OK', Bounce } }
    },
  },
]

const pageSize = 5000
/** More entries than one answer has are only in /v1/suppressions. */
const maxDumped = 50_000
const latest = new Date(8.64e13)

/** Entries in the order of their addresses: a page begins after the last address of the page before. */
async function* entriesOf({ address, after, before }: ReturnType<typeof readSuppressionQuery>, credential: Credential, deps: VendorDeps) {
  const wanted = { kinds: ['bounce', 'complaint'], after: after ?? new Date(0), before: before ?? latest, limit: pageSize } as const
  if (address !== undefined) {
    const known = parseAddress(address)
    const entry = known && (await findListed(known.text, credential, deps))
    if (entry && entry.createdAt >= wanted.after && entry.createdAt <= wanted.before) yield entry
    return
  }
  const { all } = await listsOf(credential, deps)
  for (let beyond: string | undefined = ''; beyond !== undefined; ) {
    const page: Suppression[] = await listSuppressionsByAddress(deps.db, all, { ...wanted, beyond })
    yield* page
    beyond = page.length < pageSize ? undefined : page.at(-1)?.address
  }
}

async function dump(query: Readonly<Record<string, unknown>>, credential: Credential, deps: VendorDeps) {
  const wanted = readSuppressionQuery(query)
  const { reason, origin } = wanted
  const Suppressions: ReturnType<typeof postmarkSuppression>[] = []
  let read = 0
  for await (const entry of entriesOf(wanted, credential, deps)) {
    if (++read > maxDumped) break
    const shown = postmarkSuppression(entry)
    if ((!reason || shown.SuppressionReason === reason) && (!origin || shown.Origin === origin)) Suppressions.push(shown)
  }
  return { data: await jsonInSteps({ Suppressions }) }
}

const messageOf = (refusal: Refusal) =>
  refusal.code === 'invalid_email_format' ? 'An invalid email address was provided.' : postmarkError(refusal).Message

/** Applies `change` to each address, in order; a refused one fails alone. */
async function changeEach(addresses: readonly string[], status: string, change: (address: string) => Promise<unknown>) {
  const done: object[] = []
  for (const EmailAddress of addresses)
    done.push(
      await change(EmailAddress).then(
        () => ({ EmailAddress, Status: status, Message: null }),
        (error: unknown) => {
          if (!(error instanceof Refusal) || error.status !== 400) throw error
          return { EmailAddress, Status: 'Failed', Message: messageOf(error) }
        },
      ),
    )
  return { data: { Suppressions: done } }
}

const suppressionEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['GET'],
    path: '/message-streams/:stream/suppressions/dump',
    name: 'postmark.suppressions.dump',
    summary: 'List suppressed addresses',
    permission: 'suppressions:manage',
    answer: ({ query, credential, connection }, deps) =>
      searchTurns.run({ tenantId: credential.tenantId, gone: connection.gone }, () => dump(query, credential, deps)),
  },
  {
    methods: ['POST'],
    path: '/message-streams/:stream/suppressions',
    name: 'postmark.suppressions.create',
    summary: 'Suppress up to 50 addresses',
    permission: 'suppressions:manage',
    body: Suppressions,
    answer: ({ body, credential }, deps) =>
      changeEach(readSuppressionList(body), 'Suppressed', (address) => addToList({ address }, credential, deps)),
  },
  {
    methods: ['POST'],
    path: '/message-streams/:stream/suppressions/delete',
    name: 'postmark.suppressions.delete',
    summary: 'Remove up to 50 addresses from the suppression list',
    permission: 'suppressions:manage',
    body: Suppressions,
    answer: ({ body, credential }, deps) =>
      changeEach(readSuppressionList(body), 'Deleted', async (address) => {
        const known = addressIn('EmailAddress', address) ?? address
        await removeFromLists(known, credential, deps)
        if (await isSuppressed(known, credential, deps))
          throw wrongField('EmailAddress', "stays suppressed: it is on the organisation's list, which a key of the organisation changes")
      }),
  },
]

export const recipientEndpoints: readonly VendorEndpoint[] = [...bounceEndpoints, ...suppressionEndpoints]
