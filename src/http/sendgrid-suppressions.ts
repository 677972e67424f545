/** Endpoints of SendGrid's API about suppressions: the lists of the key (./vendor-lists.ts), divided by origin. */
import Type from 'typebox'
import { readDeletion, readRecipientEmails, readSendGridPage, SendGridRefusal, sendgridEntry, sendgridLists } from '#sendgrid'
import { listSuppressionsOfOrigin, originOf, type Suppression, saveSuppressions } from '#suppressions'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { attemptsOf, findListed, listsOf, removeOriginFromLists } from './vendor-lists.ts'

const permission = 'suppressions:manage'
const globalPath = '/v3/asm/suppressions/global'

const Emails = Type.Array(Type.String(), { maxItems: 1000 })

/** Entries with the replies that caused them, as far as their emails are stored. */
async function shown(list: string, entries: readonly Suppression[], deps: VendorDeps) {
  const attemptOf = await attemptsOf(list === 'bounces' ? entries : [], deps)
  return entries.map((one) => sendgridEntry(list, one, attemptOf(one)))
}

async function pageOf(list: string, { query, credential }: VendorCall, deps: VendorDeps) {
  const page = readSendGridPage(query)
  const origin = sendgridLists[list]
  const entries = origin ? await listSuppressionsOfOrigin(deps.db, (await listsOf(credential, deps)).all, { origin, ...page }) : []
  return { data: await shown(list, entries, deps) }
}

/** The entry of the address in the path, if it is in this list. */
async function entryOf(list: string, { params, credential }: VendorCall, deps: VendorDeps): Promise<Suppression | undefined> {
  const entry = await findListed(params.email ?? '', credential, deps)
  return entry && originOf(entry) === sendgridLists[list] ? entry : undefined
}

async function remove(list: string, addresses: readonly string[] | undefined, { credential }: VendorCall, deps: VendorDeps) {
  const origin = sendgridLists[list]
  return origin ? removeOriginFromLists({ origin, addresses }, credential, deps) : { removed: 0, isComplete: true }
}

async function removeMany(list: string, call: VendorCall, deps: VendorDeps) {
  const addresses = readDeletion(call.body)
  await call.recordChange()
  const { removed, isComplete } = await remove(list, addresses, call, deps)
  if (!isComplete) throw new SendGridRefusal(400, `${removed} addresses are removed, and there are more`, null, 'Repeat the request')
  return { status: 204, data: undefined }
}

async function removeOne(list: string, call: VendorCall, deps: VendorDeps) {
  const { removed } = await remove(list, [call.params.email ?? ''], call, deps)
  if (removed === 0) throw new SendGridRefusal(404, 'the address is not on this list')
  return { status: 204, data: undefined }
}

const endpointsOf = (list: string): VendorEndpoint[] => [
  {
    methods: ['GET'],
    path: `/v3/suppression/${list}`,
    name: `sendgrid.${list}.list`,
    summary: 'List suppressed addresses, newest first',
    permission,
    answer: (call, deps) => pageOf(list, call, deps),
  },
  {
    methods: ['GET'],
    path: `/v3/suppression/${list}/:email`,
    name: `sendgrid.${list}.get`,
    summary: 'Get a suppressed address; an empty array if it is not on the list',
    permission,
    async answer(call, deps) {
      const entry = await entryOf(list, call, deps)
      return { data: await shown(list, entry ? [entry] : [], deps) }
    },
  },
  {
    methods: ['DELETE'],
    path: `/v3/suppression/${list}`,
    name: `sendgrid.${list}.clear`,
    summary: 'Remove several addresses from the list, or all',
    permission,
    body: Type.Object({ delete_all: Type.Boolean(), emails: Emails }),
    answer: (call, deps) => removeMany(list, call, deps),
  },
  {
    methods: ['DELETE'],
    path: `/v3/suppression/${list}/:email`,
    name: `sendgrid.${list}.delete`,
    summary: 'Remove an address from the list',
    permission,
    answer: (call, deps) => removeOne(list, call, deps),
  },
]

const globalEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['GET'],
    path: globalPath,
    name: 'sendgrid.global.list',
    summary: 'List unsubscribed addresses, newest first',
    permission,
    answer: (call, deps) => pageOf('unsubscribes', call, deps),
  },
  {
    methods: ['POST'],
    path: globalPath,
    name: 'sendgrid.global.add',
    summary: 'Add up to 1,000 addresses',
    permission,
    body: Type.Object({ recipient_emails: Emails }),
    async answer({ body, credential }, deps) {
      const recipient_emails = readRecipientEmails(body)
      const wanted = recipient_emails.map((address) => ({ address }))
      await saveSuppressions(deps.db, (await listsOf(credential, deps)).own, wanted, deps.clock.nowMs())
      return { status: 201, data: { recipient_emails } }
    },
  },
  {
    methods: ['GET'],
    path: `${globalPath}/:email`,
    name: 'sendgrid.global.get',
    summary: 'Check whether an address is unsubscribed',
    permission,
    async answer(call, deps) {
      const entry = await entryOf('unsubscribes', call, deps)
      return { data: entry ? { recipient_email: entry.address } : {} }
    },
  },
  {
    methods: ['DELETE'],
    path: `${globalPath}/:email`,
    name: 'sendgrid.global.delete',
    summary: 'Remove an address from the list',
    permission,
    answer: (call, deps) => removeOne('unsubscribes', call, deps),
  },
]

export const sendgridSuppressionEndpoints: readonly VendorEndpoint[] = [
  ...Object.keys(sendgridLists).flatMap(endpointsOf),
  ...globalEndpoints,
]
