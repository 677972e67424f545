/** Queued mail by recipient domain, with pause, resume and retry. For owners of the organisation. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, withQuery } from '../api-client.ts'
import type { FlushResponse, QueueResponse, ShownQueuePause } from '../api-types.ts'
import { Confirm } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Heading, OnPhone, Problem, Section } from '../parts/basic-components.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { RowLink } from '../parts/paged-lists.tsx'
import { InForce } from '../parts/queue-limits.tsx'
import { PauseDialog } from '../parts/queue-pause.tsx'
import { DueTime, QueueSummary } from '../parts/queue-summary.tsx'
import { Age, Time } from '../parts/time-and-copy.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 5000
const words = texts.queue
const waiting = '/queue/waiting'
type Place = Partial<Record<'destination' | 'provider' | 'domain' | 'tenantId', string>>

export function QueuePage() {
  const { tenantId, inBody } = useHere()
  const client = useQueryClient()
  const [pausing, setPausing] = useState<string>()
  const [flushing, setFlushing] = useState(false)
  const path = withQuery('/dashboard/api/queue', { tenantId })
  const { data, error } = useQuery({ queryKey: ['queue', path], queryFn: () => get<QueueResponse>(path), refetchInterval: everyMs })
  const refresh = () => client.invalidateQueries({ queryKey: ['queue'] })
  const resume = useMutation({ mutationFn: (place: Place) => post('/dashboard/api/queue/resume', place), onSettled: refresh })
  const flush = useMutation({
    mutationFn: (destination: string) => post<FlushResponse>('/dashboard/api/queue/flush', { destination, ...inBody }),
    onSettled: refresh,
  })
  return (
    <>
      <Heading title={texts.pages.queue} about={words.intro}>
        <Button onClick={() => setFlushing(true)}>{words.flushAll}</Button>
        <Button onClick={() => setPausing('')}>{words.pauseOne(tenantId)}</Button>
      </Heading>
      <Problem error={error ?? resume.error ?? flush.error} />
      <p aria-live="polite" className="mb-2 text-sm empty:mb-0">
        {flush.data && words.flushed(flush.data.emails)}
      </p>
      {!data && !error && <TableSkeleton />}
      {data?.recipientDomains.length === 0 && <Empty>{words.empty}</Empty>}
      {data && data.recipientDomains.length > 0 && <QueueSummary of={data} />}
      {data && <SameReply of={data.recipientDomains} />}
      {data && data.recipientDomains.length > 0 && (
        <DataTable
          label={texts.pages.queue}
          columns={columnsOf(data.recipientDomains, {
            tenantId,
            isBusy: { flush: flush.isPending, resume: resume.isPending },
            onFlush: (name) => flush.mutate(name),
            onPause: setPausing,
            onResume: (destination) => resume.mutate({ destination }),
          })}
          items={data.recipientDomains}
          keyOf={(one) => one.recipientDomain}
          isWhole
        />
      )}
      {data && data.pauses.length > 0 && <Stops pauses={data.pauses} onResume={(place) => resume.mutate(place)} />}
      {data && <InForce queue={data} />}
      {pausing !== undefined && <PauseDialog destination={pausing} onClose={() => setPausing(undefined)} onDone={refresh} />}
      {flushing && <FlushAll onClose={() => setFlushing(false)} onDone={refresh} />}
    </>
  )
}

function FlushAll({ onClose, onDone }: { onClose: () => void; onDone: () => Promise<void> }) {
  const { tenantId, inBody, nameOf } = useHere()
  return (
    <Confirm
      title={words.flushAllTitle(tenantId === undefined ? undefined : nameOf(tenantId))}
      text={words.flushAllText}
      action={words.flushAll}
      run={() => post('/dashboard/api/queue/flush', inBody)}
      onDone={async () => {
        onClose()
        await onDone()
      }}
      onClose={onClose}
    />
  )
}

type Queued = QueueResponse['recipientDomains'][number]

interface RowActions {
  /** Shown are only the emails of this tenant, but a pause is of all tenants. */
  tenantId: string | undefined
  isBusy: { flush: boolean; resume: boolean }
  onFlush: (recipientDomain: string) => void
  onPause: (recipientDomain: string) => void
  onResume: (recipientDomain: string) => void
}

const names = words.names

const count = (name: string, by: (one: Queued) => number): Column<Queued> => ({
  name,
  isNumber: true,
  phone: 'line',
  by,
  isUsual: (one) => by(one) === 0,
  cell: (one) => <Count of={by(one)} name={name} />,
})

/** Zeros are muted, so that the numbers that matter stand out. On a phone the name follows the number. */
const Count = ({ of: number, name }: { of: number; name: string }) => (
  <>
    {number === 0 ? <span className="text-soft">0</span> : <span className="font-medium">{number.toLocaleString()}</span>}
    <OnPhone>{name}</OnPhone>
  </>
)

const counts: readonly Column<Queued>[] = [
  count(names.waiting, (one) => one.ready + one.overLimit),
  count(names.sending, (one) => one.sending),
  count(names.deferred, (one) => one.deferred),
  count(names.held, (one) => one.held),
  count(names.perMinute, (one) => one.perMinute),
]

const Oldest = ({ of: { oldestAt } }: { of: Queued }) => (
  <span className="text-soft">
    <Age at={oldestAt} />
  </span>
)

const nextColumn: Column<Queued> = {
  name: names.next,
  phone: 'line',
  className: 'whitespace-nowrap',
  by: (one) => one.nextDueAt ?? '',
  isUsual: (one) => one.nextDueAt === null,
  cell: (one) =>
    one.nextDueAt ? (
      <>
        <span className="text-soft md:hidden">{words.next} </span>
        <DueTime at={one.nextDueAt} />
      </>
    ) : (
      <span className="text-soft">–</span>
    ),
}

/** A column with zeros only is left out. */
const columnsOf = (items: readonly Queued[], actions: RowActions): readonly Column<Queued>[] => [
  {
    name: names.recipientDomain,
    phone: 'title',
    by: (one) => one.recipientDomain,
    cell: (one) => <Domain of={one} />,
  },
  ...(items.some((one) => replyOf(one) !== '') && sameReply(items) === undefined ? [replyColumn] : []),
  ...counts.filter(({ by }) => items.some((one) => by?.(one) !== 0)),
  ...(items.some(({ nextDueAt }) => nextDueAt !== null) ? [nextColumn] : []),
  { name: names.oldest, phone: 'side', className: 'whitespace-nowrap', by: (one) => one.oldestAt, cell: (one) => <Oldest of={one} /> },
  {
    name: texts.table.actions,
    isUnnamed: true,
    phone: 'full',
    cell: (one) => <DomainActions of={one} {...actions} />,
  },
]

const maxReplyLength = 200
const replyOf = (one: Queued) => (one.delayReason ?? (one.lastReply?.output || one.lastReply?.details) ?? '').slice(0, maxReplyLength)

/** The last reply of all shown recipient domains, two or more, if it is the same. */
function sameReply(items: readonly Queued[]): string | undefined {
  const [reply = '', ...others] = new Set(items.map(replyOf))
  return items.length > 1 && reply !== '' && others.length === 0 ? reply : undefined
}

/** One finding in place of a column of equal replies. */
function SameReply({ of: items }: { of: readonly Queued[] }) {
  const reply = sameReply(items)
  if (reply === undefined) return null
  return (
    <div className="mb-4 rounded-lg border border-line border-l-2 border-l-chart-wait px-4 py-3 text-sm">
      <p className="font-medium [overflow-wrap:anywhere]">{reply}</p>
      <p className="text-xs text-soft">{words.sameReply(items.length)}</p>
    </div>
  )
}

const replyColumn: Column<Queued> = {
  name: names.reply,
  phone: 'full',
  className: 'text-xs text-soft [overflow-wrap:anywhere] max-md:line-clamp-2 md:max-w-72 md:truncate',
  cell: (one) => <span data-tip={replyOf(one)}>{replyOf(one)}</span>,
}

const Domain = ({ of: one }: { of: Queued }) => (
  <>
    <RowLink to={waiting} search={{ destination: one.recipientDomain }}>
      {one.recipientDomain}
    </RowLink>{' '}
    {one.pauseReason !== null && <Badge tone="wait">{words.paused}</Badge>}
  </>
)

function DomainActions({ of: one, tenantId, isBusy, onFlush, onPause, onResume }: RowActions & { of: Queued }) {
  const name = one.recipientDomain
  return (
    <span className="flex gap-1.5 md:justify-end">
      <Button
        small
        kind="quiet"
        className="max-md:border-line max-md:text-ink"
        aria-label={words.flushOf(name)}
        disabled={isBusy.flush || one.deferred === 0}
        onClick={() => onFlush(name)}
      >
        {words.flush}
      </Button>
      {one.pauseReason === null ? (
        <Button
          small
          kind="quiet"
          className="max-md:border-line max-md:text-ink"
          aria-label={words.pauseOf(name, tenantId)}
          onClick={() => onPause(name)}
        >
          {words.pause(tenantId)}
        </Button>
      ) : (
        <Button small aria-label={words.resumeOf(name, tenantId)} disabled={isBusy.resume} onClick={() => onResume(name)}>
          {words.resume(tenantId)}
        </Button>
      )}
    </span>
  )
}

function Stops({ pauses, onResume }: { pauses: readonly ShownQueuePause[]; onResume: (place: Place) => void }) {
  const { tenants, tenantId } = useHere()
  const tenantOf = (one: ShownQueuePause) => tenants.find(({ id }) => id === one.tenantId)?.name
  return (
    <Section title={words.pauses}>
      <DataTable
        label={words.pauses}
        columns={stopColumnsOf(tenantOf, tenantId, onResume)}
        items={pauses}
        keyOf={(one) => `${one.tenantId} ${one.kind} ${one.name}`}
      />
    </Section>
  )
}

type TenantOf = (one: ShownQueuePause) => string | undefined
const stopNames = words.stopNames

/** Only the pause of a sending domain is of one tenant. */
const ofAllTenants = (one: ShownQueuePause, tenantId: string | undefined) => (one.kind === 'domain' ? undefined : tenantId)

const stopColumnsOf = (
  tenantOf: TenantOf,
  tenantId: string | undefined,
  onResume: (place: Place) => void,
): readonly Column<ShownQueuePause>[] => [
  {
    name: stopNames.name,
    phone: 'title',
    className: 'font-medium',
    cell: (one) =>
      one.kind === 'domain' ? (
        one.name
      ) : (
        <Link to={waiting} search={{ [one.kind]: one.name }} className="link">
          {one.name}
        </Link>
      ),
  },
  { name: stopNames.kind, cell: (one) => [words.kinds[one.kind], tenantOf(one)].filter((text) => text).join(' ') },
  { name: stopNames.reason, className: 'min-w-40 [overflow-wrap:anywhere]', cell: (one) => one.reason },
  { name: stopNames.since, className: 'text-soft', cell: (one) => <Time at={one.at} /> },
  {
    name: texts.table.actions,
    isUnnamed: true,
    phone: 'menu',
    className: 'md:text-right',
    cell: (one) => (
      <Button
        small
        aria-label={words.resumeOf(one.name, ofAllTenants(one, tenantId))}
        onClick={() => onResume({ [one.kind]: one.name, ...(one.kind === 'domain' ? { tenantId: one.tenantId } : {}) })}
      >
        {words.resume(ofAllTenants(one, tenantId))}
      </Button>
    ),
  },
]
