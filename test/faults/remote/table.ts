/** The table of remote misbehaviours, in the order of a conversation. */
import { dnsRows } from './dns.ts'
import { doorRows } from './door.ts'
import type { Row } from './row.ts'
import { talkRows } from './talk.ts'

export const sections: readonly { title: string; rows: readonly Row[] }[] = [
  { title: 'DNS', rows: dnsRows },
  { title: 'Connection, greeting, EHLO, TLS', rows: doorRows },
  { title: 'From MAIL to QUIT', rows: talkRows },
]

export const rows: readonly Row[] = sections.flatMap((one) => one.rows)
