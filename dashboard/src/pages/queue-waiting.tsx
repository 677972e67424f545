/** The emails that wait for one recipient domain or provider, with their last reply and next attempt. For owners of the organisation. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, type Page, post, withQuery } from '../api-client.ts'
import type { FlushResponse, QueueResponse, ShownWaitingEmail } from '../api-types.ts'
import { Badge, Button, Heading, Problem, type Tone, Warning } from '../parts/basic-components.tsx'
import { type Column, useSelection } from '../parts/data-table.tsx'
import { BackTo, Listing, RowLink, useList } from '../parts/paged-lists.tsx'
import { PauseDialog } from '../parts/queue-pause.tsx'
import { Age, Sentence, Time } from '../parts/time-and-copy.tsx'
import { useFilters } from '../parts/url-params.ts'
import { WaitingActions } from '../parts/waiting-actions.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.waiting
const everyMs = 5000
const maxReplyLength = 300

export function QueueWaitingPage() {
  const [{ destination, provider }] = useFilters()
  return destination || provider ? <Waiting /> : <Navigate to="/queue" search={{}} />
}

function Waiting() {
  const { tenantId } = useHere()
  const [{ destination, provider, page }] = useFilters()
  const path = withQuery('/dashboard/api/queue/emails', { destination, provider, page, tenantId })
  const list = useList<ShownWaitingEmail>('waiting', path, everyMs)
  const client = useQueryClient()
  const refresh = () => client.invalidateQueries({ queryKey: ['waiting'] })
  const selection = useSelection(path, list.data?.items ?? [], { keyOf: (one) => one.id, nameOf: (one) => one.to })
  const same = sameReply(list.data)
  return (
    <>
      <BackTo to="/queue">{texts.pages.queue}</BackTo>
      <Heading
        title={words.title(provider ?? destination ?? '')}
        about={
          <>
            {provider && <span className="block">{words.aboutProvider}</span>}
            <Sum of={list.data} />
          </>
        }
      >
        {destination && <DomainButtons destination={destination} refresh={refresh} />}
      </Heading>
      {destination && <DomainState destination={destination} />}
      {same && (
        <div className="mb-4 rounded-lg border border-line border-l-2 border-l-chart-wait px-4 py-3 text-sm">
          <p className="font-medium [overflow-wrap:anywhere]">{replyText(same)}</p>
          <p className="text-xs text-soft">
            {words.sameReply(list.data?.items.length ?? 0)}
            {same.remoteHost && ` · ${same.remoteHost}`} · <Time at={same.at} />
          </p>
        </div>
      )}
      <Listing
        label={words.label}
        list={list}
        columns={useColumns(same === undefined)}
        keyOf={(one) => one.id}
        empty={words.empty}
        selection={selection}
      />
      <WaitingActions selection={selection} onDone={refresh} />
    </>
  )
}

/** How much waits, since when and until when, as far as the page knows: the first page begins with the oldest. */
function Sum({ of }: { of: Page<ShownWaitingEmail> | undefined }) {
  const [oldest] = of?.items ?? []
  if (!of || !oldest) return null
  const next = of.totalPages === 1 ? of.items.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []).toSorted()[0] : undefined
  return (
    <>
      {words.sum(of.total)}
      {of.page === 1 && (
        <>
          {' · '}
          {words.oldest} <Age at={oldest.acceptedAt} />
        </>
      )}
      {next && (
        <>
          {' · '}
          {words.next} <Time at={next} />
        </>
      )}
    </>
  )
}

/** The pause of the whole installation that holds this recipient domain. */
function usePause(destination: string) {
  const { data } = useQuery({
    queryKey: ['queue', '/dashboard/api/queue'],
    queryFn: () => get<QueueResponse>('/dashboard/api/queue'),
    refetchInterval: everyMs,
  })
  return data?.pauses.find(({ kind, name }) => kind === 'destination' && name === destination.toLowerCase())
}

function DomainState({ destination }: { destination: string }) {
  const pause = usePause(destination)
  return pause ? <Warning>{words.pausedBecause(pause.reason)}</Warning> : null
}

function DomainButtons({ destination, refresh }: { destination: string; refresh: () => Promise<void> }) {
  const { tenantId, inBody } = useHere()
  const [isPausing, setPausing] = useState(false)
  const client = useQueryClient()
  const pause = usePause(destination)
  const all = async () => {
    await Promise.all([refresh(), client.invalidateQueries({ queryKey: ['queue'] })])
  }
  const flush = useMutation({
    mutationFn: () => post<FlushResponse>('/dashboard/api/queue/flush', { destination, ...inBody }),
    onSettled: all,
  })
  const resume = useMutation({ mutationFn: () => post('/dashboard/api/queue/resume', { destination }), onSettled: all })
  return (
    <>
      <span aria-live="polite" className="text-sm text-soft empty:hidden">
        {flush.data && texts.queue.flushed(flush.data.emails)}
      </span>
      <Problem error={flush.error ?? resume.error} />
      {pause ? (
        <Button disabled={resume.isPending} onClick={() => resume.mutate()}>
          {texts.queue.resume(tenantId)}
        </Button>
      ) : (
        <Button onClick={() => setPausing(true)}>{texts.queue.pause(tenantId)}</Button>
      )}
      <Button kind="main" disabled={flush.isPending} onClick={() => flush.mutate()}>
        {texts.queue.flush}
      </Button>
      {isPausing && <PauseDialog destination={destination} onClose={() => setPausing(false)} onDone={all} />}
    </>
  )
}

type Reply = NonNullable<ShownWaitingEmail['lastReply']>

const replyText = ({ output, details }: Reply) => (output || details).slice(0, maxReplyLength)

/** The newest reply, if all emails of the page, two or more, got the same one and wait for nothing else. */
function sameReply(page: Page<ShownWaitingEmail> | undefined): Reply | undefined {
  const items = page?.items ?? []
  const replies = items.flatMap(({ lastReply }) => lastReply ?? [])
  if (items.length < 2 || replies.length < items.length || items.some(({ reason }) => reason !== null)) return undefined
  if (new Set(replies.map(replyText)).size > 1) return undefined
  return replies.toSorted((a, b) => b.at.localeCompare(a.at))[0]
}

/** Long because each column is an element of one list. */
function useColumns(isReplyShown: boolean): readonly Column<ShownWaitingEmail>[] {
  const { tenantId, tenants, nameOf } = useHere()
  const { names } = words
  return [
    { name: names.to, phone: 'title', className: 'md:max-w-60', cell: (one) => <RowLink to={`/emails/${one.id}`}>{one.to}</RowLink> },
    {
      name: names.state,
      phone: 'side',
      cell: (one) => (one.state === 'deferred' ? <span className="text-soft">{words.states.deferred}</span> : <State of={one} />),
    },
    ...(tenantId === undefined && tenants.length > 1
      ? [
          {
            name: names.tenant,
            phone: 'line' as const,
            className: 'md:max-w-36 truncate text-soft',
            cell: (one: ShownWaitingEmail) => nameOf(one.tenantId),
          },
        ]
      : []),
    {
      name: names.attempts,
      phone: 'line',
      isNumber: true,
      isUsual: (one) => one.attempts === 0,
      by: (one) => one.attempts,
      cell: (one) => (
        <>
          <span className="max-md:hidden">{one.attempts.toLocaleString()}</span>
          <span className="md:hidden">{words.attempts(one.attempts)}</span>
        </>
      ),
    },
    {
      name: names.next,
      phone: 'line',
      className: 'whitespace-nowrap',
      by: (one) => one.nextAttemptAt ?? '',
      cell: (one) => (
        <>
          <span className="text-soft md:hidden">{words.nextShort} </span>
          {one.nextAttemptAt ? <Time at={one.nextAttemptAt} /> : <span className="text-soft">{words.noNext[one.state]}</span>}
        </>
      ),
    },
    {
      name: names.last,
      phone: 'line',
      className: 'whitespace-nowrap',
      by: (one) => one.lastAttemptAt ?? '',
      isUsual: (one) => one.lastAttemptAt === null,
      cell: (one) => <GivesUp at={one.lastAttemptAt} />,
    },
    ...(isReplyShown ? [replyColumn] : []),
    {
      name: names.accepted,
      phone: 'line',
      className: 'whitespace-nowrap text-soft',
      by: (one) => one.acceptedAt,
      cell: (one) => (
        <>
          <span className="md:hidden">{words.since} </span>
          <Age at={one.acceptedAt} />
        </>
      ),
    },
  ]
}

const replyColumn: Column<ShownWaitingEmail> = {
  name: words.names.lastReply,
  phone: 'full',
  className: 'min-w-48 md:max-w-96 text-xs text-soft [overflow-wrap:anywhere]',
  cell: (one) => <LastReply of={one} />,
}

const soonMs = 86_400_000

/** Amber on the last day. */
function GivesUp({ at }: { at: string | null }) {
  if (at === null) return <span className="text-soft">–</span>
  return (
    <span className={Date.parse(at) - Date.now() < soonMs ? 'text-wait' : ''}>
      <span className="text-soft md:hidden">{words.givesUp} </span>
      <Time at={at} />
    </span>
  )
}

const tones: Record<ShownWaitingEmail['state'], Tone> = {
  ready: 'none',
  sending: 'none',
  deferred: 'wait',
  over_limit: 'wait',
  held: 'wait',
  scheduled: 'wait',
}

const State = ({ of: { state } }: { of: ShownWaitingEmail }) => <Badge tone={tones[state]}>{words.states[state]}</Badge>

function LastReply({ of: { lastReply, reason } }: { of: ShownWaitingEmail }) {
  return (
    <>
      {reason && (
        <p className="text-wait">
          <Sentence>{reason}</Sentence>
        </p>
      )}
      {lastReply && (
        <>
          <p>{replyText(lastReply)}</p>
          <p>
            {lastReply.remoteHost && `${lastReply.remoteHost} · `}
            <Time at={lastReply.at} />
          </p>
        </>
      )}
      {!lastReply && !reason && words.notTried}
    </>
  )
}
