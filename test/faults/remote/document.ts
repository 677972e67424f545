/** docs/remote-misbehaviour.md out of the table that is tested; `npm run golden` writes it. */
import { bounds, maxAttempts, mostGrownOfAnyMib, retryBaseMs, timesMessage } from './bounds.ts'
import { type Measurements, read } from './measured.ts'
import type { Row } from './row.ts'
import { sections } from './table.ts'

const { smtp, dnsQueryMs, downForMs } = bounds
const limits = Object.entries({ ...smtp, dnsQueryMs, downForMs }).map(([name, ms]) => `${name.replace(/Ms$/, '')} ${ms / 1000}`)

const head = `# What remote misbehaviour leads to

Made from the table in \`test/faults/remote/\`. Each attempt is shown with its status, classification and enhanced status code, with
${maxAttempts} attempts allowed. What ends with a single \`softfail\` waits until the provider is asked again; it is not given up.

Every row is run against the program in three ways: all at the same time (\`test/faults/misbehaviours.test.ts\`); mixed, by many peers that play
random rows, with much mail for each (\`npm run misbehaviours -- --mixed\`, and smaller by \`test/faults/mixed.test.ts\`); and alone, one after the
other, which is where the last two columns come from (\`npm run misbehaviours -- --write\`). **Time** is from acceptance to the last outcome shown,
with limits of time much shorter than in life (in seconds: ${limits.join(', ')}) and ${retryBaseMs / 1000} s instead of 5 min
as the base of the wait between attempts. **Memory** is by how much what is resident of the delivery process grew at its peak: \`VmHWM\`, set
back before each row, less \`VmRSS\` then, after its garbage was collected; in MiB, and 0 where it took what was there. A message on its way
is held several times over; the rows that grow most are those with a file of 6 MB. Figures of one machine; a row fails when it takes longer
than its limits allow, or grows by more than ${mostGrownOfAnyMib} MiB and ${timesMessage} times its message.
`

const attempts = ({ comesTo }: Row): string => {
  if (Array.isArray(comesTo)) return comesTo.map((one) => `\`${one}\``).join(', then ')
  const each = Object.entries(comesTo as Record<string, readonly string[]>)
  const shown = each.map(([to, one]) => `${to}: ${one.map((text) => `\`${text}\``).join(', then ')}`)
  return new Set(each.map(([, one]) => one.join())).size === 1 ? attempts({ name: '', comesTo: each[0]?.[1] ?? [] }) : shown.join('; ')
}

const outcome = (row: Row) =>
  [
    attempts(row),
    row.secure === undefined ? '' : row.secure ? ', over TLS' : ', in the clear',
    row.outcomeUnknown ? ` (outcome unknown${row.ends ? `; the email ends as \`${row.ends}\`` : ''})` : '',
  ].join('')

const line = (row: Row, measured: Measurements) => {
  const found = measured[row.name]
  if (!found) throw new Error(`"${row.name}" was not measured: npm run misbehaviours -- --rows "${row.name}" --write`)
  return `| ${row.name} | ${outcome(row)} | ${found.seconds.toFixed(1)} s | ${found.grownMib} |`
}

const table = (title: string, rows: readonly Row[], measured: Measurements) => `
## ${title}

| the remote | comes to | time | memory |
|---|---|---|---|
${rows.map((row) => line(row, measured)).join('\n')}
`

export const document = () => head + sections.map(({ title, rows }) => table(title, rows, read())).join('')
