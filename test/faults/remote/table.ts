/** The table of remote misbehaviours, in the order of an SMTP session. */

import { connectRows } from './connect-phase.ts'
import { dnsRows } from './dns.ts'
import type { Row } from './row-type.ts'
import { talkRows } from './smtp-phase.ts'

export const sections: readonly { title: string; rows: readonly Row[] }[] = [
  { title: 'DNS', rows: dnsRows },
  { title: 'Connection, greeting, EHLO, TLS', rows: connectRows },
  { title: 'From MAIL to QUIT', rows: talkRows },
]

export const rows: readonly Row[] = sections.flatMap((one) => one.rows)
