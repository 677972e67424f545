/**
 * Stacked columns over time, with scale, limits and legend in words, so that the chart needs no pointer. Made of plain elements: each column has
 * a tooltip, and the table below has the same figures.
 */
import { texts } from '../texts.ts'
import { zonedFormat } from '../time-zone.ts'
import { topOf } from './chart-scale.ts'

/** Written out, because the build collects class names from the source. */
const fills = {
  none: 'bg-edge',
  // Pale, so that the failures above it stand out; its edge has the contrast.
  good: 'bg-chart-good/30 shadow-[inset_0_0_0_1px_var(--color-chart-good)]',
  wait: 'bg-chart-wait',
  bad: 'bg-chart-bad',
  bounce: 'bg-chart-bounce',
  complaint: 'bg-chart-complaint',
} as const
export type Fill = keyof typeof fills
/** Hatched: the day goes on. */
const unfinished = '[mask-image:repeating-linear-gradient(135deg,#000_0_4px,transparent_4px_6px)]'

export interface Series {
  name: string
  fill: Fill
  /** One value for each time. */
  values: readonly number[]
  /** In the legend, such as a total. */
  note?: string
  /** The colour of one column, such as of a day over a limit. */
  fillOf?: (value: number) => Fill
}

export interface Limit {
  value: number
  name: string
  tone: keyof typeof lines
}

/** Written out, as the fills are. */
const lines = { wait: 'border-wait text-wait', bad: 'border-bad text-bad' } as const

interface ColumnsProps {
  label: string
  times: readonly Date[]
  series: readonly Series[]
  /** The scale reaches at least this value. */
  atLeast?: number
  unit?: string
  /** Horizontal lines that the legend names, such as a provider's limit. */
  limits?: readonly Limit[]
  isHourly: boolean
  /** The times are starts of days in UTC, as in reports, and are not in the chosen time zone. */
  isUtc?: boolean
  /** Lower, for charts beside each other. */
  isSmall?: boolean
}

const hourOf = zonedFormat({ hour: 'numeric' })
const dayOptions = { day: 'numeric', month: 'short' } as const
const zonedDayOf = zonedFormat(dayOptions)
const utcFormat = new Intl.DateTimeFormat(undefined, { ...dayOptions, timeZone: 'UTC' })
const utcDayOf = (at: Date) => utcFormat.format(at)
const dayMs = 86_400_000
const maxLabels = 8
const maxLabelsSmall = 5
/** On a phone, only each second label has room. */
const phoneEvery = 2

/** Long because scale, columns, limits and times share their measures. */
export function Columns({
  label,
  times,
  series,
  atLeast = 0,
  unit = '',
  limits = [],
  isHourly,
  isUtc = false,
  isSmall = false,
}: ColumnsProps) {
  const dayOf = isUtc ? utcDayOf : zonedDayOf
  /** Its column is not yet complete. */
  const isToday = (at: Date) => dayOf(at) === dayOf(new Date()) && Math.abs(Date.now() - at.getTime()) < dayMs
  const sums = times.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0))
  const top = topOf(Math.max(atLeast, ...sums), unit === '')
  const shown = (value: number) => `${value.toLocaleString(undefined, { maximumFractionDigits: 2 })}${unit}`
  const percentOf = (value: number) => `${Math.min(100, (value / top) * 100)}%`
  const every = Math.ceil(times.length / (isSmall ? maxLabelsSmall : maxLabels))
  const nameOf = (at: Date) => (isHourly ? hourOf(at) : isToday(at) ? texts.chart.today : dayOf(at))
  const tip = (at: Date, index: number) =>
    [nameOf(at), ...series.map(({ name, values }) => `${name}: ${shown(values[index] ?? 0)}`)].join('\n')
  return (
    <figure className="min-w-0">
      <Legend series={series} limits={limits} />
      <div className="flex gap-2" role="img" aria-label={texts.chart.inTable(label)}>
        <div className={`flex flex-col justify-between text-right text-xs text-soft tabular-nums ${isSmall ? 'h-28' : 'h-32 md:h-44'}`}>
          {[top, top / 2, 0].map((value) => (
            <span key={value} className="-my-2">
              {shown(value)}
            </span>
          ))}
        </div>
        <div className="min-w-0 grow">
          <div className={`relative flex items-end gap-px border-b border-edge/60 ${isSmall ? 'h-28' : 'h-32 md:h-44'}`}>
            {['top-0', 'top-1/2'].map((place) => (
              <span key={place} className={`absolute inset-x-0 border-t border-line ${place}`} />
            ))}
            {times.map((at, index) => (
              <div key={at.getTime()} data-tip={tip(at, index)} className="relative h-full min-w-0 flex-1 basis-0 hover:bg-sheet">
                <div
                  className={`mx-auto flex h-full w-[72%] flex-col-reverse ${isSmall ? 'max-w-7' : 'max-w-11'} ${!isHourly && isToday(at) ? unfinished : ''}`}
                >
                  {series.map(({ name, fill, fillOf, values }) => (
                    <div
                      key={name}
                      className={`w-full last:rounded-t-[3px] ${fills[fillOf?.(values[index] ?? 0) ?? fill]} ${(values[index] ?? 0) > 0 ? 'min-h-[2px]' : ''}`}
                      style={{ height: percentOf(values[index] ?? 0) }}
                    />
                  ))}
                </div>
              </div>
            ))}
            {limits.map(({ value, name, tone }) => (
              <span
                key={name}
                className={`pointer-events-none absolute inset-x-0 h-0 border-t border-dashed ${lines[tone]}`}
                style={{ bottom: percentOf(value) }}
              />
            ))}
          </div>
          <div className="mt-1 flex text-xs text-soft tabular-nums">
            {times.map((at, index) => (
              <span key={at.getTime()} className="flex min-w-0 flex-1 basis-0 justify-center whitespace-nowrap">
                {index % every === 0 && (
                  <span className={index % (every * phoneEvery) === 0 ? 'inline-block' : 'hidden sm:inline-block'}>{nameOf(at)}</span>
                )}
              </span>
            ))}
          </div>
        </div>
      </div>
    </figure>
  )
}

const Legend = ({ series, limits }: { series: readonly Series[]; limits: readonly Limit[] }) => (
  <figcaption className="mb-4 flex flex-wrap gap-x-5 gap-y-1 text-xs">
    {series.map(({ name, fill, note }) => (
      <span key={name} className="flex items-center gap-1.5">
        <span className={`size-2 rounded-[2px] ${fills[fill]}`} />
        <span className="text-soft">{name}</span>
        {note && <span className="font-medium tabular-nums">{note}</span>}
      </span>
    ))}
    {limits.map(({ name, tone }) => (
      <span key={name} className={`flex items-center gap-1.5 ${lines[tone]}`}>
        <span className="w-4 border-t border-dashed border-inherit" />
        {name}
      </span>
    ))}
  </figcaption>
)
