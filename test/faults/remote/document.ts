/** docs/remote-misbehaviour.md out of the table that is tested; `npm run golden` writes it. */
import { dnsRows } from './dns.ts'
import { doorRows } from './door.ts'
import type { Row } from './row.ts'
import { talkRows } from './talk.ts'

const head = `# What remote misbehaviour leads to

Made from the table in \`test/faults/remote/\`, every row of which is run against the program by \`test/faults/misbehaviours.test.ts\`, all
at the same time, with two attempts allowed and shortened time limits. Each attempt is shown with its status, classification and enhanced
status code. What ends with a single \`softfail\` waits until the provider is asked again; it is not given up.
`

const attempts = ({ comesTo }: Row): string => {
  if (Array.isArray(comesTo)) return comesTo.map((one) => `\`${one}\``).join(', then ')
  const each = Object.entries(comesTo as Record<string, readonly string[]>)
  const shown = each.map(([to, one]) => `${to}: ${one.map((text) => `\`${text}\``).join(', then ')}`)
  return new Set(each.map(([, one]) => one.join())).size === 1 ? attempts({ name: '', comesTo: each[0]?.[1] ?? [] }) : shown.join('; ')
}

const table = (title: string, rows: readonly Row[]) => `
## ${title}

| the remote | comes to |
|---|---|
${rows.map((row) => `| ${row.name} | ${attempts(row)}${row.secure === undefined ? '' : row.secure ? ', over TLS' : ', in the clear'}${row.outcomeUnknown ? ` (outcome unknown${row.ends ? `; the email ends as \`${row.ends}\`` : ''})` : ''} |`).join('\n')}
`

export const document = () =>
  head + table('DNS', dnsRows) + table('Connection, greeting, EHLO, TLS', doorRows) + table('From MAIL to QUIT', talkRows)
