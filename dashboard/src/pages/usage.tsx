/** How much was sent and what became of it, in numbers and over time. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import { download, get, withQuery } from '../api.ts'
import { Button, Empty, Heading, Problem, Section, Select, Table } from '../parts/basics.tsx'
import { useFilters } from '../parts/params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import type { Counts } from '../types.ts'

const periods = [
  { value: 'today', label: 'Today' },
  { value: 'last_7_days', label: 'Last 7 days' },
  { value: 'last_30_days', label: 'Last 30 days' },
  { value: 'last_90_days', label: 'Last 90 days' },
] as const

const lines = [
  ['delivered', 'Delivered', '#15803d'],
  ['soft_failed', 'Deferred', '#b45309'],
  ['hard_failed', 'Failed', '#dc2626'],
  ['bounced', 'Bounced', '#9333ea'],
  ['held', 'Held', '#64748b'],
] as const

interface Usage {
  emails: Counts
  rates: { delivery_rate: number; bounce_rate: number }
  sendLimit?: { limit: number | null; used: number }
}

type Point = Counts & { timestamp: string }

const ofLimit = ({ used, limit }: { used: number; limit: number | null }) =>
  `${used.toLocaleString()}${limit === null ? ', no limit' : ` of ${limit.toLocaleString()}`}`

const percent = (share: number) => `${(share * 100).toLocaleString(undefined, { maximumFractionDigits: 1 })} %`

export function UsagePage() {
  const { tenantId, tenants, member } = useHere()
  const [filters, change] = useFilters()
  const period = periods.find(({ value }) => value === filters.period)?.value ?? 'last_7_days'
  const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const shownTenant = tenantId ?? tenants.find(({ isDefault }) => isDefault)?.id
  const totalPath = withQuery(tenantId === undefined ? '/v1/usage' : `/v1/tenants/${tenantId}/usage`, { period, timezone })
  const total = useQuery({ queryKey: ['usage', totalPath], queryFn: () => get<Usage>(totalPath), refetchInterval: 15_000 })
  const granularity = period === 'today' ? 'hour' : 'day'
  const seriesPath = withQuery(`/v1/tenants/${shownTenant}/usage/timeseries`, { period, timezone, granularity })
  const series = useQuery({
    queryKey: ['series', seriesPath],
    queryFn: () => get<{ tenant_name: string; data: Point[] }>(seriesPath),
    enabled: shownTenant !== undefined,
  })
  const { data } = total
  const exportPath = withQuery('/v1/usage/export', { period, timezone, format: 'csv' })
  const file = useMutation({ mutationFn: () => download(exportPath, `usage-${period}.csv`) })
  return (
    <>
      <Heading title={texts.pages.usage}>
        {member.tenantId === null && <Button onClick={() => file.mutate()}>Download CSV</Button>}
        <Select label="Period" value={period} choices={periods} onChange={(next) => change({ period: next })} />
      </Heading>
      <Problem error={total.error ?? series.error ?? file.error} />
      {data && (
        <dl className="grid grid-cols-2 gap-3 md:grid-cols-4">
          <Number name="Accepted" value={data.emails.sent.toLocaleString()} />
          <Number name="Delivered" value={percent(data.rates.delivery_rate)} />
          <Number name="Bounced" value={percent(data.rates.bounce_rate)} />
          {data.sendLimit && <Number name="This hour" value={ofLimit(data.sendLimit)} />}
        </dl>
      )}
      {series.data && (
        <Section title={`Over time, ${series.data.tenant_name}`}>
          {series.data.data.length === 0 ? <Empty>Nothing in this period.</Empty> : <Chart points={series.data.data} />}
          <details className="mt-3">
            <summary className="text-sm text-accent">The same as a table</summary>
            <Table label="Usage over time" columns={['From', 'Accepted', ...lines.map(([, name]) => name)]}>
              {series.data.data.map((point) => (
                <tr key={point.timestamp}>
                  <td className="whitespace-nowrap">{new Date(point.timestamp).toLocaleString()}</td>
                  <td>{point.sent}</td>
                  {lines.map(([key]) => (
                    <td key={key}>{point[key]}</td>
                  ))}
                </tr>
              ))}
            </Table>
          </details>
        </Section>
      )}
    </>
  )
}

const Number = ({ name, value }: { name: string; value: string }) => (
  <div className="rounded-md border border-line bg-sheet p-3">
    <dt className="text-sm text-soft">{name}</dt>
    <dd className="text-xl font-semibold tabular-nums">{value}</dd>
  </div>
)

function Chart({ points }: { points: Point[] }) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const place = ref.current
    if (!place) return undefined
    const ink = getComputedStyle(place).color
    const axis = {
      stroke: ink,
      grid: { stroke: 'rgb(128 128 128 / 0.25)', width: 1 },
      ticks: { stroke: 'rgb(128 128 128 / 0.4)', width: 1 },
    }
    const columns = [
      points.map(({ timestamp }) => Date.parse(timestamp) / 1000),
      ...lines.map(([key]) => points.map((point) => point[key])),
    ]
    const plot = new uPlot(
      {
        width: place.clientWidth,
        height: 280,
        axes: [axis, { ...axis, size: 56 }],
        series: [{}, ...lines.map(([, label, stroke]) => ({ label, stroke, width: 2, points: { show: points.length < 40 } }))],
        scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high)] } },
      },
      columns as uPlot.AlignedData,
      place,
    )
    const watch = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 280 }))
    watch.observe(place)
    return () => {
      watch.disconnect()
      plot.destroy()
    }
  }, [points])
  return (
    <div
      ref={ref}
      role="img"
      aria-label="Emails over time by what became of them; the same figures stand in the table below"
      className="w-full min-w-0"
    />
  )
}
