/** The time zone of all shown times: chosen on the Settings page and stored in this browser, otherwise the browser's. */
import { useSyncExternalStore } from 'react'
import { isZone } from './parts/zoned-times.ts'

const key = 'time-zone'
export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone

const read = () => {
  const stored = localStorage.getItem(key)
  return stored !== null && isZone(stored) ? stored : undefined
}

let chosen = read()
const listeners = new Set<() => void>()

/** undefined: the browser's zone is used. */
export const chosenZone = (): string | undefined => chosen
export const zoneNow = (): string => chosen ?? browserZone

export function chooseZone(zone: string | undefined): void {
  if (zone === undefined) localStorage.removeItem(key)
  else localStorage.setItem(key, zone)
  chosen = read()
  for (const one of listeners) one()
}

const listen = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useZone = (): string => useSyncExternalStore(listen, zoneNow)

/** A format of times in the zone, built once for each zone. */
export function zonedFormat(options: Intl.DateTimeFormatOptions): (at: Date) => string {
  let made: { zone: string; format: Intl.DateTimeFormat } | undefined
  return (at) => {
    const zone = zoneNow()
    if (made?.zone !== zone) made = { zone, format: new Intl.DateTimeFormat(undefined, { ...options, timeZone: zone }) }
    return made.format.format(at)
  }
}
