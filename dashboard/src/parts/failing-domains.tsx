/** The recipient domains that fail, by the reason: the worst reason first, with the number of failures and a reply. */
import { useState } from 'react'
import type { RecentResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Button, Empty, Section } from './basic-components.tsx'
import { type Column, DataTable } from './data-table.tsx'
import { Time } from './time-and-copy.tsx'

const words = texts.overview
const maxShown = 3
const maxNamed = 6
const maxReplyLength = 200

type Failing = RecentResponse['failing'][number]
const kinds = ['deferred', 'failed', 'bounced'] as const
const failuresOf = (one: Pick<Failing, (typeof kinds)[number]>) => one.deferred + one.failed + one.bounced

/** Domains with one reason, such as full mailboxes; the reply is that of the worst. */
interface Reason extends Omit<Failing, 'recipientDomain'> {
  key: string
  domains: Failing[]
}

function byReason(failing: readonly Failing[]): Reason[] {
  const groups = new Map<string, Failing[]>()
  for (const one of failing) {
    const key = one.classification ?? one.lastReply
    groups.set(key, [...(groups.get(key) ?? []), one])
  }
  const sum = (domains: readonly Failing[], kind: (typeof kinds)[number]) => domains.reduce((total, one) => total + one[kind], 0)
  return [...groups]
    .map(([key, domains]) => ({
      key,
      domains,
      classification: domains[0]?.classification ?? null,
      lastReply: domains[0]?.lastReply ?? '',
      lastAt: domains.map(({ lastAt }) => lastAt).reduce((a, b) => (a > b ? a : b)),
      deferred: sum(domains, 'deferred'),
      failed: sum(domains, 'failed'),
      bounced: sum(domains, 'bounced'),
    }))
    .toSorted((a, b) => failuresOf(b) - failuresOf(a))
}

const columns: readonly Column<Reason>[] = [
  {
    name: words.domains,
    phone: 'title',
    className: 'max-w-96 min-w-44 [overflow-wrap:anywhere]',
    cell: ({ domains }) => <Domains of={domains} />,
  },
  {
    name: words.reason,
    phone: 'full',
    className: 'min-w-60',
    cell: (one) => (
      <>
        {one.classification && <Badge tone="none">{one.classification.replaceAll('_', ' ')}</Badge>}{' '}
        <span className="text-soft [overflow-wrap:anywhere]">{one.lastReply.slice(0, maxReplyLength)}</span>
      </>
    ),
  },
  {
    name: words.failures,
    phone: 'line',
    className: 'tabular-nums md:whitespace-nowrap',
    by: failuresOf,
    cell: (one) =>
      kinds
        .filter((kind) => one[kind] > 0)
        .map((kind) => `${one[kind].toLocaleString()} ${words.counted[kind]}`)
        .join(' · '),
  },
  {
    name: words.lastSeen,
    phone: 'line',
    className: 'whitespace-nowrap text-soft',
    by: (one) => one.lastAt,
    cell: (one) => <Time at={one.lastAt} />,
  },
]

/** One by its name; several with the failures of each. */
function Domains({ of: domains }: { of: readonly Failing[] }) {
  if (domains.length === 1) return <span className="font-medium">{domains[0]?.recipientDomain}</span>
  return (
    <>
      {domains.slice(0, maxNamed).map((one) => (
        <span key={one.recipientDomain} className="mr-3 inline-block">
          <span className="font-medium">{one.recipientDomain}</span>{' '}
          <span className="text-soft tabular-nums">{failuresOf(one).toLocaleString()}</span>
        </span>
      ))}
      {domains.length > maxNamed && <span className="text-soft"> {words.andMore(domains.length - maxNamed)}</span>}
    </>
  )
}

export function FailingDomains({ recent: { failing } }: { recent: RecentResponse }) {
  const [isWhole, setWhole] = useState(false)
  const reasons = byReason(failing)
  const others = reasons.length - maxShown
  return (
    <Section title={words.failing}>
      {failing.length === 0 ? (
        <Empty>{words.noneFails}</Empty>
      ) : (
        <DataTable
          label={words.failing}
          columns={columns}
          items={isWhole ? reasons : reasons.slice(0, maxShown)}
          keyOf={({ key }) => key}
          isWhole
        />
      )}
      {others > 0 && (
        <Button small kind="quiet" className="mt-2 -ml-2" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? words.firstOnly : words.others(others)}
        </Button>
      )}
    </Section>
  )
}
