/** Figures and charts of mail over time, for a tenant or all, and the menus that choose the period and the kind of mail. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { get, withQuery } from '../api-client.ts'
import type { BeforeResponse, OverTimeResponse, ShownPoint } from '../api-types.ts'
import { texts } from '../texts.ts'
import { zonedFormat, zoneNow } from '../time-zone.ts'
import { Button, Empty } from './basic-components.tsx'
import { Columns, type Fill, type Series } from './columns-chart.tsx'
import { Table } from './data-table.tsx'
import { Select } from './form-controls.tsx'
import { testOf } from './url-params.ts'

export const counted = [
  ['sent', texts.counts.sent],
  ['delivered', texts.counts.delivered],
  ['soft_failed', texts.counts.soft_failed],
  ['hard_failed', texts.counts.hard_failed],
  ['bounced', texts.counts.bounced],
  ['held', texts.counts.held],
  ['complained', texts.counts.complained],
] as const
type Counted = (typeof counted)[number][0]

interface Shown {
  points: readonly ShownPoint[]
  isHourly: boolean
}

const timesOf = (points: readonly ShownPoint[]) => points.map(({ timestamp }) => new Date(timestamp))

export const percent = (part: number, whole: number) =>
  `${(whole === 0 ? 0 : (part / whole) * 100).toLocaleString(undefined, { maximumFractionDigits: 2 })}%`

/** For tables: the same number of decimals in each row. */
export const percentIn = (decimals: number) => (part: number, whole: number) =>
  `${(whole === 0 ? 0 : (part / whole) * 100).toLocaleString(undefined, { minimumFractionDigits: decimals, maximumFractionDigits: decimals })}%`

/** Percent in a table. */
export const tablePercent = percentIn(1)

/** Accepted emails by their present outcome; the parts add up to all. */
export function VolumeChart({ points, isHourly }: Shown) {
  const accepted = sumOf(points, 'sent')
  const series = (name: string, fill: Series['fill'], valueOf: (point: ShownPoint) => number): Series => {
    const values = points.map(valueOf)
    const total = values.reduce((sum, value) => sum + value, 0)
    return { name, fill, values, note: `${total.toLocaleString()} (${tablePercent(total, accepted)})` }
  }
  return (
    <Columns
      label={texts.chart.volume}
      times={timesOf(points)}
      isHourly={isHourly}
      series={[
        series(texts.counts.delivered, 'good', (point) => point.delivered),
        series(texts.chart.waiting, 'wait', (point) => Math.max(0, point.sent - point.delivered - point.hard_failed - point.bounced)),
        series(texts.counts.hard_failed, 'bad', (point) => point.hard_failed),
        series(texts.counts.bounced, 'bounce', (point) => point.bounced),
      ]}
    />
  )
}

const rateCharts = {
  bounced: { label: texts.chart.lost, name: texts.counts.lost, shownAs: tablePercent },
  complained: { label: texts.chart.complaints, name: texts.chart.complaintRate, shownAs: percent },
} as const

/** Percents from which a rate is high, and that providers do not accept. */
interface RateBounds {
  high: number
  most: number
}

/** The colour is the state of a rate, so that a day over a limit stands out. */
export const fillOfRate =
  ({ high, most }: RateBounds) =>
  (rate: number): Fill =>
    rate >= most ? 'bad' : rate >= high ? 'wait' : 'none'

/** Percent of accepted emails, with the providers' limit. */
export function RateChart({ points, isHourly, of, limits }: Shown & { of: keyof typeof rateCharts; limits: RateBounds }) {
  const { label, name, shownAs } = rateCharts[of]
  const fillOf = fillOfRate(limits)
  const countOf = (point: ShownPoint) => (of === 'bounced' ? point.bounced + point.hard_failed : point.complained)
  const values = points.map((point) => (point.sent === 0 ? 0 : (countOf(point) / point.sent) * 100))
  const total = points.reduce((sum, point) => sum + countOf(point), 0)
  const accepted = sumOf(points, 'sent')
  return (
    <Columns
      label={label}
      times={timesOf(points)}
      isHourly={isHourly}
      isSmall
      unit="%"
      atLeast={limits.most * headroom}
      limits={[
        { value: limits.high, name: texts.chart.highFrom(`${limits.high}%`), tone: 'wait' },
        { value: limits.most, name: texts.chart.limit(`${limits.most}%`), tone: 'bad' },
      ]}
      series={[{ name, fill: fillOf((total / Math.max(1, accepted)) * 100), fillOf, values, note: shownAs(total, accepted) }]}
    />
  )
}
const headroom = 1.3

const exactly = zonedFormat({ dateStyle: 'medium', timeStyle: 'short' })

export const PointsTable = ({ points }: { points: readonly ShownPoint[] }) => (
  <details className="mt-3">
    <summary className="w-fit text-xs text-soft hover:text-ink">{texts.chart.asTable}</summary>
    <div className="mt-2">
      <Table label={texts.chart.table} columns={[texts.chart.from, ...counted.map(([, name]) => name)]}>
        {points.map((point) => (
          <tr key={point.timestamp}>
            <td className="whitespace-nowrap">{exactly(new Date(point.timestamp))}</td>
            {counted.map(([key]) => (
              <td key={key} className="tabular-nums">
                {point[key].toLocaleString()}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  </details>
)

const periods = [
  { value: 'today', label: texts.periods.today },
  { value: 'last_7_days', label: texts.periods.last7 },
  { value: 'last_30_days', label: texts.periods.last30 },
  { value: 'last_90_days', label: texts.periods.last90 },
] as const

/** The period in the page's address. */
export const periodOf = (given: string | undefined) => periods.find(({ value }) => value === given)?.value ?? 'last_7_days'

export const ChoosePeriod = ({ period, onChange }: { period: string; onChange: (period: string) => void }) => (
  <Select bare label={texts.periods.label} value={period} choices={periods} onChange={onChange} />
)

type Mail = 'live' | 'test' | 'all'
const mails = [
  { value: 'live', label: texts.mail.live },
  { value: 'test', label: texts.mail.test },
  { value: 'all', label: texts.mail.all },
] as const

export const ChooseMail = ({ mail, onChange }: { mail: Mail; onChange: (mail: string | undefined) => void }) => (
  <Select bare label={texts.mail.label} value={mail} choices={mails} onChange={(next) => onChange(next === 'live' ? undefined : next)} />
)

/** Shown if there is no live mail: reports whether there is test mail, with a link to it. */
export function NoMail(props: { mail: Mail; period: string; tenantId: string | undefined; onShow: () => void }) {
  const test = useOverTime(props.period, props.tenantId, noMailEveryMs, 'test')
  const count = test.data ? sumOf(test.data.points, 'sent') : 0
  if (props.mail !== 'live' || count === 0) return <Empty>{texts.overview.nothing}</Empty>
  return (
    <Empty>
      <span className="block">{texts.mail.onlyTest(count)}</span>
      <span className="mt-3 block">
        <Button onClick={props.onShow}>{texts.mail.showTest}</Button>
      </span>
    </Empty>
  )
}
const noMailEveryMs = 15_000

export function useOverTime(period: string, tenantId: string | undefined, everyMs: number, mail: Mail) {
  const granularity = period === 'today' ? 'hour' : 'day'
  const path = withQuery('/dashboard/api/over-time', { period, timezone: zoneNow(), granularity, tenantId, test: testOf(mail) })
  return useQuery({ queryKey: ['over-time', path], queryFn: () => get<OverTimeResponse>(path), refetchInterval: everyMs })
}

const beforeEveryMs = 300_000

/** The sums of the period of the same length before. */
export function useBefore(period: string, tenantId: string | undefined, mail: Mail): BeforeResponse['counts'] | undefined {
  const path = withQuery('/dashboard/api/before', { period, timezone: zoneNow(), tenantId, test: testOf(mail) })
  const { data } = useQuery({ queryKey: ['before', path], queryFn: () => get<BeforeResponse>(path), refetchInterval: beforeEveryMs })
  return data?.counts
}

export const sumOf = (points: readonly ShownPoint[], key: Counted) => points.reduce((sum, point) => sum + point[key], 0)

export const ofLimit = ({ used, limit }: { used: number; limit: number | null }) =>
  limit === null ? used.toLocaleString() : `${used.toLocaleString()} / ${limit.toLocaleString()}`

interface FigureProps {
  name: string
  value: ReactNode
  note?: ReactNode
  /** The value of the period before, in words. */
  before?: string | undefined
  isSmall?: boolean
  /** Of a value that needs attention; the note says why. */
  tone?: 'wait'
}

/** A number with its name; `note`: its meaning or period. */
export const Figure = ({ name, value, note, before, isSmall = false, tone }: FigureProps) => (
  <div className={`min-w-0 bg-paper px-4 ${isSmall ? 'py-2 max-sm:grid max-sm:grid-cols-[1fr_auto] max-sm:items-baseline' : 'py-3'}`}>
    <dt className="text-xs text-soft">{name}</dt>
    <dd
      className={`font-semibold tabular-nums ${isSmall ? 'text-base' : 'mt-0.5 text-xl tracking-tight'} ${tone === 'wait' ? 'text-wait' : ''}`}
    >
      {value}
      {before && <Before>{before}</Before>}
    </dd>
    {note && <dd className="text-xs text-soft">{note}</dd>}
  </div>
)

export const Before = ({ children }: { children: string }) => (
  <span className="ml-2 text-xs font-normal tracking-normal text-soft">{children}</span>
)

const columnsOf = { 3: 'sm:grid-cols-3', 4: 'grid-cols-2 md:grid-cols-4' } as const

/** Figures side by side, divided by lines. */
export const Figures = ({ columns = 4, children }: { columns?: keyof typeof columnsOf; children: ReactNode }) => (
  <dl className={`grid gap-px overflow-hidden rounded-lg border border-line bg-paper *:outline *:outline-line ${columnsOf[columns]}`}>
    {children}
  </dl>
)
