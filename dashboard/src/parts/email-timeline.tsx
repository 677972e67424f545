/** The timeline of one email: acceptance, attempts, bounces, webhooks, opens, clicks, complaints and unsubscribes in order, and the next step. */
import type { ReactNode } from 'react'
import type { Attempt, Email, EmailMoreResponse, TrackingEvent } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Section, StatusBadge } from './basic-components.tsx'
import { OneAttempt } from './email-attempt.tsx'
import { WebhookEntry } from './email-related.tsx'
import { Pre, Time } from './time-and-copy.tsx'

const words = texts.email
/** Programs may open a message hundreds of times. */
const maxTracked = 60

interface Entry {
  key: string
  at: string
  tone: keyof typeof dots
  node: ReactNode
}

const dots = { none: 'bg-edge', good: 'bg-chart-good', wait: 'bg-chart-wait', bad: 'bg-chart-bad' } as const
const toneOf = { sent: 'good', softfail: 'wait', held: 'wait', hardfail: 'bad', bounced: 'bad' } as const

interface TimelineProps {
  email: Email
  more: EmailMoreResponse | undefined
  onReplayed: () => void
}

export function Timeline({ email, more, onReplayed }: TimelineProps) {
  const { nextAt } = email.explanation
  const tracked = trackedOf(email)
  const entries = [
    { key: 'accepted', at: email.timestampIso, tone: 'none' as const, node: <Simple name={words.accepted} at={email.timestampIso} /> },
    ...attemptsOf(email.deliveries ?? [], more),
    ...tracked.slice(0, maxTracked),
    ...(more?.webhooks ?? []).map(
      (one): Entry => ({
        key: `webhook ${one.id}`,
        at: one.timestamp,
        tone: one.success ? 'none' : 'wait',
        node: <WebhookEntry of={one} onReplayed={onReplayed} />,
      }),
    ),
    ...reactionsOf(more),
  ].toSorted((a, b) => a.at.localeCompare(b.at))
  return (
    <Section title={words.timeline}>
      <ol>
        {entries.map(({ key, tone, node }, index) => (
          <Item key={key} tone={tone} isLast={index === entries.length - 1 && !nextAt}>
            {node}
          </Item>
        ))}
        {nextAt && (
          <Item tone="none" isLast>
            <Simple name={words.next} at={nextAt} />
          </Item>
        )}
      </ol>
      {(email.deliveries ?? []).length === 0 && !nextAt && <p className="text-sm text-soft">{words.notTried}</p>}
      {tracked.length > maxTracked && <p className="text-sm text-soft">{words.moreTracked(tracked.length - maxTracked)}</p>}
    </Section>
  )
}

const Item = ({ tone, isLast, children }: { tone: Entry['tone']; isLast: boolean; children: ReactNode }) => (
  <li className="relative pb-4 pl-6 text-sm last:pb-0">
    {!isLast && <span className="absolute top-3 bottom-[-0.25rem] left-[4.5px] w-px bg-line" />}
    <span className={`absolute top-[0.4rem] left-0 size-2.5 rounded-full ring-2 ring-paper ${dots[tone]}`} />
    {children}
  </li>
)

const Simple = ({ name, at, children }: { name: ReactNode; at: string; children?: ReactNode }) => (
  <>
    <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <span className="font-medium">{name}</span>
      <span className="text-xs text-soft">
        <Time at={at} exact />
      </span>
    </p>
    {children}
  </>
)

/** A late bounce is a report that was received; it is no attempt and has no number. */
function attemptsOf(deliveries: readonly Attempt[], more: EmailMoreResponse | undefined): Entry[] {
  let number = 0
  return deliveries
    .toSorted((a, b) => a.timestampIso.localeCompare(b.timestampIso))
    .map((attempt) => ({
      key: `attempt ${attempt.id}`,
      at: attempt.timestampIso,
      tone: toneOf[attempt.status],
      node:
        attempt.status === 'bounced' ? (
          <LateBounce attempt={attempt} />
        ) : (
          <OneAttempt attempt={attempt} number={++number} more={more?.attempts.find(({ id }) => id === attempt.id)} />
        ),
    }))
}

function trackedOf({ activity }: Email): Entry[] {
  const entry =
    (kind: 'opened' | 'clicked') =>
    (event: TrackingEvent & { url?: string }, index: number): Entry => ({
      key: `${kind} ${index}`,
      at: event.timestampIso,
      tone: 'none',
      node: <Tracked name={words[kind]} event={event} />,
    })
  return [...(activity?.opens.map(entry('opened')) ?? []), ...(activity?.clicks.map(entry('clicked')) ?? [])].toSorted((a, b) =>
    a.at.localeCompare(b.at),
  )
}

/** The recipient's reactions: a complaint, an unsubscribe. */
function reactionsOf(more: EmailMoreResponse | undefined): Entry[] {
  const entries: Entry[] = []
  if (more?.complainedAt) {
    const at = more.complainedAt
    entries.push({ key: 'complained', at, tone: 'bad', node: <Simple name={words.complained} at={at} /> })
  }
  if (more?.unsubscribedAt) {
    const at = more.unsubscribedAt
    entries.push({ key: 'unsubscribed', at, tone: 'wait', node: <Simple name={words.unsubscribed} at={at} /> })
  }
  return entries
}

const Tracked = ({ name, event }: { name: string; event: TrackingEvent & { url?: string } }) => (
  <Simple
    name={
      <>
        {name}{' '}
        <Badge tone={event.source === 'human' ? 'good' : 'none'} title={event.reason}>
          {event.source}
        </Badge>
      </>
    }
    at={event.timestampIso}
  >
    {event.url && <p className="[overflow-wrap:anywhere]">{event.url}</p>}
    <p className="text-xs text-soft [overflow-wrap:anywhere]">
      {event.ipAddress} · {event.userAgent}
    </p>
  </Simple>
)

/** A bounce received by mail, without a connection. */
function LateBounce({ attempt }: { attempt: Attempt }) {
  const { classification, smtpEnhancedCode, remoteHost } = attempt
  return (
    <>
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="font-medium">{words.bounceReceived}</span>
        <StatusBadge status={attempt.status} />
        <span className="text-xs text-soft">
          <Time at={attempt.timestampIso} exact />
        </span>
      </p>
      <p className="mt-1 [overflow-wrap:anywhere]">{attempt.details}</p>
      <p className="mt-0.5 text-xs text-soft [overflow-wrap:anywhere]">
        {[remoteHost && words.reportedBy(remoteHost), smtpEnhancedCode, classification?.replaceAll('_', ' ')]
          .filter((one) => one)
          .join(' · ')}
      </p>
      {attempt.output && (
        <details className="mt-1">
          <summary className="w-fit text-xs text-soft hover:text-ink">{words.report}</summary>
          <Pre label={words.report}>{attempt.output}</Pre>
        </details>
      )}
    </>
  )
}
