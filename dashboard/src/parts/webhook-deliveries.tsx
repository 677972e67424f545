/** The events of one webhook, each with its newest attempt: filtered, looked at, and sent again one by one or for a time range. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { post, withQuery } from '../api-client.ts'
import { type WebhookDelivery, webhookEvents } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Button, Empty, Problem, Section } from './basic-components.tsx'
import { type Column, DataTable, Pager, TableSkeleton } from './data-table.tsx'
import { Select } from './form-controls.tsx'
import { useList } from './paged-lists.tsx'
import { dayInWords, Time } from './time-and-copy.tsx'
import { toast } from './toast.tsx'
import { useFilters } from './url-params.ts'
import { Answer, OneDelivery } from './webhook-delivery.tsx'
import { ReplayRange } from './webhook-replay.tsx'

const words = texts.webhook
const everyMs = 5000
const outcomes = [
  { value: '', label: words.outcomes.any },
  { value: 'false', label: words.outcomes.failed },
  { value: 'true', label: words.outcomes.success },
] as const

/** Long because the dialogs share the chosen delivery. */
export function Deliveries({ id }: { id: string }) {
  const { mayChange } = useHere()
  const [filters, change] = useFilters()
  const [shown, setShown] = useState<WebhookDelivery>()
  const [isReplaying, setReplaying] = useState(false)
  const client = useQueryClient()
  const { page, success, event } = filters
  const path = withQuery(`/v1/webhooks/${id}/deliveries`, { page, success, event, newest: 'true' })
  const list = useList<WebhookDelivery>('deliveries', path, everyMs)
  const refresh = () => client.invalidateQueries({ queryKey: ['deliveries'] })
  const replay = useMutation({
    mutationFn: (delivery: string) => post(`/v1/webhooks/${id}/deliveries/${delivery}/replay`),
    onSuccess: () => toast(words.replayed),
    onSettled: refresh,
  })
  const columns = columnsOf(setShown, mayChange ? (delivery) => replay.mutate(delivery) : undefined, replay.isPending)
  return (
    <Section title={words.deliveries} aside={<Filters onReplayRange={mayChange ? () => setReplaying(true) : undefined} />}>
      <Problem error={replay.error ?? list.error} />
      {!list.data && !list.error && <TableSkeleton />}
      {list.data?.items.length === 0 && <Empty>{success || event ? words.emptyFiltered : words.empty}</Empty>}
      {list.data && list.data.items.length > 0 && (
        <DataTable
          label={words.deliveries}
          columns={columns}
          items={list.data.items}
          keyOf={(one) => one.eventId}
          groupOf={(one) => dayInWords(one.timestamp)}
        />
      )}
      {list.data && <Pager {...list.data} totalIn={words.total} onPage={(next) => change({ page: String(next) })} />}
      {shown && (
        <OneDelivery
          webhook={id}
          of={shown}
          onReplay={mayChange ? () => replay.mutate(shown.id, { onSuccess: () => setShown(undefined) }) : undefined}
          onClose={() => setShown(undefined)}
        />
      )}
      {isReplaying && <ReplayRange id={id} onDone={refresh} onClose={() => setReplaying(false)} />}
    </Section>
  )
}

function Filters({ onReplayRange }: { onReplayRange: (() => void) | undefined }) {
  const [{ success, event }, change] = useFilters()
  return (
    <div className="flex flex-wrap gap-2">
      <Select bare label={words.outcome} value={success ?? ''} choices={outcomes} onChange={(next) => change({ success: next })} />
      <Select
        bare
        label={words.eventFilter}
        value={event ?? ''}
        choices={[{ value: '', label: words.anyEvent }, ...webhookEvents.map((value) => ({ value, label: value }))]}
        onChange={(next) => change({ event: next })}
      />
      {onReplayRange && <Button onClick={onReplayRange}>{words.replayRange}</Button>}
    </div>
  )
}

/** Long because each column is an element of one list. */
const columnsOf = (
  onLook: (one: WebhookDelivery) => void,
  onReplay: ((id: string) => void) | undefined,
  isBusy: boolean,
): readonly Column<WebhookDelivery>[] => [
  {
    name: words.event,
    phone: 'title',
    cell: (one) => (
      <button
        type="button"
        data-row-link
        onClick={() => onLook(one)}
        className={`block max-w-full truncate rounded py-0.5 text-left hover:underline ${one.recipient === null ? 'font-medium' : 'text-soft'}`}
      >
        {one.event}
        {one.recipient !== null && (
          <span className="md:hidden">
            {' · '}
            <span className="font-medium text-ink">{one.recipient}</span>
          </span>
        )}
      </button>
    ),
  },
  {
    name: words.recipient,
    phone: 'none',
    className: 'font-medium md:max-w-80 md:truncate',
    cell: (one) => one.recipient ?? <span className="font-normal text-soft">–</span>,
  },
  { name: words.response, phone: 'side', cell: (one) => <Answer of={one} /> },
  {
    name: words.attempts,
    phone: 'line',
    isNumber: true,
    cell: (one) => (
      <>
        <span className="max-md:hidden">{one.attempt}</span>
        <span className="md:hidden">{words.attemptOf(one.attempt)}</span>
      </>
    ),
  },
  {
    name: words.nextAttempt,
    phone: 'line',
    className: 'whitespace-nowrap',
    isUsual: (one) => one.success,
    cell: (one) => <Next of={one} />,
  },
  {
    name: words.time,
    phone: 'line',
    className: 'text-soft whitespace-nowrap',
    cell: (one) => <Time at={one.timestamp} clock="minutes" ofDay />,
  },
  {
    name: texts.table.actions,
    isUnnamed: true,
    phone: 'none',
    className: 'md:text-right',
    cell: (one) =>
      onReplay && (
        <Button small kind="quiet" className="on-row" disabled={isBusy} onClick={() => onReplay(one.id)}>
          {words.replay}
        </Button>
      ),
  },
]

/** The time of the next attempt, or why there is none. */
function Next({ of: { success, nextAttemptAt, willRetry } }: { of: WebhookDelivery }) {
  if (success) return <span className="text-soft">–</span>
  if (!nextAttemptAt) return willRetry ? words.soon : <span className="text-bad">{words.gaveUp}</span>
  return (
    <>
      <span className="text-soft md:hidden">{words.next} </span>
      <Time at={nextAttemptAt} />
    </>
  )
}
