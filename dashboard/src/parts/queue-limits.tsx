/** The limits in force on the page of the queue: connections and rates of providers, and warm-ups of addresses. */
import { Link } from '@tanstack/react-router'
import type { QueueResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Section } from './basic-components.tsx'
import { type Column, DataTable } from './data-table.tsx'
import { Time } from './time-and-copy.tsx'

const words = texts.queue

/** Mail takes a transport by its sender, so that no recipient domains belong to it. */
const isOfDomains = (provider: string) => !provider.startsWith('transport ')

export const InForce = ({ queue: { providers, warmUps } }: { queue: QueueResponse }) => (
  <Section title={words.limits}>
    {providers.length + warmUps.length === 0 && <p className="text-sm text-soft">{words.noLimits}</p>}
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
        <Link to="/queue/waiting" search={{ provider }} className="link">
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
