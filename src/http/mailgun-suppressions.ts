/** Endpoints of Mailgun's API about suppressions: the lists of the key (./vendor-lists.ts), divided by origin. */
import Type from 'typebox'
import { addedAnswer, MailgunRefusal, mailgunEntry, mailgunLists, readNewEntries, readSuppressionsQuery } from '#mailgun'
import { importSuppressions, listOriginByAddress, originOf, type Suppression } from '#suppressions'
import { refuseUnknownDomain } from './mailgun-domains.ts'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { attemptsOf, findListed, listsOf, removeOriginFromLists } from './vendor-lists.ts'

const permission = 'suppressions:manage'
const originOfList = (list: string) => (mailgunLists[list] as (typeof mailgunLists)[string]).origin
const noSuchEntry = (list: string) => new MailgunRefusal(404, `Address not found in ${list} table`)

const Entry = Type.Object({
  address: Type.String(),
  code: Type.String(),
  error: Type.String(),
  created_at: Type.String(),
  tags: Type.Array(Type.String(), { maxItems: 20 }),
})

/** Entries with the replies that caused them, as far as their emails are stored. */
async function shown(list: string, entries: readonly Suppression[], deps: VendorDeps) {
  const attemptOf = await attemptsOf(list === 'bounces' ? entries : [], deps)
  return entries.map((one) => mailgunEntry(list, one, attemptOf(one)))
}

async function pageOf(list: string, { query, params, credential, baseUrl }: VendorCall, deps: VendorDeps) {
  const { limit, from, isBackward } = readSuppressionsQuery(query)
  const wanted = { origin: originOfList(list), from, isBackward, most: limit }
  const entries = await listOriginByAddress(deps.db, (await listsOf(credential, deps)).all, wanted)
  const url = (page: string, address?: string) => {
    const parameters = new URLSearchParams({ page, ...(address ? { address } : {}), limit: String(limit) })
    return `${baseUrl}/v3/${params.domain}/${list}?${parameters.toString()}`
  }
  const [first, last] = [entries[0]?.address ?? from, entries.at(-1)?.address ?? from]
  const paging = {
    first: url('first'),
    last: url('last'),
    next: last === '' ? url('first') : url('next', last),
    previous: first === '' ? url('first') : url('previous', first),
  }
  return { data: { items: await shown(list, entries, deps), paging } }
}

async function getOne(list: string, { params, credential }: VendorCall, deps: VendorDeps) {
  const entry = await findListed(params.email ?? '', credential, deps)
  if (!entry || originOf(entry) !== originOfList(list)) throw noSuchEntry(list)
  return { data: (await shown(list, [entry], deps))[0] }
}

async function add(list: string, { body, credential }: VendorCall, deps: VendorDeps) {
  const entries = readNewEntries(list, body, deps.clock.nowMs())
  await importSuppressions(deps.db, (await listsOf(credential, deps)).own, entries)
  return { data: addedAnswer(list, entries, Array.isArray(body)) }
}

async function removeOne(list: string, { params, credential }: VendorCall, deps: VendorDeps) {
  const address = params.email ?? ''
  const { removed } = await removeOriginFromLists({ origin: originOfList(list), addresses: [address] }, credential, deps)
  if (removed === 0) throw noSuchEntry(list)
  return { data: { message: mailgunLists[list]?.removed, address } }
}

async function removeAll(list: string, { credential, recordChange }: VendorCall, deps: VendorDeps) {
  await recordChange()
  const { removed, isComplete } = await removeOriginFromLists({ origin: originOfList(list), addresses: undefined }, credential, deps)
  if (!isComplete) throw new MailgunRefusal(400, `${removed} addresses are removed, and there are more: repeat the request`)
  return { data: { message: mailgunLists[list]?.cleared } }
}

/** Every path names a domain, which must exist, although the list is that of the tenant. */
const ofDomain = (endpoint: VendorEndpoint): VendorEndpoint => ({
  ...endpoint,
  async answer(call, deps) {
    await refuseUnknownDomain(call, deps)
    return endpoint.answer(call, deps)
  },
})

const endpointsOf = (list: string): VendorEndpoint[] => [
  {
    methods: ['GET'],
    path: `/v3/:domain/${list}`,
    name: `mailgun.${list}.list`,
    summary: 'List suppressed addresses, in the order of the addresses',
    permission,
    answer: (call, deps) => pageOf(list, call, deps),
  },
  {
    methods: ['GET'],
    path: `/v3/:domain/${list}/:email`,
    name: `mailgun.${list}.get`,
    summary: 'Get a suppressed address',
    permission,
    answer: (call, deps) => getOne(list, call, deps),
  },
  {
    methods: ['POST'],
    path: `/v3/:domain/${list}`,
    name: `mailgun.${list}.add`,
    summary: 'Add one address, or up to 1,000 as JSON',
    permission,
    body: Type.Array(Entry, { maxItems: 1000 }),
    answer: (call, deps) => add(list, call, deps),
  },
  {
    methods: ['DELETE'],
    path: `/v3/:domain/${list}`,
    name: `mailgun.${list}.clear`,
    summary: 'Remove all addresses from the list',
    permission,
    answer: (call, deps) => removeAll(list, call, deps),
  },
  {
    methods: ['DELETE'],
    path: `/v3/:domain/${list}/:email`,
    name: `mailgun.${list}.delete`,
    summary: 'Remove an address from the list',
    permission,
    answer: (call, deps) => removeOne(list, call, deps),
  },
]

export const mailgunSuppressionEndpoints: readonly VendorEndpoint[] = Object.keys(mailgunLists).flatMap(endpointsOf).map(ofDomain)
