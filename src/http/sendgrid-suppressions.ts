/** Endpoints of SendGrid's API about suppressions: the list of the key's tenant, or of the organisation, divided by origin. */
import Type from 'typebox'
import type { Credential } from '#credentials'
import { lastAttempts } from '#emails'
import { readDeletion, readRecipientEmails, readSendGridPage, SendGridRefusal, sendgridEntry, sendgridLists } from '#sendgrid'
import {
  findSuppression,
  listSuppressionsOfOrigin,
  originOf,
  removeSuppressionsOfOrigin,
  type Suppression,
  saveSuppressions,
} from '#suppressions'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'

const permission = 'suppressions:manage'
const globalPath = '/v3/asm/suppressions/global'
const listOf = ({ tenantId }: Credential) => tenantId ?? ''

const Emails = Type.Array(Type.String(), { maxItems: 1000 })

/** Entries with the replies that caused them, as far as their emails are stored. */
async function shown(list: string, entries: readonly Suppression[], { db }: VendorDeps) {
  const withReplies = list === 'bounces' ? entries : []
  const attempts = await lastAttempts(
    db,
    withReplies.flatMap(({ tenantId, emailId }) => (emailId === null ? [] : [{ tenantId, emailId }])),
  )
  return entries.map((one) => sendgridEntry(list, one, attempts.get(one.emailId ?? '')))
}

async function pageOf(list: string, { query, credential }: VendorCall, deps: VendorDeps) {
  const page = readSendGridPage(query)
  const origin = sendgridLists[list]
  const entries = origin ? await listSuppressionsOfOrigin(deps.db, listOf(credential), { origin, ...page }) : []
  return { data: await shown(list, entries, deps) }
}

/** The entry of the address in the path, if it is in this list. */
async function entryOf(list: string, { params, credential }: VendorCall, { db }: VendorDeps): Promise<Suppression | undefined> {
  const { entry } = await findSuppression(db, listOf(credential), params.email ?? '')
  return entry && originOf(entry) === sendgridLists[list] ? entry : undefined
}

const mostAtOnce = 1000
/** More are removed by repeated requests. */
const mostInRequest = 50_000

async function removeMany(list: string, { body, credential }: VendorCall, { db, clock }: VendorDeps) {
  const addresses = readDeletion(body)
  const origin = sendgridLists[list]
  let removed = 0
  let last = origin ? mostAtOnce : 0
  while (origin && last === mostAtOnce) {
    if (removed >= mostInRequest)
      throw new SendGridRefusal(400, `${removed} addresses are removed, and there are more`, null, 'Repeat the request')
    last = await removeSuppressionsOfOrigin(db, listOf(credential), { origin, addresses, most: mostAtOnce }, clock.nowMs())
    removed += last
  }
  return { status: 204, data: undefined }
}

async function removeOne(list: string, { params, credential }: VendorCall, { db, clock }: VendorDeps) {
  const origin = sendgridLists[list]
  const chosen = { addresses: [params.email ?? ''], most: 1 }
  const removed = origin ? await removeSuppressionsOfOrigin(db, listOf(credential), { origin, ...chosen }, clock.nowMs()) : 0
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
    async answer({ body, credential }, { db, clock }) {
      const recipient_emails = readRecipientEmails(body)
      const wanted = recipient_emails.map((address) => ({ address }))
      await saveSuppressions(db, listOf(credential), wanted, clock.nowMs())
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
