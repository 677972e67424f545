/** The addresses that mail leaves from: their pool, warm-up and blocklists. */
import type { ReputationRetrieveData } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Section } from './basic-components.tsx'
import { type Column, DataTable } from './data-table.tsx'

const words = texts.reputation
type Source = ReputationRetrieveData['sources'][number]

export const Sources = ({ sources }: { sources: readonly Source[] }) => (
  <Section title={words.sources}>
    <DataTable label={words.sources} columns={sourceColumns} items={sources} keyOf={({ address }) => address} isWhole />
    <p className="mt-2 text-xs text-soft">{words.blocklistHelp}</p>
  </Section>
)

const sourceColumns: readonly Column<Source>[] = [
  { name: words.address, phone: 'title', by: ({ address }) => address, cell: ({ address }) => address },
  { name: words.pool, by: ({ pool }) => pool ?? '', isUsual: ({ pool }) => pool === null, cell: ({ pool }) => pool ?? '–' },
  {
    name: words.warmUp,
    by: ({ warmUp }) => warmUp?.day ?? 0,
    isUsual: ({ warmUp }) => warmUp === null,
    cell: ({ warmUp }) => (warmUp === null ? words.noWarmUp : words.warmUpDay(warmUp.day, warmUp.messagesPerDay)),
  },
  { name: words.blocklists, phone: 'full', by: ({ blocklists }) => -blocklists.filter(({ listed }) => listed).length, cell: placement },
]

function placement({ blocklists }: Source) {
  const clear = blocklists.filter(({ listed, problem, checkedAt }) => !listed && problem === null && checkedAt !== null)
  if (blocklists.length === 0) return words.notAsked
  return (
    <ul className="flex flex-col gap-1">
      {blocklists.map(
        ({ blocklist, listed, since, problem }) =>
          (listed || problem !== null) && (
            <li key={blocklist}>
              {listed && <Badge tone="bad">{words.listed(blocklist, since.slice(0, 10))}</Badge>}
              {problem !== null && <span className="text-soft">{words.ignored(blocklist, problem)}</span>}
            </li>
          ),
      )}
      {clear.length > 0 && (
        <li>
          <Badge tone="good">{words.notListed(clear.length)}</Badge>
        </li>
      )}
    </ul>
  )
}
