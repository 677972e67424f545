/** Records as a zone file (RFC 1035 section 5), with names relative to its origin, for DNS providers that import one. */
import { ttlS } from './plan-record-set.ts'

export interface ZoneFileRecord {
  type: string
  name: string
  value: string
}

const maxStringLength = 255

const plain = (name: string) => name.toLowerCase().replace(/\.$/, '')

/** A name that is not below the origin stays absolute. */
function nameIn(name: string, origin: string): string {
  if (plain(name) === plain(origin)) return '@'
  return plain(name).endsWith(`.${plain(origin)}`) ? plain(name).slice(0, -plain(origin).length - 1) : `${plain(name)}.`
}

/** Characters that are special in a quoted string, or not ASCII, are escaped (section 5.1). */
const quoted = (text: string) =>
  `"${[...text].map((one) => (one === '"' || one === '\\' ? `\\${one}` : one >= ' ' && one <= '~' ? one : `\\${String(one.charCodeAt(0) & 0xff).padStart(3, '0')}`)).join('')}"`

function dataOf({ type, value }: ZoneFileRecord, origin: string): string {
  if (type === 'TXT') return (value.match(new RegExp(`[^]{1,${maxStringLength}}`, 'g')) ?? ['']).map(quoted).join(' ')
  if (type === 'CNAME' || type === 'PTR') return nameIn(value, origin)
  const [preference = '', exchange = ''] = value.split(' ')
  return type === 'MX' ? `${preference} ${nameIn(exchange, origin)}` : value
}

/** Records whose value is not known, and those of other zones' PTRs, stand in comments. */
export function zoneFile(origin: string, records: readonly ZoneFileRecord[]): string {
  const line = (record: ZoneFileRecord) => {
    const { type, name, value } = record
    const text = `${nameIn(name, origin)} ${ttlS} IN ${type} ${dataOf(record, origin)}`
    if (type === 'PTR') return `; at the provider of the address: ${text}`
    return /<|PUBLIC_IPV4_ADDRESS/.test(value) ? `; the value is not known yet: ${text}` : text
  }
  return `$ORIGIN ${plain(origin)}.\n${records.map((record) => `${line(record)}\n`).join('')}`
}
