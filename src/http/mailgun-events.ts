/** The list of events of Mailgun's API, which programs poll: those of the key's tenant, or of all tenants, from the event log. */
import { type LoggedEvent, listEventsBetween } from '#events'
import { type EventsQuery, eventsPage, type Filter, MailgunRefusal, readEventsQuery } from '#mailgun'
import { mailgunEventOf, openPayloadBodies } from '#webhooks'
import { refuseUnknownDomain } from './mailgun-domains.ts'
import { searchTurns } from './v1/search-turns.ts'
import { callerGone } from './v1/tenant-turns.ts'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'

interface Found {
  event: Record<string, unknown>
  at: { xact: string; id: number }
}

const readAtOnce = 500
/** Events that a request reads in search of those that its filters let through. */
const mostRead = 20_000

const lets = (filter: Filter | undefined, texts: readonly string[]): boolean => {
  if (filter === undefined) return true
  const [has, values] = [new Set(texts.map((one) => one.toLowerCase())), filter.values.map((one) => one.toLowerCase())]
  return filter.isAll ? values.every((one) => has.has(one)) : values.some((one) => has.has(one))
}

function isWanted(event: Record<string, unknown>, { severity, recipient, tags, messageId }: EventsQuery): boolean {
  const { headers } = event.message as { headers: Record<string, string> }
  return (
    // The email was deleted.
    event.recipient !== '' &&
    (severity === undefined || event.severity === severity) &&
    lets(recipient, [String(event.recipient)]) &&
    lets(tags, event.tags as string[]) &&
    (messageId === undefined || headers['message-id'] === messageId)
  )
}

/** Up to `limit` events in the direction of the page. Ends when `gone` aborts. */
async function search(query: EventsQuery, tenantId: string | null, { db }: VendorDeps, gone: AbortSignal): Promise<Found[]> {
  const bodies = openPayloadBodies({ db })
  const ascending = query.ascending !== query.isBackward
  const found: Found[] = []
  let from = query.cursor
  const isFiltered = [query.severity, query.recipient, query.tags, query.messageId].some((one) => one !== undefined)
  const most = isFiltered ? readAtOnce : query.limit
  for (let read = 0; found.length < query.limit && (read < mostRead || found.length === 0); ) {
    if (gone.aborted) throw callerGone()
    const logged = await listEventsBetween(db, { ...query, tenantId }, { from, ascending, most })
    found.push(...(await translated(logged, bodies)).filter(({ event }) => isWanted(event, query)))
    const last = logged.at(-1)
    if (!last || logged.length < most) break
    from = { xact: last.xact, id: last.id }
    read += logged.length
    if (read >= mostRead && found.length === 0)
      throw new MailgunRefusal(400, `more than ${mostRead} events in this range do not match: choose a shorter range with begin and end`)
  }
  return found.slice(0, query.limit)
}

async function translated(all: readonly LoggedEvent[], bodies: ReturnType<typeof openPayloadBodies>): Promise<Found[]> {
  // Not an event of Mailgun's, and a large one.
  const logged = all.filter(({ kind }) => kind !== 'MessageReceived')
  const prepared = await bodies(logged)
  return logged.flatMap(({ xact, id }, index) => {
    const body = prepared[index]
    const event = body && mailgunEventOf(body, Buffer.from(`${xact}-${id}`).toString('base64url'))
    return event ? [{ event, at: { xact, id } }] : []
  })
}

async function list(call: VendorCall, deps: VendorDeps) {
  await refuseUnknownDomain(call, deps)
  const query = readEventsQuery(call.query, call.params.page)
  const { tenantId } = call.credential
  const { gone } = call.connection
  const found = await searchTurns.run({ tenantId, gone }, () => search(query, tenantId, deps, gone))
  const items = query.isBackward ? found.reverse() : found
  const pageUrl = (cursor: EventsQuery['cursor'], isBackward: boolean) =>
    `${call.baseUrl}/v3/${call.params.domain}/events/${eventsPage(query, cursor, isBackward)}`
  return {
    data: {
      items: items.map(({ event }) => event),
      paging: {
        // After the last event the next page is the same again, so that a program can poll it. An empty page lies beside the whole range.
        next: pageUrl(items.at(-1)?.at ?? (query.isBackward ? undefined : query.cursor), false),
        previous: pageUrl(items[0]?.at ?? (query.isBackward ? query.cursor : undefined), true),
        first: pageUrl(undefined, false),
        last: pageUrl(undefined, true),
      },
    },
  }
}

export const mailgunEventEndpoints: readonly VendorEndpoint[] = ['', '/:page'].map((page) => ({
  methods: ['GET'],
  path: `/v3/:domain/events${page}`,
  name: page === '' ? 'mailgun.events.list' : 'mailgun.events.page',
  summary: 'List events, in pages',
  permission: 'emails:read',
  large: true,
  answer: list,
}))
