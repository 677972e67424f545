/** The record sets that Postrider wants below its own name: those of `postrider dns`, and the targets of the CNAME records of DKIM keys. */
import type { PlatformRecord } from '#domains'
import type { UpdateType } from '#net'
import { plainText, type RecordSet } from './plan-record-set.ts'

export interface WantedRecords {
  sets: RecordSet[]
  /** Sets whose wanted records cannot be determined now: they stay as they are. */
  unknown: { name: string; type: UpdateType }[]
}

/**
 * `own`: whether Postrider wrote the set. A record of the operator that serves as well stays, and so do the addresses of the host, which the
 * operator gives to the machine, and PTR records, which are in other zones.
 */
export function wantedRecords(
  platform: readonly PlatformRecord[],
  targets: readonly { name: string; value: string }[],
  { hostname, own }: { hostname: string; own: (name: string, type: string) => boolean },
): WantedRecords {
  const hosts = platform.filter(({ type, name }) => isAddress(type) && name === hostname)
  // The SPF record lists the addresses of the host.
  const knowsHost = hosts.length > 0 && hosts.every(({ status, value }) => status !== null && !value.startsWith('<'))
  const wanted: WantedRecords = { sets: [], unknown: [] }
  for (const { type, name, value, status } of platform) {
    if (type === 'PTR' || (isAddress(type) && name === hostname)) continue
    const set = { name: name.toLowerCase(), type }
    const servesAlready = status === 'OK' && !own(set.name, type)
    if (servesAlready) continue
    if (status === null || (/ip[46]:/.test(value) && !knowsHost) || value.includes('PUBLIC_IPV4_ADDRESS')) wanted.unknown.push(set)
    else wanted.sets.push({ ...set, wanted: [plainText(type, value)] })
  }
  for (const { name, value } of targets) wanted.sets.push({ name: name.toLowerCase(), type: 'TXT', wanted: [value] })
  return { sets: merged(wanted.sets), unknown: wanted.unknown }
}

const isAddress = (type: string) => type === 'A' || type === 'AAAA'

/** One set for each name and type. */
function merged(sets: readonly RecordSet[]): RecordSet[] {
  const byKey = new Map<string, RecordSet>()
  for (const { name, type, wanted } of sets) {
    const known = byKey.get(keyOf({ name, type }))?.wanted ?? []
    byKey.set(keyOf({ name, type }), { name, type, wanted: [...new Set([...known, ...wanted])] })
  }
  return [...byKey.values()]
}

export const keyOf = ({ name, type }: { name: string; type: string }) => `${type} ${name}`
