/** The emails that wait for one recipient domain or provider, with their last reply and next attempt. For owners of the organisation. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { post, withQuery } from '../api-client.ts'
import type { FlushResponse, ShownWaitingEmail } from '../api-types.ts'
import { Badge, Button, Heading, Problem, type Tone } from '../parts/basic-components.tsx'
import type { Column } from '../parts/data-table.tsx'
import { BackTo, Listing, RowLink, useList } from '../parts/paged-lists.tsx'
import { Sentence, Time } from '../parts/time-and-copy.tsx'
import { useFilters } from '../parts/url-params.ts'
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
  const flush = useMutation({
    mutationFn: (domain: string) => post<FlushResponse>('/dashboard/api/queue/flush', { destination: domain }),
    onSettled: () => client.invalidateQueries({ queryKey: ['waiting'] }),
  })
  return (
    <>
      <BackTo to="/queue">{texts.pages.queue}</BackTo>
      <Heading title={words.title(provider ?? destination ?? '')} about={provider && words.aboutProvider}>
        {destination && (
          <Button disabled={flush.isPending} onClick={() => flush.mutate(destination)}>
            {texts.queue.flush}
          </Button>
        )}
      </Heading>
      <Problem error={flush.error} />
      <p aria-live="polite" className="mb-2 text-sm empty:mb-0">
        {flush.data && texts.queue.flushed(flush.data.emails)}
      </p>
      <Listing label={words.label} list={list} columns={useColumns()} keyOf={(one) => one.id} empty={words.empty} />
    </>
  )
}

function useColumns(): readonly Column<ShownWaitingEmail>[] {
  const { tenantId, tenants, nameOf } = useHere()
  const { names } = words
  return [
    { name: names.to, phone: 'title', className: 'md:max-w-60', cell: (one) => <RowLink to={`/emails/${one.id}`}>{one.to}</RowLink> },
    { name: names.state, phone: 'side', cell: (one) => <State of={one} /> },
    ...(tenantId === undefined && tenants.length > 1
      ? [{ name: names.tenant, className: 'md:max-w-36 truncate text-soft', cell: (one: ShownWaitingEmail) => nameOf(one.tenantId) }]
      : []),
    {
      name: names.attempts,
      isNumber: true,
      isUsual: (one) => one.attempts === 0,
      by: (one) => one.attempts,
      cell: (one) => one.attempts.toLocaleString(),
    },
    {
      name: names.next,
      className: 'whitespace-nowrap',
      by: (one) => one.nextAttemptAt ?? '',
      cell: (one) => (one.nextAttemptAt ? <Time at={one.nextAttemptAt} /> : <span className="text-soft">{words.noNext[one.state]}</span>),
    },
    {
      name: names.lastReply,
      phone: 'line',
      className: 'min-w-48 md:max-w-96 text-xs text-soft [overflow-wrap:anywhere]',
      cell: (one) => <LastReply of={one} />,
    },
    {
      name: names.accepted,
      className: 'whitespace-nowrap text-soft',
      by: (one) => one.acceptedAt,
      cell: (one) => <Time at={one.acceptedAt} />,
    },
  ]
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
      {lastReply ? (
        <p>
          {(lastReply.output || lastReply.details).slice(0, maxReplyLength)} {lastReply.remoteHost && words.from(lastReply.remoteHost)}{' '}
          <Time at={lastReply.at} />
        </p>
      ) : (
        !reason && words.notTried
      )}
    </>
  )
}
