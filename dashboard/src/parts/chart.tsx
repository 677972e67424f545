/** Charts of counts over time, for a tenant or all; their library is loaded when the first one is shown. */
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { get, withQuery } from '../api-client.ts'
import type { OverTimeResponse, ShownPoint } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Button, Empty, Select, Table } from './basic-components.tsx'
import type { Drawing } from './line-plot.tsx'
import { testOf } from './url-params.ts'

const Plot = lazy(() => import('./line-plot.tsx'))

export const counted = [
  ['sent', texts.counts.sent, '#2563eb'],
  ['delivered', texts.counts.delivered, '#15803d'],
  ['soft_failed', texts.counts.soft_failed, '#b45309'],
  ['hard_failed', texts.counts.hard_failed, '#dc2626'],
  ['bounced', texts.counts.bounced, '#9333ea'],
  ['held', texts.counts.held, '#64748b'],
  ['complained', texts.counts.complained, '#db2777'],
] as const
type Counted = (typeof counted)[number][0]

/** `share`: each as a percentage of accepted emails. */
export function Chart({ points, of, share = false }: { points: readonly ShownPoint[]; of: readonly Counted[]; share?: boolean }) {
  const drawing = useMemo((): Drawing => {
    const chosen = counted.filter(([key]) => of.includes(key))
    return {
      label: `${chosen.map(([, name]) => name).join(', ')} ${share ? texts.chart.shareOverTime : texts.chart.overTime}`,
      times: points.map(({ timestamp }) => Date.parse(timestamp)),
      lines: chosen.map(([key, name, colour]) => ({
        name,
        colour,
        values: points.map((point) => (share ? (point.sent === 0 ? null : (point[key] / point.sent) * 100) : point[key])),
      })),
      unit: share ? ' %' : '',
    }
  }, [points, of, share])
  return (
    <Suspense fallback={<div className="h-60 text-sm text-soft">{texts.loading}</div>}>
      <Plot {...drawing} />
    </Suspense>
  )
}

export const PointsTable = ({ points }: { points: readonly ShownPoint[] }) => (
  <details className="mt-3">
    <summary className="text-sm text-accent">{texts.chart.asTable}</summary>
    <Table label={texts.chart.table} columns={[texts.chart.from, ...counted.map(([, name]) => name)]}>
      {points.map((point) => (
        <tr key={point.timestamp}>
          <td className="whitespace-nowrap">{new Date(point.timestamp).toLocaleString()}</td>
          {counted.map(([key]) => (
            <td key={key}>{point[key].toLocaleString()}</td>
          ))}
        </tr>
      ))}
    </Table>
  </details>
)

const periods = [
  { value: 'today', label: texts.periods.today },
  { value: 'last_7_days', label: texts.periods.last7 },
  { value: 'last_30_days', label: texts.periods.last30 },
  { value: 'last_90_days', label: texts.periods.last90 },
] as const

export const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** The period in the page's address. */
export const periodOf = (given: string | undefined) => periods.find(({ value }) => value === given)?.value ?? 'last_7_days'

export const ChoosePeriod = ({ period, onChange }: { period: string; onChange: (period: string) => void }) => (
  <Select label={texts.periods.label} value={period} choices={periods} onChange={onChange} />
)

type Mail = 'live' | 'test' | 'all'
const mails = [
  { value: 'live', label: texts.mail.live },
  { value: 'test', label: texts.mail.test },
  { value: 'all', label: texts.mail.all },
] as const

export const ChooseMail = ({ mail, onChange }: { mail: Mail; onChange: (mail: string | undefined) => void }) => (
  <Select label={texts.mail.label} value={mail} choices={mails} onChange={(next) => onChange(next === 'live' ? undefined : next)} />
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
  const path = withQuery('/dashboard/api/over-time', { period, timezone, granularity, tenantId, test: testOf(mail) })
  return useQuery({ queryKey: ['over-time', path], queryFn: () => get<OverTimeResponse>(path), refetchInterval: everyMs })
}

export const sumOf = (points: readonly ShownPoint[], key: Counted) => points.reduce((sum, point) => sum + point[key], 0)

export const percent = (part: number, whole: number) =>
  `${(whole === 0 ? 0 : (part / whole) * 100).toLocaleString(undefined, { maximumFractionDigits: 2 })} %`

export const ofLimit = ({ used, limit }: { used: number; limit: number | null }) =>
  limit === null ? used.toLocaleString() : `${used.toLocaleString()} / ${limit.toLocaleString()}`

export const Figure = ({ name, value, note }: { name: string; value: string; note?: string }) => (
  <div className="rounded-md border border-line bg-sheet p-3">
    <dt className="text-sm text-soft">{name}</dt>
    <dd className="text-xl font-semibold tabular-nums">{value}</dd>
    {note && <dd className="text-sm text-soft">{note}</dd>}
  </div>
)
