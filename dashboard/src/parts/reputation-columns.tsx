/** The columns of the figures of reputation by sending domain, source address or mailbox provider. */
import type { ReputationRetrieveData } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, OnPhone } from './basic-components.tsx'
import { percentIn, tablePercent } from './chart.tsx'
import type { Column } from './data-table.tsx'
import { limits } from './rate-figure.tsx'

const words = texts.reputation
export type Grouping = ReputationRetrieveData['groupBy']
type Group = ReputationRetrieveData['groups'][number]
export type Figured = Pick<Group, 'accepted' | 'deferred' | 'failed' | 'blocked'>

export const attemptsOf = ({ accepted, deferred, failed, blocked }: Figured) => accepted + deferred + failed + blocked

export const complaintRate = ({ complained, accepted }: Pick<Group, 'complained' | 'accepted'>) =>
  accepted === 0 ? 0 : (complained / accepted) * 100

/** The limits are tenths of a percent. */
const complaintPercent = percentIn(2)

function RateBadge({ group }: { group: Group }) {
  const rate = complaintRate(group)
  const { high, most } = limits.complaints
  if (rate < high) return null
  return <Badge tone={rate >= most ? 'bad' : 'wait'}>{rate >= most ? words.over : words.high}</Badge>
}

function Complaints({ group }: { group: Group }) {
  return (
    <>
      <span className="mr-2 max-md:hidden">
        <RateBadge group={group} />
      </span>
      {complaintPercent(group.complained, group.accepted)}
      <OnPhone>{words.complaints}</OnPhone>
    </>
  )
}

const share = (name: string, pick: (one: Group) => number): Column<Group> => ({
  name,
  phone: 'line',
  isNumber: true,
  by: (one) => pick(one) / Math.max(1, attemptsOf(one)),
  isUsual: (one) => pick(one) === 0,
  cell: (one) => (
    <>
      {tablePercent(pick(one), attemptsOf(one))}
      <OnPhone>{name}</OnPhone>
    </>
  ),
})

const Attempts = ({ of }: { of: Group }) => (
  <>
    {attemptsOf(of).toLocaleString()}
    <OnPhone>{words.attempts}</OnPhone>
  </>
)

export const groupName = (groupBy: Grouping, name: string) =>
  name !== '' ? name : groupBy === 'source' ? words.usualSource : words.unknownProvider

/** On a phone, with the badge of its rate. */
const GroupName = ({ of: group, groupBy }: { of: Group; groupBy: Grouping }) => (
  <>
    <span className="font-medium">{groupName(groupBy, group.name)}</span>{' '}
    <span className="md:hidden">
      <RateBadge group={group} />
    </span>
  </>
)

/** Columns without information in any row are left out. */
export const columnsOf = (groupBy: Grouping, groups: readonly Group[]): readonly Column<Group>[] => [
  { name: words.groupings[groupBy], phone: 'title', by: ({ name }) => name, cell: (one) => <GroupName of={one} groupBy={groupBy} /> },
  { name: words.attempts, phone: 'side', isNumber: true, by: attemptsOf, cell: (one) => <Attempts of={one} /> },
  share(words.accepted, (one) => one.accepted),
  share(words.deferred, (one) => one.deferred),
  share(words.failed, (one) => one.failed),
  share(words.blocked, (one) => one.blocked),
  {
    name: words.complaints,
    phone: 'line',
    isNumber: true,
    className: 'md:whitespace-nowrap',
    by: complaintRate,
    isUsual: (one) => one.complained === 0,
    cell: (one) => <Complaints group={one} />,
  },
  ...(groups.some(({ secured }) => secured > 0) ? [tlsColumn] : []),
  ...(groupBy === 'provider' || groups.every(({ dmarc }) => dmarc === null) ? [] : [dmarcColumn]),
]

const tlsColumn: Column<Group> = {
  name: words.tls,
  phone: 'line',
  isNumber: true,
  by: (one) => one.secured / Math.max(1, one.accepted),
  cell: (one) => (
    <>
      {tablePercent(one.secured, one.accepted)}
      <span className="text-soft md:hidden"> {words.overTls}</span>
    </>
  ),
}

const dmarcColumn: Column<Group> = {
  name: words.dmarc,
  isNumber: true,
  by: ({ dmarc }) => (dmarc === null ? -1 : dmarc.aligned / dmarc.messages),
  isUsual: ({ dmarc }) => dmarc === null,
  cell: ({ dmarc }) => (dmarc === null ? '–' : tablePercent(dmarc.aligned, dmarc.messages)),
}
