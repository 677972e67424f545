/** Queued mail by recipient domain, with pause, resume and retry. For owners of the organisation. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, withQuery } from '../api-client.ts'
import type { FlushResponse, QueueResponse, ShownQueuePause } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Heading, Problem, Section } from '../parts/basic-components.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { Field } from '../parts/form-controls.tsx'
import { RowLink } from '../parts/paged-lists.tsx'
import { Age, Time } from '../parts/time-and-copy.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 5000
const words = texts.queue
const waiting = '/queue/waiting'
type Place = Partial<Record<'destination' | 'provider' | 'domain' | 'tenantId', string>>

export function QueuePage() {
  const { tenantId } = useHere()
  const client = useQueryClient()
  const [pausing, setPausing] = useState<string>()
  const [flushing, setFlushing] = useState(false)
  const path = withQuery('/dashboard/api/queue', { tenantId })
  const { data, error } = useQuery({ queryKey: ['queue', path], queryFn: () => get<QueueResponse>(path), refetchInterval: everyMs })
  const refresh = () => client.invalidateQueries({ queryKey: ['queue'] })
  const resume = useMutation({ mutationFn: (place: Place) => post('/dashboard/api/queue/resume', place), onSettled: refresh })
  const flush = useMutation({
    mutationFn: (destination: string) => post<FlushResponse>('/dashboard/api/queue/flush', { destination }),
    onSettled: refresh,
  })
  return (
    <>
      <Heading title={texts.pages.queue} about={words.intro}>
        <Button onClick={() => setFlushing(true)}>{words.flushAll}</Button>
        <Button onClick={() => setPausing('')}>{words.pauseOne}</Button>
      </Heading>
      <Problem error={error ?? resume.error ?? flush.error} />
      <p aria-live="polite" className="mb-2 text-sm empty:mb-0">
        {flush.data && words.flushed(flush.data.emails)}
      </p>
      {!data && !error && <TableSkeleton />}
      {data?.recipientDomains.length === 0 && <Empty>{words.empty}</Empty>}
      {data && data.recipientDomains.length > 0 && <Summary of={data.recipientDomains} />}
      {data && data.recipientDomains.length > 0 && (
        <DataTable
          label={texts.pages.queue}
          columns={columnsOf(data.recipientDomains, {
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
      {flushing && (
        <Confirm
          title={words.flushAllTitle}
          text={words.flushAllText}
          action={words.flushAll}
          run={() => post('/dashboard/api/queue/flush', {})}
          onDone={async () => {
            setFlushing(false)
            await refresh()
          }}
          onClose={() => setFlushing(false)}
        />
      )}
    </>
  )
}

type Queued = QueueResponse['recipientDomains'][number]

const firstOf = (times: readonly string[]) => times.toSorted()[0]

/** The shown queues in one line: how much waits, since when, and until when. */
function Summary({ of: items }: { of: readonly Queued[] }) {
  const emails = items.reduce((sum, one) => sum + one.ready + one.overLimit + one.sending + one.deferred + one.held, 0)
  const oldestAt = firstOf(items.map((one) => one.oldestAt))
  const nextAt = firstOf(items.flatMap(({ nextDueAt }) => nextDueAt ?? []))
  return (
    <p className="mb-3 text-sm">
      <span className="font-medium">{words.waits(emails, items.length)}</span>
      {oldestAt && (
        <span className="text-soft">
          {' · '}
          {words.oldestFor} <Age at={oldestAt} />
        </span>
      )}
      {nextAt && (
        <span className="text-soft">
          {' · '}
          {words.next} <DueTime at={nextAt} />
        </span>
      )}
    </p>
  )
}

/** A time that has passed is due. */
const DueTime = ({ at }: { at: string }) => (Date.parse(at) <= Date.now() ? words.now : <Time at={at} />)

interface RowActions {
  isBusy: { flush: boolean; resume: boolean }
  onFlush: (recipientDomain: string) => void
  onPause: (recipientDomain: string) => void
  onResume: (recipientDomain: string) => void
}

const names = words.names

const count = (name: string, by: (one: Queued) => number): Column<Queued> => ({
  name,
  isNumber: true,
  by,
  isUsual: (one) => by(one) === 0,
  cell: (one) => <Count of={by(one)} />,
})

/** Zeros are muted, so that the numbers that matter stand out. */
const Count = ({ of: number }: { of: number }) =>
  number === 0 ? <span className="text-soft">0</span> : <span className="font-medium">{number.toLocaleString()}</span>

const counts: readonly Column<Queued>[] = [
  count(names.waiting, (one) => one.ready + one.overLimit),
  count(names.sending, (one) => one.sending),
  count(names.deferred, (one) => one.deferred),
  count(names.held, (one) => one.held),
  count(names.perMinute, (one) => one.perMinute),
]

const nextColumn: Column<Queued> = {
  name: names.next,
  className: 'whitespace-nowrap',
  by: (one) => one.nextDueAt ?? '',
  isUsual: (one) => one.nextDueAt === null,
  cell: (one) => (one.nextDueAt ? <DueTime at={one.nextDueAt} /> : <span className="text-soft">–</span>),
}

/** A column with zeros only is left out. */
const columnsOf = (items: readonly Queued[], actions: RowActions): readonly Column<Queued>[] => [
  {
    name: names.recipientDomain,
    phone: 'title',
    className: 'md:max-w-[28rem]',
    by: (one) => one.recipientDomain,
    cell: (one) => <DomainAndReply of={one} />,
  },
  ...counts.filter(({ by }) => items.some((one) => by?.(one) !== 0)),
  ...(items.some(({ nextDueAt }) => nextDueAt !== null) ? [nextColumn] : []),
  { name: names.oldest, className: 'text-soft whitespace-nowrap', by: (one) => one.oldestAt, cell: (one) => <Age at={one.oldestAt} /> },
  {
    name: texts.table.actions,
    isUnnamed: true,
    phone: 'line',
    cell: (one) => <DomainActions of={one} {...actions} />,
  },
]

const maxReplyLength = 200

function DomainAndReply({ of: one }: { of: Queued }) {
  const reply = (one.delayReason ?? (one.lastReply?.output || one.lastReply?.details) ?? '').slice(0, maxReplyLength)
  return (
    <>
      <RowLink to={waiting} search={{ destination: one.recipientDomain }}>
        {one.recipientDomain}
      </RowLink>{' '}
      {one.pauseReason !== null && <Badge tone="wait">{words.paused}</Badge>}
      {reply && <span className="mt-0.5 line-clamp-2 text-xs text-soft [overflow-wrap:anywhere]">{reply}</span>}
    </>
  )
}

function DomainActions({ of: one, isBusy, onFlush, onPause, onResume }: RowActions & { of: Queued }) {
  const name = one.recipientDomain
  return (
    <span className="-ml-2 flex gap-1 md:-mr-2 md:ml-0 md:justify-end">
      <Button
        small
        kind="quiet"
        aria-label={words.flushOf(name)}
        disabled={isBusy.flush || one.deferred === 0}
        onClick={() => onFlush(name)}
      >
        {words.flush}
      </Button>
      {one.pauseReason === null ? (
        <Button small kind="quiet" aria-label={words.pauseOf(name)} onClick={() => onPause(name)}>
          {words.pause}
        </Button>
      ) : (
        <Button small aria-label={words.resumeOf(name)} disabled={isBusy.resume} onClick={() => onResume(name)}>
          {words.resume}
        </Button>
      )}
    </span>
  )
}

function Stops({ pauses, onResume }: { pauses: readonly ShownQueuePause[]; onResume: (place: Place) => void }) {
  const { tenants } = useHere()
  const tenantOf = (one: ShownQueuePause) => tenants.find(({ id }) => id === one.tenantId)?.name
  return (
    <Section title={words.pauses}>
      <DataTable
        label={words.pauses}
        columns={stopColumnsOf(tenantOf, onResume)}
        items={pauses}
        keyOf={(one) => `${one.tenantId} ${one.kind} ${one.name}`}
      />
    </Section>
  )
}

type TenantOf = (one: ShownQueuePause) => string | undefined
const stopNames = words.stopNames

const stopColumnsOf = (tenantOf: TenantOf, onResume: (place: Place) => void): readonly Column<ShownQueuePause>[] => [
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
        aria-label={words.goOn(one.name)}
        onClick={() => onResume({ [one.kind]: one.name, ...(one.kind === 'domain' ? { tenantId: one.tenantId } : {}) })}
      >
        {words.resume}
      </Button>
    ),
  },
]

/** Mail takes a transport by its sender, so that no recipient domains belong to it. */
const isOfDomains = (provider: string) => !provider.startsWith('transport ')

const InForce = ({ queue: { providers, warmUps } }: { queue: QueueResponse }) => (
  <Section title={words.limits}>
    {providers.length + warmUps.length === 0 && <Empty>{words.noLimits}</Empty>}
    {providers.length > 0 && (
      <DataTable label={words.limits} columns={limitColumns} items={providers} keyOf={(one) => `${one.source} ${one.provider}`} />
    )}
    {warmUps.map((one) => (
      <p key={`${one.source} ${one.provider}`} className="mt-2 text-sm">
        {words.warmUp(one)}
      </p>
    ))}
  </Section>
)

type InForceLimit = QueueResponse['providers'][number]
const limitNames = words.limitNames

const limitColumns: readonly Column<InForceLimit>[] = [
  {
    name: limitNames.provider,
    phone: 'title',
    className: 'font-medium',
    cell: ({ provider }) =>
      isOfDomains(provider) ? (
        <Link to={waiting} search={{ provider }} className="link">
          {provider}
        </Link>
      ) : (
        provider
      ),
  },
  { name: limitNames.source, isUsual: ({ source }) => source === '', cell: ({ source }) => source || '–' },
  {
    name: limitNames.connections,
    className: 'tabular-nums',
    cell: ({ connectionsOpen, connections }) => `${connectionsOpen} / ${connections}`,
  },
  { name: limitNames.rate, cell: (one) => <Rate of={one} /> },
  { name: limitNames.reason, className: 'min-w-40 [overflow-wrap:anywhere]', cell: ({ cause }) => cause },
  { name: limitNames.changed, className: 'text-soft', cell: ({ changedAt }) => changedAt && <Time at={changedAt} /> },
]

const Rate = ({ of: { rate, backoffUntilMs } }: { of: InForceLimit }) => (
  <>
    {rate === null ? words.anyRate : words.rate(rate.toFixed(1))}
    {backoffUntilMs !== null && backoffUntilMs > Date.now() && (
      <span className="block text-soft">
        {words.backsOff} <Time at={new Date(backoffUntilMs).toISOString()} />
      </span>
    )}
  </>
)

function PauseDialog({ destination, onClose, onDone }: { destination: string; onClose: () => void; onDone: () => Promise<void> }) {
  const [name, setName] = useState(destination)
  const [reason, setBecause] = useState('')
  return (
    <FormDialog
      title={words.pauseTitle}
      action={words.pause}
      run={() => post('/dashboard/api/queue/pause', { destination: name.trim(), ...(reason ? { reason } : {}) })}
      onDone={async () => {
        onClose()
        await onDone()
      }}
      onClose={onClose}
    >
      <Field label={words.destination} help={words.pauseHelp} required value={name} onChange={(event) => setName(event.target.value)} />
      <Field label={words.reason} maxLength={200} value={reason} onChange={(event) => setBecause(event.target.value)} />
    </FormDialog>
  )
}
