/** Endpoints of Resend's API about suppressions. */
import Type from 'typebox'
import type { Credential } from '#credentials'
import { ResendRefusal, readSuppressedEmail, readSuppressedEmails, readSuppressionPage, resendSuppression } from '#resend'
import { listSuppressionsBeside } from '#suppressions'
import type { VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { addToList, causesOf, findListed, listsOf, removeFromLists } from './vendor-lists.ts'

const object = 'suppression'
const permission = 'suppressions:manage'
const noSuchEntry = () => new ResendRefusal(404, 'not_found', 'Suppression not found')

const Emails = Type.Array(Type.String(), { maxItems: 100 })

async function add(email: string, credential: Credential, deps: VendorDeps) {
  const { entry } = await addToList({ address: email }, credential, deps)
  return { object, id: entry.address }
}

export const resendSuppressionEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: '/suppressions',
    name: 'resend.suppressions.add',
    summary: 'Suppress an address',
    permission,
    answer: async ({ body, credential }, deps) => ({ status: 201, data: await add(readSuppressedEmail(body), credential, deps) }),
  },
  {
    methods: ['GET'],
    path: '/suppressions',
    name: 'resend.suppressions.list',
    summary: 'List suppressed addresses, newest first',
    permission,
    async answer({ query, credential }, deps) {
      const { limit, after, before, origin } = readSuppressionPage(query)
      const wanted = { origin, most: limit + 1, ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }) }
      const found = await listSuppressionsBeside(deps.db, (await listsOf(credential, deps)).all, wanted)
      const page = before === undefined ? found.slice(0, limit) : found.slice(-limit)
      const causeOf = await causesOf(page, deps)
      return { data: { object: 'list', has_more: found.length > limit, data: page.map((one) => resendSuppression(one, causeOf(one))) } }
    },
  },
  {
    methods: ['GET'],
    path: '/suppressions/:email',
    name: 'resend.suppressions.get',
    summary: 'Get a suppressed address',
    permission,
    async answer({ params, credential }, deps) {
      const entry = await findListed(params.email ?? '', credential, deps)
      if (!entry) throw noSuchEntry()
      return { data: { object, ...resendSuppression(entry, (await causesOf([entry], deps))(entry)) } }
    },
  },
  {
    methods: ['DELETE'],
    path: '/suppressions/:email',
    name: 'resend.suppressions.remove',
    summary: 'Remove an address from the list',
    permission,
    async answer({ params, credential }, deps) {
      const address = params.email ?? ''
      if (!(await removeFromLists(address, credential, deps))) throw noSuchEntry()
      return { data: { object, id: address.toLowerCase(), deleted: true } }
    },
  },
  {
    methods: ['POST'],
    path: '/suppressions/batch/add',
    name: 'resend.suppressions.batch.add',
    summary: 'Suppress up to 100 addresses',
    permission,
    body: Type.Object({ emails: Emails }),
    async answer({ body, credential }, deps) {
      const data: object[] = []
      for (const email of readSuppressedEmails(body, false)) data.push(await add(email, credential, deps))
      return { data: { data } }
    },
  },
  {
    methods: ['POST'],
    path: '/suppressions/batch/remove',
    name: 'resend.suppressions.batch.remove',
    summary: 'Remove up to 100 addresses from the list',
    permission,
    body: Type.Object({ emails: Emails, ids: Emails }),
    async answer({ body, credential }, deps) {
      const data: object[] = []
      for (const email of readSuppressedEmails(body, true))
        data.push({ object, id: email.toLowerCase(), deleted: await removeFromLists(email, credential, deps) })
      return { data: { data } }
    },
  },
]
