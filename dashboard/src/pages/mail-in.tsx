/** Mail in: the messages that routes received, newest first, and the routes. */
import { useState } from 'react'
import type { ReceivedListItem, RoutesCreateData } from '../api-types.ts'
import { Button, Coded, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, TableSkeleton } from '../parts/data-table.tsx'
import { AddRoute, MailRoutes } from '../parts/mail-routes.tsx'
import { Listing, RowLink, useList } from '../parts/paged-lists.tsx'
import { DmarcBadge, senderOf } from '../parts/received-checks.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { Time } from '../parts/time-and-copy.tsx'
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

export function MailInPage() {
  const { scoped, mayChange, tenants, tenantId } = useHere()
  const [adding, setAdding] = useState(false)
  const [filters, change] = useFilters()
  const view = filters.view === 'routes' ? 'routes' : 'messages'
  const pageOf = (one: typeof view) => (one === view ? filters.page : undefined)
  const routes = useList<RoutesCreateData>('routes', scoped('/v1/routes', { page: pageOf('routes'), perPage: 100 }))
  const messages = useList<ReceivedListItem>('received', scoped('/v1/received', { page: pageOf('messages'), perPage: 50 }), everyMs)
  const isKnown = routes.data !== undefined && messages.data !== undefined
  const isEmpty = routes.data?.total === 0 && messages.data?.total === 0
  const error = routes.error ?? messages.error
  const add = mayChange && (
    <Button kind="main" onClick={() => setAdding(true)}>
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
            <Listing
              label={words.messages}
              list={{ data: messages.data, error: undefined }}
              columns={columns}
              keyOf={(one) => one.id}
              empty={words.noMessages}
            />
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

const columns: readonly Column<ReceivedListItem>[] = [
  {
    name: words.subject,
    phone: 'title',
    className: 'md:max-w-96',
    cell: (one) => (
      <>
        <RowLink to={`/mail-in/${encodeURIComponent(one.id)}`}>{one.subject || texts.emails.noSubject}</RowLink>
        <span className="block text-xs text-soft [overflow-wrap:anywhere]">{senderOf(one)}</span>
      </>
    ),
  },
  { name: 'DMARC', phone: 'side', cell: (one) => <DmarcBadge of={one.authentication} /> },
  {
    name: words.recipients,
    className: '[overflow-wrap:anywhere]',
    cell: ({ recipients }) => firstOf(recipients.map(({ address }) => address)),
  },
  {
    name: words.forwarded,
    className: '[overflow-wrap:anywhere]',
    isUsual: ({ forwarded }) => forwarded.length === 0,
    cell: ({ forwarded }) => firstOf(forwarded.map(({ to }) => to)),
  },
  {
    name: words.attachments,
    isNumber: true,
    isUsual: ({ attachmentCount }) => attachmentCount === 0,
    cell: ({ attachmentCount }) => (attachmentCount === 0 ? <span className="text-soft">0</span> : attachmentCount.toLocaleString()),
  },
  { name: words.received, className: 'text-soft', cell: (one) => <Time at={one.receivedAt} /> },
]

const firstOf = (addresses: readonly string[]) =>
  [addresses.slice(0, maxShown).join(', '), ...(addresses.length > maxShown ? [words.more(addresses.length - maxShown)] : [])].join(' ')
