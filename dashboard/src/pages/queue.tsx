/** Queued mail by recipient domain, with pause, resume and retry. For owners of the organisation. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post, withQuery } from '../api-client.ts'
import type { FlushResponse, QueueResponse, ShownQueuePause } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Field, Heading, Problem, Section, Table, Time } from '../parts/basic-components.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 5000
const words = texts.queue
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
      <Heading title={texts.pages.queue}>
        <Button onClick={() => setFlushing(true)}>{words.flushAll}</Button>
        <Button kind="main" onClick={() => setPausing('')}>
          {words.pauseOne}
        </Button>
      </Heading>
      <p className="mb-4 text-sm text-soft">{words.intro}</p>
      <Problem error={error ?? resume.error ?? flush.error} />
      <p aria-live="polite" className="mb-2 text-sm empty:mb-0">
        {flush.data && words.flushed(flush.data.emails)}
      </p>
      {data?.recipientDomains.length === 0 && <Empty>{words.empty}</Empty>}
      {data && data.recipientDomains.length > 0 && (
        <Table label={texts.pages.queue} columns={words.columns}>
          {data.recipientDomains.map((one) => (
            <QueueRow
              key={one.recipientDomain}
              of={one}
              isBusy={{ flush: flush.isPending, resume: resume.isPending }}
              onFlush={() => flush.mutate(one.recipientDomain)}
              onPause={() => setPausing(one.recipientDomain)}
              onResume={() => resume.mutate({ destination: one.recipientDomain })}
            />
          ))}
        </Table>
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

function QueueRow(props: {
  of: QueueResponse['recipientDomains'][number]
  isBusy: { flush: boolean; resume: boolean }
  onFlush: () => void
  onPause: () => void
  onResume: () => void
}) {
  const { of: one, isBusy, onFlush, onPause, onResume } = props
  return (
    <tr>
      <td className="font-medium">
        {one.recipientDomain} {one.pauseReason !== null && <Badge tone="wait">{words.paused}</Badge>}
        <span className="mt-2 flex gap-2">
          <Button aria-label={words.flushOf(one.recipientDomain)} disabled={isBusy.flush || one.deferred === 0} onClick={onFlush}>
            {words.flush}
          </Button>
          {one.pauseReason === null ? (
            <Button aria-label={words.pauseOf(one.recipientDomain)} onClick={onPause}>
              {words.pause}
            </Button>
          ) : (
            <Button aria-label={words.resumeOf(one.recipientDomain)} disabled={isBusy.resume} onClick={onResume}>
              {words.resume}
            </Button>
          )}
        </span>
      </td>
      <td className="tabular-nums">{(one.ready + one.overLimit).toLocaleString()}</td>
      <td className="tabular-nums">{one.sending.toLocaleString()}</td>
      <td className="tabular-nums">
        {one.deferred.toLocaleString()}
        {one.nextDueAt && (
          <span className="block text-soft">
            {words.next} <Time at={one.nextDueAt} />
          </span>
        )}
      </td>
      <td className="tabular-nums">{one.held.toLocaleString()}</td>
      <td>
        <Time at={one.oldestAt} />
      </td>
      <td className="tabular-nums">{one.perMinute.toLocaleString()}</td>
      <td className="min-w-40 [overflow-wrap:anywhere]">
        {(one.delayReason ?? one.lastReply?.output ?? one.lastReply?.details ?? '').slice(0, 200) || one.lastReply?.details}
      </td>
    </tr>
  )
}

function Stops({ pauses, onResume }: { pauses: readonly ShownQueuePause[]; onResume: (place: Place) => void }) {
  const { tenants } = useHere()
  return (
    <Section title={words.pauses}>
      <Table label={words.pauses} columns={words.stopColumns}>
        {pauses.map((one) => (
          <tr key={`${one.tenantId} ${one.kind} ${one.name}`}>
            <td className="font-medium">{one.name}</td>
            <td>
              {words.kinds[one.kind]} {tenants.find(({ id }) => id === one.tenantId)?.name}
            </td>
            <td className="min-w-40 [overflow-wrap:anywhere]">{one.reason}</td>
            <td>
              <Time at={one.at} />
            </td>
            <td className="text-right">
              <Button
                aria-label={words.goOn(one.name)}
                onClick={() => onResume({ [one.kind]: one.name, ...(one.kind === 'domain' ? { tenantId: one.tenantId } : {}) })}
              >
                {words.resume}
              </Button>
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}

const InForce = ({ queue: { providers, warmUps } }: { queue: QueueResponse }) => (
  <Section title={words.limits}>
    {providers.length + warmUps.length === 0 && <Empty>{words.noLimits}</Empty>}
    {providers.length > 0 && (
      <Table label={words.limits} columns={words.limitColumns}>
        {providers.map((one) => (
          <tr key={`${one.source} ${one.provider}`}>
            <td className="font-medium">{one.provider}</td>
            <td>{one.source || '–'}</td>
            <td className="tabular-nums">
              {one.connectionsOpen} / {one.connections}
            </td>
            <td>
              {one.rate === null ? words.anyRate : words.rate(one.rate.toFixed(1))}
              {one.backoffUntilMs !== null && one.backoffUntilMs > Date.now() && (
                <span className="block text-soft">
                  {words.backsOff} <Time at={new Date(one.backoffUntilMs).toISOString()} />
                </span>
              )}
            </td>
            <td className="min-w-40 [overflow-wrap:anywhere]">{one.cause}</td>
            <td>{one.changedAt && <Time at={one.changedAt} />}</td>
          </tr>
        ))}
      </Table>
    )}
    {warmUps.map((one) => (
      <p key={`${one.source} ${one.provider}`} className="mt-2 text-sm">
        {words.warmUp(one)}
      </p>
    ))}
  </Section>
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
