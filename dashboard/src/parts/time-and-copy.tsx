/** Times, relative with the exact one on hover, and values that can be copied. */
import { useEffect, useState, useSyncExternalStore } from 'react'
import { texts } from '../texts.ts'
import { useZone, zonedFormat } from '../time-zone.ts'
import { Button, IconButton } from './basic-components.tsx'
import { CheckIcon, CopyIcon } from './icons.tsx'

const tickMs = 20_000
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const relativeForMs = 7 * dayMs
const clockForMs = 180 * dayMs

/** One timer for all times of a page. */
const listeners = new Set<() => void>()
let nowMs = Date.now()
const tick = () => {
  nowMs = Date.now()
  for (const one of listeners) one()
}
let timer: ReturnType<typeof setInterval> | undefined
const useNow = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      timer ??= setInterval(tick, tickMs)
      return () => listeners.delete(listener)
    },
    () => nowMs,
  )

const inWords = new Intl.RelativeTimeFormat(undefined, { numeric: 'always', style: 'short' })
const inFull = zonedFormat({ dateStyle: 'full', timeStyle: 'long' })
const exactly = zonedFormat({ dateStyle: 'medium', timeStyle: 'medium' })
const dayOf = zonedFormat({ dateStyle: 'medium' })
const clockOf = zonedFormat({ timeStyle: 'short' })
const secondsOf = zonedFormat({ timeStyle: 'medium' })
const shortDay = zonedFormat({ month: 'short', day: 'numeric' })
const dayAndClock = zonedFormat({ month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' })

/** "5 min. ago"; a date for more than a week. */
function relative(at: Date, now: number): string {
  const awayMs = at.getTime() - now
  const size = Math.abs(awayMs)
  if (size < minuteMs) return awayMs > tickMs ? texts.time.soon : texts.time.now
  if (size < hourMs) return inWords.format(Math.trunc(awayMs / minuteMs), 'minute')
  if (size < dayMs) return inWords.format(Math.trunc(awayMs / hourMs), 'hour')
  if (size < relativeForMs) return inWords.format(Math.trunc(awayMs / dayMs), 'day')
  return dayOf(at)
}

/** "11:17 PM" of the same day, then "Nov 24, 11:17 PM"; a date for more than half a year. */
function clock(at: Date, now: number, timeOfDay: typeof clockOf): string {
  if (dayOf(at) === dayOf(new Date(now))) return timeOfDay(at)
  return Math.abs(at.getTime() - now) < clockForMs ? dayAndClock(at) : dayOf(at)
}

const weekday = zonedFormat({ weekday: 'long', month: 'short', day: 'numeric' })

/** "Today, Nov 26" or "Wednesday, Nov 25", for lines between the days of a list; a date for more than half a year. */
export function dayInWords(at: string): string {
  const date = new Date(at)
  const now = Date.now()
  if (dayOf(date) === dayOf(new Date(now))) return texts.time.today(shortDay(date))
  return Math.abs(date.getTime() - now) < clockForMs ? weekday(date) : dayOf(date)
}

interface TimeProps {
  at: string
  /** Date and time. */
  exact?: boolean
  /** The time of day, for lists of events. */
  clock?: 'minutes' | 'seconds'
  /** Without the date, which is in a line above. */
  ofDay?: boolean
}

/** Relative, or a date or time in the reader's zone; the tooltip has the date, time and zone. */
export function Time({ at, exact = false, clock: precision, ofDay = false }: TimeProps) {
  const now = Math.max(useNow(), Date.now())
  const zone = useZone()
  const date = new Date(at)
  const timeOfDay = precision === 'seconds' ? secondsOf : clockOf
  const byClock = () => (ofDay ? timeOfDay(date) : clock(date, now, timeOfDay))
  const shown = exact ? exactly(date) : precision ? byClock() : relative(date, now)
  return (
    <time dateTime={at} data-tip={`${inFull(date)} (${zone})\n${at}`} className="whitespace-nowrap tabular-nums">
      {shown}
    </time>
  )
}

const units = [
  ['day', dayMs],
  ['hour', hourMs],
  ['minute', minuteMs],
] as const

/** The time since `at`, such as "7 days"; the tooltip is as of a time. */
export function Age({ at }: { at: string }) {
  const now = Math.max(useNow(), Date.now())
  const zone = useZone()
  const ageMs = now - Date.parse(at)
  const [unit, sizeMs] = units.find(([, size]) => ageMs >= size) ?? ['minute', minuteMs]
  const inUnits = new Intl.NumberFormat(undefined, { style: 'unit', unit, unitDisplay: 'long' })
  return (
    <time dateTime={at} data-tip={`${inFull(new Date(at))} (${zone})\n${at}`} className="whitespace-nowrap tabular-nums">
      {ageMs < minuteMs ? texts.time.now : inUnits.format(Math.floor(ageMs / sizeMs))}
    </time>
  )
}

const instant = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/

/** A sentence from the service, with its times formatted like the page's. */
export const Sentence = ({ children }: { children: string }) =>
  // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one sentence never move
  children.split(instant).map((part, index) => (instant.test(part) ? <Time key={index} at={part} exact /> : part))

const copiedForMs = 2000

function useCopied(text: string): [boolean, () => void] {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return undefined
    const timeout = setTimeout(() => setCopied(false), copiedForMs)
    return () => clearTimeout(timeout)
  }, [copied])
  const copy = () =>
    void navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    )
  return [copied, copy]
}

/** A button with words. */
export function Copy({ text, label = texts.actions.copy }: { text: string; label?: string }) {
  const [copied, copy] = useCopied(text)
  return (
    <Button onClick={copy} aria-live="polite">
      {copied ? <CheckIcon size={14} className="text-good" /> : <CopyIcon size={14} className="text-soft" />}
      {copied ? texts.actions.copied : label}
    </Button>
  )
}

/** An icon beside a value. */
export function CopyIconButton({ text, label }: { text: string; label: string }) {
  const [copied, copy] = useCopied(text)
  return (
    <IconButton label={copied ? texts.actions.copied : label} aria-live="polite" onClick={copy}>
      {copied ? <CheckIcon size={14} className="text-good" /> : <CopyIcon size={14} />}
    </IconButton>
  )
}

/** An id or another value, with a copy button. */
export const Value = ({ name, children }: { name: string; children: string }) => (
  <span className="inline-flex max-w-full items-center gap-0.5">
    <span className="min-w-0 font-mono text-xs [overflow-wrap:anywhere]">{children}</span>
    <CopyIconButton text={children} label={texts.actions.copyOf(name)} />
  </span>
)

export const Code = ({ children }: { children: string }) => (
  <code className="block rounded-md bg-sheet px-2.5 py-1.5 font-mono text-xs break-all ring-1 ring-line ring-inset select-all">
    {children}
  </code>
)

/** The text of a message, to be read. */
export const Prose = ({ label, children }: { label: string; children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
  <section aria-label={label} tabIndex={0} className="max-h-[36rem] overflow-auto rounded-md p-4 ring-1 ring-line ring-inset">
    <p className="max-w-[40rem] text-base whitespace-pre-wrap [overflow-wrap:anywhere]">{children}</p>
  </section>
)

/** Preformatted text; focusable by keyboard because it may scroll. */
export const Pre = ({ label, children }: { label: string; children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
  <section aria-label={label} tabIndex={0} className="max-h-[36rem] overflow-auto rounded-md bg-sheet p-3 ring-1 ring-line ring-inset">
    <pre className="font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]">{children}</pre>
  </section>
)
