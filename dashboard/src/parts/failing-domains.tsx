/** The recipient domains that fail, the worst first: the number of failures, and the reason. */
import { useState } from 'react'
import type { RecentResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Button, Empty, Section } from './basic-components.tsx'
import { type Column, DataTable } from './data-table.tsx'
import { Time } from './time-and-copy.tsx'

const words = texts.overview
/** Further ones tend to have the same reason. */
const maxShown = 3
const maxReplyLength = 200

type Failing = RecentResponse['failing'][number]
const kinds = ['deferred', 'failed', 'bounced'] as const

const columns: readonly Column<Failing>[] = [
  {
    name: words.domain,
    phone: 'title',
    className: 'min-w-36 font-medium [overflow-wrap:anywhere]',
    by: (one) => one.recipientDomain,
    cell: (one) => one.recipientDomain,
  },
  {
    name: words.failures,
    phone: 'line',
    className: 'tabular-nums md:whitespace-nowrap',
    by: (one) => one.deferred + one.failed + one.bounced,
    cell: (one) =>
      kinds
        .filter((kind) => one[kind] > 0)
        .map((kind) => `${one[kind].toLocaleString()} ${words.counted[kind]}`)
        .join(' · '),
  },
  {
    name: words.reason,
    phone: 'line',
    className: 'min-w-60',
    cell: (one) => (
      <>
        {one.classification && <Badge tone="none">{one.classification.replaceAll('_', ' ')}</Badge>}{' '}
        <span className="text-soft [overflow-wrap:anywhere]">{one.lastReply.slice(0, maxReplyLength)}</span>
      </>
    ),
  },
  { name: words.lastSeen, phone: 'side', by: (one) => one.lastAt, cell: (one) => <Time at={one.lastAt} /> },
]

export function FailingDomains({ recent: { failing } }: { recent: RecentResponse }) {
  const [isWhole, setWhole] = useState(false)
  const others = failing.length - maxShown
  return (
    <Section title={words.failing}>
      {failing.length === 0 ? (
        <Empty>{words.noneFails}</Empty>
      ) : (
        <DataTable
          label={words.failing}
          columns={columns}
          items={isWhole ? failing : failing.slice(0, maxShown)}
          keyOf={(one) => one.recipientDomain}
          isWhole
        />
      )}
      {others > 0 && (
        <Button small kind="quiet" className="mt-2" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? words.firstOnly : words.others(others)}
        </Button>
      )}
    </Section>
  )
}
