/** Mail in: the messages that routes received, newest first, and the routes. */
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { get, withQuery } from '../api-client.ts'
import type { Domain, ReceivedListItem, RoutesCreateData, WebhooksListData } from '../api-types.ts'
import { Badge, Button, Coded, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, TableSkeleton } from '../parts/data-table.tsx'
import { Field } from '../parts/form-controls.tsx'
import { AttachmentIcon } from '../parts/icons.tsx'
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
  const pageOf = (one: typeof view) => (one === view ? filters.page : undefined)
  const routes = useList<RoutesCreateData>('routes', scoped('/v1/routes', { page: pageOf('routes'), perPage: 100 }))
  const messages = useList<ReceivedListItem>(
    'received',
    scoped('/v1/received', { from: filters.from, page: pageOf('messages'), perPage: 50 }),
    everyMs,
  )
  const receivers = useReceivers(messages.data?.items[0]?.tenantId)
  const isKnown = routes.data !== undefined && messages.data !== undefined
  const isEmpty = routes.data?.total === 0 && messages.data?.total === 0 && !filters.from
  const error = routes.error ?? messages.error
  const add = mayChange && (
    <Button kind={isEmpty || view === 'routes' ? 'main' : 'plain'} onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  return (
    <>
      <Heading title={texts.pages.mailIn} about={tenantId === undefined && tenants.length > 1 ? words.ofDefault : words.about}>
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
              <SearchForm key={filters.from} from={filters.from ?? ''} onSearch={(from) => change({ from })} />
              <Listing
                label={words.messages}
                list={{ data: messages.data, error: undefined }}
                columns={columnsFor(receivers)}
                keyOf={(one) => one.id}
                empty={filters.from ? words.noMatch : words.noMessages}
              />
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

/** Where to send mail, and whether DNS leads it here. */
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
    <p className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg border border-line px-4 py-2 text-sm">
      {data && <Badge tone={status === 'OK' ? 'good' : 'wait'}>{words.mxStates[status]}</Badge>}
      <span className="text-soft">{words.arrives}</span>
      {open.slice(0, maxShown).map(({ address }) => (
        <Value key={address} name={words.address}>
          {address}
        </Value>
      ))}
      {open.length > maxShown && <span className="text-soft">{words.more(open.length - maxShown)}</span>}
    </p>
  )
}

function SearchForm({ from: begun, onSearch }: { from: string; onSearch: (from: string) => void }) {
  const [from, setFrom] = useState(begun)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSearch(from.trim())
  }
  return (
    <search className="mb-3 block">
      <form onSubmit={submit} className="flex items-end gap-2">
        <div className="min-w-0 grow md:max-w-sm">
          <Field
            bare
            type="search"
            label={words.search}
            placeholder={words.searchExample}
            value={from}
            onChange={({ target }) => setFrom(target.value)}
          />
        </div>
        <Button type="submit">{texts.actions.search}</Button>
      </form>
    </search>
  )
}

const columnsFor = (receivers: readonly string[] | undefined): readonly Column<ReceivedListItem>[] => [
  {
    name: words.subject,
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
  { name: 'DMARC', phone: 'side', cell: (one) => <DmarcBadge of={one.authentication} isShort /> },
  {
    name: words.recipients,
    phone: 'full',
    className: '[overflow-wrap:anywhere]',
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
    className: '[overflow-wrap:anywhere]',
    cell: (one) => <Result of={one} receivers={receivers} />,
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
