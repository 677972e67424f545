/** The deliveries of one webhook, grouped by event: filtered, looked at, and sent again one by one or for a time range. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, withQuery } from '../api-client.ts'
import { type WebhookDelivery, type WebhooksRetrieveDeliveryData, webhookEvents } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Badge, Button, Problem, Section, Skeleton } from './basic-components.tsx'
import type { Column } from './data-table.tsx'
import { Dialog } from './dialog.tsx'
import { Select } from './form-controls.tsx'
import { HiddenContent } from './hidden-content.tsx'
import { Listing, useList } from './paged-lists.tsx'
import { CopyIconButton, Pre, Time } from './time-and-copy.tsx'
import { toast } from './toast.tsx'
import { useFilters } from './url-params.ts'
import { ReplayRange } from './webhook-replay.tsx'

const words = texts.webhook
const everyMs = 5000
const outcomes = [
  { value: '', label: words.outcomes.any },
  { value: 'false', label: words.outcomes.failed },
  { value: 'true', label: words.outcomes.success },
] as const

export function Deliveries({ id }: { id: string }) {
  const { mayChange } = useHere()
  const [filters, change] = useFilters()
  const [shown, setShown] = useState<string>()
  const [isReplaying, setReplaying] = useState(false)
  const client = useQueryClient()
  const path = withQuery(`/v1/webhooks/${id}/deliveries`, { page: filters.page, success: filters.success, event: filters.event })
  const list = useList<WebhookDelivery>('deliveries', path, everyMs)
  const refresh = () => client.invalidateQueries({ queryKey: ['deliveries'] })
  const replay = useMutation({
    mutationFn: (delivery: string) => post(`/v1/webhooks/${id}/deliveries/${delivery}/replay`),
    onSuccess: () => toast(words.replayed),
    onSettled: refresh,
  })
  const grouped = { error: list.error, data: list.data && { ...list.data, items: byEvent(list.data.items) } }
  const columns = columnsOf(setShown, mayChange ? (delivery) => replay.mutate(delivery) : undefined, replay.isPending)
  return (
    <Section title={words.deliveries} aside={mayChange && <Button onClick={() => setReplaying(true)}>{words.replayRange}</Button>}>
      <div className="mb-3 flex flex-wrap gap-2">
        <Select label={words.outcome} value={filters.success ?? ''} choices={outcomes} onChange={(success) => change({ success })} />
        <Select
          label={words.eventFilter}
          value={filters.event ?? ''}
          choices={[{ value: '', label: words.anyEvent }, ...webhookEvents.map((value) => ({ value, label: value }))]}
          onChange={(event) => change({ event })}
        />
      </div>
      <Listing
        label={words.deliveries}
        list={grouped}
        error={replay.error}
        columns={columns}
        keyOf={(one) => one.eventId}
        total={words.total}
        empty={filters.success || filters.event ? words.emptyFiltered : words.empty}
      />
      {shown && <OneDelivery webhook={id} id={shown} onClose={() => setShown(undefined)} />}
      {isReplaying && <ReplayRange id={id} onDone={refresh} onClose={() => setReplaying(false)} />}
    </Section>
  )
}

/** The attempts of one event on this page, newest first. */
interface Told {
  eventId: string
  last: WebhookDelivery
  attempts: readonly WebhookDelivery[]
}

/** In the order of the newest attempt of each. */
function byEvent(deliveries: readonly WebhookDelivery[]): Told[] {
  const groups = new Map<string, WebhookDelivery[]>()
  for (const one of deliveries) groups.set(one.eventId, [...(groups.get(one.eventId) ?? []), one])
  return [...groups].flatMap(([eventId, attempts]) => (attempts[0] ? [{ eventId, last: attempts[0], attempts }] : []))
}

const Answer = ({ of: one }: { of: WebhookDelivery }) => (
  <Badge tone={one.success ? 'good' : one.willRetry ? 'wait' : 'bad'}>
    {one.statusCode ?? words.noAnswer}
    {one.willRetry ? ` · ${one.nextAttemptAt ? words.willRetry : words.retried}` : !one.success && ` · ${words.gaveUp}`}
  </Badge>
)

type OnOne = (id: string) => void

/** Long because each column is an element of one list. */
const columnsOf = (onLook: OnOne, onReplay: OnOne | undefined, isBusy: boolean): readonly Column<Told>[] => [
  {
    name: words.event,
    phone: 'title',
    cell: ({ last }) => (
      <>
        <span className="font-medium">{last.event}</span>
        {last.emailId && (
          <Link
            to="/emails/$emailId"
            params={{ emailId: last.emailId }}
            search={{}}
            className="link block text-xs [overflow-wrap:anywhere]"
          >
            {last.recipient ?? words.email}
          </Link>
        )}
      </>
    ),
  },
  { name: words.response, phone: 'side', cell: ({ last }) => <Answer of={last} /> },
  {
    name: words.attempts,
    phone: 'line',
    className: 'tabular-nums',
    cell: ({ last, attempts }) => (
      <>
        {words.attemptOf(last.attempt)}
        {attempts.length > 1 && <Earlier of={attempts.slice(1)} onLook={onLook} />}
      </>
    ),
  },
  {
    name: words.nextAttempt,
    phone: 'line',
    className: 'whitespace-nowrap',
    isUsual: ({ last }) => last.nextAttemptAt === undefined,
    cell: ({ last }) =>
      last.nextAttemptAt && (
        <>
          <span className="text-soft md:hidden">{words.next} </span>
          <Time at={last.nextAttemptAt} />
        </>
      ),
  },
  {
    name: words.time,
    phone: 'line',
    className: 'text-soft whitespace-nowrap',
    cell: ({ last }) => <Time at={last.timestamp} clock="minutes" />,
  },
  {
    name: texts.table.actions,
    isUnnamed: true,
    phone: 'full',
    cell: ({ last }) => (
      <span className="flex gap-1.5 md:justify-end">
        <Button small onClick={() => onLook(last.id)}>
          {words.look}
        </Button>
        {onReplay && (
          <Button small disabled={isBusy} onClick={() => onReplay(last.id)}>
            {words.replay}
          </Button>
        )}
      </span>
    ),
  },
]

/** The earlier attempts of one event, each with its response and a button that opens its request. */
const Earlier = ({ of: attempts, onLook }: { of: readonly WebhookDelivery[]; onLook: OnOne }) => (
  <details>
    <summary className="w-fit text-xs text-accent">{words.earlier(attempts.length)}</summary>
    <ol className="flex flex-col gap-1">
      {attempts.map((one) => (
        <li key={one.id} className="flex flex-wrap items-center gap-1.5 text-xs">
          <span className="text-soft">{words.attemptOf(one.attempt)}</span>
          <Badge tone={one.success ? 'good' : 'none'}>{one.statusCode ?? words.noAnswer}</Badge>
          <Button small kind="quiet" onClick={() => onLook(one.id)}>
            {words.look}
          </Button>
        </li>
      ))}
    </ol>
  </details>
)

function OneDelivery({ webhook, id, onClose }: { webhook: string; id: string; onClose: () => void }) {
  const { data, error } = useQuery({
    queryKey: ['delivery', id],
    queryFn: () => get<WebhooksRetrieveDeliveryData>(`/v1/webhooks/${webhook}/deliveries/${id}`),
  })
  return (
    <Dialog wide title={data ? words.deliveryOf(data.event, data.attempt) : words.delivery} onClose={onClose}>
      <Problem error={error} />
      {!data && !error && <Skeleton lines={6} />}
      {data && (
        <>
          <p className="mb-4 flex flex-wrap items-center gap-x-2 text-xs text-soft">
            <Badge tone={data.success ? 'good' : data.willRetry ? 'wait' : 'bad'}>{data.statusCode ?? words.noAnswer}</Badge>
            <Time at={data.timestamp} exact /> · {texts.ms(data.response.duration)} · {data.url}
            <EmailLink payload={data.request.payload} />
            {data.nextAttemptAt && (
              <span>
                · {words.nextAttempt} <Time at={data.nextAttemptAt} exact />
              </span>
            )}
          </p>
          {data.contentHidden ? (
            <HiddenContent />
          ) : (
            <div className="grid gap-4 md:grid-cols-2 [&>*]:min-w-0">
              <Labelled title={words.request} text={JSON.stringify(data.request.payload, null, 2)} />
              <Labelled title={words.response} text={data.response.body ?? data.response.error ?? words.noAnswer} />
            </div>
          )}
          <details className="mt-3">
            <summary className="w-fit text-xs text-accent">{words.headers}</summary>
            <Pre label={words.headers}>
              {Object.entries(data.request.headers)
                .map(([name, value]) => `${name}: ${value}`)
                .join('\n')}
            </Pre>
          </details>
        </>
      )}
      <div className="mt-4 flex justify-end">
        <Button onClick={onClose}>{texts.actions.close}</Button>
      </div>
    </Dialog>
  )
}

const Labelled = ({ title, text }: { title: string; text: string }) => (
  <div>
    <h3 className="mb-1 flex items-center justify-between text-sm font-medium">
      {title} <CopyIconButton text={text} label={texts.actions.copyOf(title)} />
    </h3>
    <Pre label={title}>{text}</Pre>
  </div>
)

/** The email that the event is about, if its payload names one. */
function EmailLink({ payload }: { payload: Record<string, unknown> }) {
  const id = /"(?:id|emailId)":"([0-9A-Za-z]{22})"/.exec(JSON.stringify(payload))?.[1]
  return id === undefined ? null : (
    <Link to="/emails/$emailId" params={{ emailId: id }} search={{}} className="link">
      {words.email}
    </Link>
  )
}
