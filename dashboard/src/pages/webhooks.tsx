/** Webhooks: their state, and adding one. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, getPage, patch, post, withQuery } from '../api-client.ts'
import { type Webhook, type WebhookDelivery, type WebhooksListData, type WebhookUseResponse, webhookEvents } from '../api-types.ts'
import { FormDialog, Several } from '../parts/action-dialogs.tsx'
import { Button, Empty, Heading, Meter, Problem } from '../parts/basic-components.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { Field } from '../parts/form-controls.tsx'
import { Menu } from '../parts/menu.tsx'
import { RowLink } from '../parts/paged-lists.tsx'
import { QuietState } from '../parts/quiet-state.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { WebhookBadge, WebhookState } from '../parts/webhook-state.tsx'
import { useLastDay } from '../parts/webhook-use.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.webhooks

/** Long because each column is an element of one list. */
export function WebhooksPage() {
  const { scoped, mayChange, tenantId, ofAll, nameOf } = useHere()
  const [adding, setAdding] = useState(false)
  const path = scoped('/v1/webhooks', ofAll)
  const { data, error } = useQuery({ queryKey: ['webhooks', path], queryFn: () => get<WebhooksListData>(path) })
  const use = useLastDay((data?.webhooks ?? []).map(({ id }) => id))
  const client = useQueryClient()
  const toggle = useMutation({
    mutationFn: ({ id, enabled }: Webhook) => patch<Webhook>(`/v1/webhooks/${id}`, { enabled: !enabled }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['webhooks'] }),
  })
  const items = (data?.webhooks ?? []).toSorted((a, b) => stateOrder(a) - stateOrder(b))
  const withDelivery = new Set(items.slice(0, maxWithDelivery).map((one) => one.id))
  const columns: readonly Column<Webhook>[] = [
    {
      name: words.name,
      phone: 'title',
      className: 'md:min-w-56',
      by: (one) => one.name,
      cell: (one) => (
        <>
          <RowLink to={`/webhooks/${one.id}`}>{one.name}</RowLink>
          <span className="block text-xs text-soft [overflow-wrap:anywhere]">{one.url}</span>
        </>
      ),
    },
    {
      name: words.state,
      phone: 'side',
      by: (one) => stateOrder(one),
      cell: (one) => (one.enabled && !one.failingSince ? <QuietState>{texts.webhook.on}</QuietState> : <WebhookBadge webhook={one} />),
    },
    {
      name: words.lastDelivery,
      phone: 'full',
      className: 'text-xs',
      cell: (one) => (
        <>
          {withDelivery.has(one.id) && one.enabled && <LastDelivery id={one.id} isFailing={one.failingSince !== null} />}
          <WebhookState webhook={one} />
        </>
      ),
    },
    {
      name: words.day,
      phone: 'line',
      className: 'text-xs whitespace-nowrap',
      isUsual: (one) => use?.[one.id] === undefined,
      cell: (one) => <LastDay of={use?.[one.id]} isLoaded={use !== undefined} />,
    },
    {
      name: words.eventsShort,
      phone: 'line',
      className: 'text-xs text-soft whitespace-nowrap',
      isUsual: (one) => one.allEvents,
      cell: (one) => <Events of={one} />,
    },
    ...(tenantId === undefined
      ? [
          {
            name: texts.shell.tenant,
            phone: 'line' as const,
            className: 'whitespace-nowrap max-md:text-xs',
            by: (one: Webhook) => nameOf(one.tenantId),
            cell: (one: Webhook) => nameOf(one.tenantId),
          },
        ]
      : []),
    ...(mayChange ? [menuColumn((one) => toggle.mutate(one))] : []),
  ]
  const add = mayChange && (
    <Button kind="main" onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  return (
    <>
      <Heading title={texts.pages.webhooks} about={words.about}>
        {data?.webhooks.length !== 0 && add}
      </Heading>
      <Problem error={error ?? toggle.error} />
      {!data && !error && <TableSkeleton />}
      {data?.webhooks.length === 0 && <Empty action={add}>{words.empty}</Empty>}
      {data && data.webhooks.length > 0 && (
        <DataTable label={texts.pages.webhooks} columns={columns} items={items} keyOf={(one) => one.id} isWhole />
      )}
      {adding && <AddWebhook onClose={() => setAdding(false)} />}
    </>
  )
}

const menuColumn = (onToggle: (webhook: Webhook) => void): Column<Webhook> => ({
  name: texts.table.actions,
  isUnnamed: true,
  phone: 'menu',
  className: 'md:text-right',
  cell: (one) => (
    <Menu
      label={words.actionsOf(one.name)}
      actions={[{ label: one.enabled ? texts.webhook.switchOff : texts.webhook.switchOn, onChoose: () => onToggle(one) }]}
    />
  ),
})

function LastDay({ of: use, isLoaded }: { of: WebhookUseResponse['webhooks'][string] | undefined; isLoaded: boolean }) {
  if (!use) return <span className="text-soft">{isLoaded ? words.quiet : '–'}</span>
  const { requests, delivered, medianMs, isComplete } = use
  return (
    <span className="inline-flex items-center gap-x-2 tabular-nums">
      <span className="max-md:hidden">
        <DeliveredMeter delivered={delivered} requests={requests} />
      </span>
      <span>
        {words.delivered(delivered, requests, isComplete)}
        <span className="text-soft md:block max-md:hidden">{words.median(medianMs)}</span>
      </span>
    </span>
  )
}

/** Without any success the whole bar is red, because an empty one looks like no data. */
const DeliveredMeter = ({ delivered, requests }: { delivered: number; requests: number }) => (
  <Meter
    part={delivered === 0 ? requests : delivered}
    whole={requests}
    tone={delivered === requests ? 'good' : delivered === 0 ? 'bad' : 'wait'}
  />
)

/** One by name, several by number; the tooltip names them. */
const Events = ({ of: { allEvents, events } }: { of: Webhook }) =>
  allEvents ? (
    texts.webhook.allEvents
  ) : (
    <span data-tip={events.join(', ')}>{events.length === 1 ? events[0] : words.countOfEvents(events.length)}</span>
  )

/** The last delivery takes a request for each webhook. */
const maxWithDelivery = 30
const deliveryEveryMs = 30_000

/** Its response, or the cause of a failure. */
function LastDelivery({ id, isFailing }: { id: string; isFailing: boolean }) {
  const { data } = useQuery({
    queryKey: ['webhooks', 'last delivery', id],
    queryFn: () => getPage<WebhookDelivery>(withQuery(`/v1/webhooks/${id}/deliveries`, { perPage: 1 })),
    staleTime: deliveryEveryMs,
  })
  const last = data?.items[0]
  if (!last) return data ? <span className="text-soft">{texts.webhook.empty}</span> : null
  return (
    <span className="block">
      <span className={isFailing ? 'text-bad' : ''}>
        {last.statusCode ?? texts.webhook.noAnswer} · <Time at={last.timestamp} />
      </span>
    </span>
  )
}

/** Failing ones first. */
const stateOrder = ({ enabled, failingSince }: Webhook) => (failingSince ? 0 : enabled ? 2 : 1)

function AddWebhook({ onClose }: { onClose: () => void }) {
  const { inBody } = useHere()
  const [name, setName] = useState('')
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState<string[]>([])
  const navigate = useNavigate()
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() => post<Webhook>('/v1/webhooks', { name, url, ...(events.length === 0 ? { allEvents: true } : { events }), ...inBody })}
      onDone={({ id }) => navigate({ to: '/webhooks/$webhookId', params: { webhookId: id }, search: {} })}
      onClose={onClose}
    >
      <Field label={words.name} required value={name} onChange={(event) => setName(event.target.value)} />
      <Field
        label={words.url}
        type="url"
        required
        value={url}
        onChange={(event) => setUrl(event.target.value)}
        placeholder={words.example}
      />
      <Several legend={words.events} choices={webhookEvents} chosen={events} onChange={setEvents} />
    </FormDialog>
  )
}
