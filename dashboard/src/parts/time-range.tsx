/** A range of time as filters of a page's address: `within`, or `after` and `before` as values of date fields in the reader's zone. */
import { texts } from '../texts.ts'
import { zoneNow } from '../time-zone.ts'
import { Select } from './form-controls.tsx'
import { instantOf, startOfDay } from './zoned-times.ts'

const words = texts.timeRange
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const spans = { hour: hourMs, day: dayMs, week: 7 * dayMs, month: 30 * dayMs } as const

type Filters = Record<string, string | undefined>

const nameOf = (within: string | undefined) => (['hour', 'today', 'day', 'week', 'month'] as const).find((one) => one === within)

/** To the minute, so that a page that is drawn again asks for the same list. */
function startOf(within: string | undefined): Date | undefined {
  const name = nameOf(within)
  if (name === undefined) return undefined
  const nowMs = Math.floor(Date.now() / minuteMs) * minuteMs
  return name === 'today' ? startOfDay(zoneNow(), nowMs) : new Date(nowMs - spans[name])
}

/** The ends of the range in UTC. A text that is no time is passed on, and the API refuses it. */
export function instantsOf({ within, after, before }: Filters): { after: string | undefined; before: string | undefined } {
  const utc = (field: string | undefined) => (field ? (instantOf(zoneNow(), field)?.toISOString() ?? field) : undefined)
  return { after: startOf(within)?.toISOString() ?? utc(after), before: utc(before) }
}

export const isCustom = ({ within, after, before }: Filters): boolean => nameOf(within) === undefined && Boolean(within || after || before)

/** The range in words for the row of active filters. */
export const rangeName = (within: string | undefined): string | undefined => {
  const name = nameOf(within)
  return name && words.choices[name]
}

interface ChooseRangeProps {
  label: string
  filters: Filters
  onChange: (changes: Filters) => void
  bare?: boolean
}

/** `custom` is for a page that has date fields too. */
export function ChooseRange({ label, filters, onChange, bare = false }: ChooseRangeProps) {
  return (
    <Select
      label={label}
      bare={bare}
      value={nameOf(filters.within) ?? (isCustom(filters) ? 'custom' : '')}
      onChange={(within) => onChange(within === 'custom' ? { within } : { within, after: undefined, before: undefined })}
      choices={[{ value: '', label: words.any }, ...Object.entries(words.choices).map(([value, name]) => ({ value, label: name }))]}
    />
  )
}
