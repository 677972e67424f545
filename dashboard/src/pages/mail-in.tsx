/** Mail in: whether mail arrives, the messages that routes received, newest first, and the routes. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, type Page, withQuery } from '../api-client.ts'
import type { Domain, ReceivedListItem, RoutesCreateData, WebhooksListData } from '../api-types.ts'
import { Badge, Button, Coded, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, TableSkeleton } from '../parts/data-table.tsx'
import { AttachmentIcon, WarningIcon } from '../parts/icons.tsx'
import { LiveSearch } from '../parts/live-search.tsx'
import { AddRoute, MailRoutes } from '../parts/mail-routes.tsx'
import { Listing, RowLink, useList } from '../parts/paged-lists.tsx'
import { DmarcBadge, senderOf } from '../parts/received-checks.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { Time, Value } from '../parts/time-and-copy.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.mailIn
/** Each request counts all messages of the tenant. */
const everyMs = 15_000
const maxShown = 3
const tabs = [
  { name: 'messages', label: words.messages },
  { name: 'routes', label: words.routes },
] as const

/** Long because the two lists, their tabs and the new route share the state of the page. */
export function MailInPage() {
  const { scoped, mayChange, tenants, tenantId } = useHere()
  const [adding, setAdding] = useState(false)
  const [filters, change] = useFilters()
  const view = filters.view === 'routes' ? 'routes' : 'messages'
  const wanted = (filters.search ?? '').trim().toLowerCase()
  const pageOf = (one: typeof view) => (one === view ? filters.page : undefined)
  const routes = useList<RoutesCreateData>('routes', scoped('/v1/routes', { page: pageOf('routes'), perPage: 100 }))
  const messages = useList<ReceivedListItem>(
    'received',
    scoped('/v1/received', { ...addressIn(wanted, routes.data?.items), page: pageOf('messages'), perPage: 100 }),
    everyMs,
  )
  const receivers = useReceivers(messages.data?.items[0]?.tenantId)
  const isKnown = routes.data !== undefined && messages.data !== undefined
  const isEmpty = routes.data?.total === 0 && messages.data?.total === 0 && wanted === ''
  const error = routes.error ?? messages.error
  const add = mayChange && (
    <Button kind={isEmpty || view === 'routes' ? 'main' : 'plain'} onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  return (
    <>
      <Heading title={texts.pages.mailIn} about={tenantId === undefined && tenants.length > 1 ? words.aboutDefault : words.about}>
        {isKnown && !isEmpty && add}
      </Heading>
      <Problem error={error} />
      {!isKnown && !error && <TableSkeleton />}
      {isEmpty && (
        <Empty title={words.emptyTitle} action={add}>
          <Coded>{words.empty}</Coded>
        </Empty>
      )}
      {isKnown && !isEmpty && (
        <Tabs label={words.view} tabs={tabs} chosen={view} onChoose={(next) => change({ view: next === 'routes' ? next : undefined })}>
          {view === 'routes' ? (
            <MailRoutes list={{ data: routes.data, error: undefined }} />
          ) : (
            <>
              <Arrival routes={routes.data.items} />
              <div className="mb-3">
                <LiveSearch
                  label={words.search}
                  example={words.searchExample}
                  text={filters.search ?? ''}
                  onSearch={(search) => change({ search })}
                />
              </div>
              <Listing
                label={words.messages}
                list={{ data: matching(messages.data, wanted), error: undefined }}
                columns={columnsFor(receivers)}
                keyOf={(one) => one.id}
                empty={wanted ? words.noMatch : words.noMessages}
              />
              {messages.data.totalPages > 1 && wanted !== '' && !isAddress(wanted) && (
                <p className="mt-2 text-xs text-soft">{words.onlyPage}</p>
              )}
            </>
          )}
        </Tabs>
      )}
      {adding && (
        <AddRoute
          onClose={() => setAdding(false)}
          onDone={() => {
            setAdding(false)
            change({ view: 'routes' })
          }}
        />
      )}
    </>
  )
}

/** The webhooks of the tenant that subscribe to received mail: the others do not get the event. */
function useReceivers(tenantId: string | undefined): readonly string[] | undefined {
  const path = withQuery('/v1/webhooks', { tenantId })
  const { data } = useQuery({ queryKey: ['webhooks', path], queryFn: () => get<WebhooksListData>(path), enabled: tenantId !== undefined })
  return data?.webhooks
    .filter(({ enabled, allEvents, events }) => enabled && !allEvents && events.includes('MessageReceived'))
    .map(({ name }) => name)
}

/** Where to send mail, and, if DNS does not lead it here, the way to the record that does. */
function Arrival({ routes }: { routes: readonly RoutesCreateData[] }) {
  const open = routes.filter(({ enabled }) => enabled)
  const id = open[0]?.domainId
  const { data } = useQuery({
    queryKey: ['domain', String(id)],
    queryFn: () => get<Domain>(`/v1/domains/${id}`),
    enabled: id !== undefined,
  })
  if (id === undefined) return null
  const status = data?.dnsRecords.receiving?.status ?? 'unchecked'
  return (
    <div className="mb-3 overflow-hidden rounded-lg border border-line text-sm">
      {data && status !== 'OK' && (
        <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1 border-b border-line bg-wait-back px-4 py-2 text-wait">
          <WarningIcon size={16} className="shrink-0" />
          <span className="min-w-0 [overflow-wrap:anywhere] max-md:basis-[calc(100%-2rem)]">{words.mxStates[status](data.name)}</span>
          <Link to="/mail-in" search={{ view: 'routes' } as never} className="font-medium underline underline-offset-2">
            {words.showRecord}
          </Link>
        </p>
      )}
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-1.5 text-soft">
        {status === 'OK' ? words.arrives : words.receives}
        {open.slice(0, maxShown).map(({ address }) => (
          <Value key={address} name={words.address}>
            {address}
          </Value>
        ))}
        {open.length > maxShown && words.more(open.length - maxShown)}
      </p>
    </div>
  )
}

const isAddress = (text: string) => /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(text)

/** The service finds whole addresses: those at the domains of routes are of recipients. */
function addressIn(wanted: string, routes: readonly RoutesCreateData[] | undefined): { from?: string; to?: string } {
  if (!isAddress(wanted)) return {}
  const domain = wanted.slice(wanted.indexOf('@'))
  return routes?.some(({ address }) => address.toLowerCase().endsWith(domain)) ? { to: wanted } : { from: wanted }
}

/** The messages of this page with these words in the subject, or as a part of an address. */
function matching(page: Page<ReceivedListItem>, wanted: string): Page<ReceivedListItem> {
  if (wanted === '' || isAddress(wanted)) return page
  const textOf = (one: ReceivedListItem) => [one.subject, senderOf(one), ...one.recipients.map(({ address }) => address)].join('\n')
  const items = page.items.filter((one) => textOf(one).toLowerCase().includes(wanted))
  return page.totalPages > 1 ? { ...page, items } : { ...page, items, total: items.length }
}

const columnsFor = (receivers: readonly string[] | undefined): readonly Column<ReceivedListItem>[] => [
  {
    name: words.message,
    phone: 'title',
    className: 'md:max-w-96',
    cell: (one) => (
      <>
        <RowLink to={`/mail-in/${encodeURIComponent(one.id)}`}>{one.subject || texts.emails.noSubject}</RowLink>
        {one.attachmentCount > 0 && (
          <span
            role="img"
            aria-label={words.attached(one.attachmentCount)}
            data-tip={words.attached(one.attachmentCount)}
            className="ml-1.5 inline-flex gap-0.5 align-middle text-xs text-soft"
          >
            <AttachmentIcon size={14} />
            {one.attachmentCount}
          </span>
        )}
        <span className="block text-xs text-soft [overflow-wrap:anywhere]">{senderOf(one)}</span>
      </>
    ),
  },
  {
    name: words.recipients,
    phone: 'line',
    className: '[overflow-wrap:anywhere] max-md:text-soft',
    cell: ({ recipients }) => (
      <>
        <span className="text-soft md:hidden">{words.toAddress('')}</span>
        {firstOf(recipients.map(({ address }) => address))}
      </>
    ),
  },
  {
    name: words.result,
    phone: 'line',
    className: '[overflow-wrap:anywhere] max-md:text-soft',
    cell: (one) => <Result of={one} receivers={receivers} />,
  },
  {
    name: 'DMARC',
    phone: 'side',
    cell: (one) => (
      <span className={one.authentication?.dmarc.result === 'pass' ? 'max-md:hidden' : ''}>
        <DmarcBadge of={one.authentication} isShort />
      </span>
    ),
  },
  { name: words.received, phone: 'line', className: 'whitespace-nowrap text-soft', cell: (one) => <Time at={one.receivedAt} /> },
]

function Result({ of: { forwarded }, receivers }: { of: ReceivedListItem; receivers: readonly string[] | undefined }) {
  if (receivers === undefined) return null
  const parts = [
    ...(forwarded.length > 0 ? [words.forwardedTo(firstOf(forwarded.map(({ to }) => to)))] : []),
    ...(receivers.length > 0 ? [words.webhook(firstOf(receivers))] : []),
  ]
  if (parts.length > 0) return parts.join(' · ')
  return (
    <Badge tone="wait" title={words.onlyStoredMeans}>
      {words.onlyStored}
    </Badge>
  )
}

const firstOf = (names: readonly string[]) =>
  [names.slice(0, maxShown).join(', '), ...(names.length > maxShown ? [words.more(names.length - maxShown)] : [])].join(' ')
