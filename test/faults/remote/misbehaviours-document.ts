/** Generates docs/remote-misbehaviour.md from the tested table; `npm run golden` writes it. */

import { type Measurements, read } from './measurements.ts'
import type { Row } from './row-type.ts'
import { sections } from './table.ts'
import { bounds, maxAttempts, maxGrownOfAnyMib, retryBaseMs, timesMessage } from './time-limits.ts'

const { smtp, dnsQueryMs, downForMs } = bounds
const limits = Object.entries({ ...smtp, dnsQueryMs, downForMs }).map(([name, ms]) => `${name.replace(/Ms$/, '')} ${ms / 1000}`)

const head = `# Outcomes of remote misbehaviour

This page lists the outcome of each way in which remote mail servers and DNS misbehave in the tests. Use it to look up the status and
classification that a fault leads to. It is generated from the table in \`test/faults/remote/\`, which is run against the program.

\`\`\`console
npm run misbehaviours -- --rows "greylisting"
\`\`\`

The outcome shows each attempt with its status, classification and enhanced status code, with ${maxAttempts} attempts allowed. Mail that ends with
a single \`softfail\` stays queued until the provider is tried again; it does not fail.

Each row is run in three ways:

- all rows at the same time (\`test/faults/misbehaviours.test.ts\`);
- mixed: many peers play random rows, with much mail for each (\`npm run misbehaviours -- --mixed\`; a smaller run is \`test/faults/mixed-misbehaviours.test.ts\`);
- alone, one row after the other (\`npm run misbehaviours -- --write\`). This run measures the last two columns.

**Time** is from acceptance to the last outcome shown. That run uses timeouts much shorter than the defaults (in seconds: ${limits.join(', ')}), and
${retryBaseMs / 1000} s instead of 5 min as the base of the retry delay.

**Memory** is the growth of the delivery process's resident memory at its peak, in MiB: \`VmHWM\`, reset before each row, minus \`VmRSS\` at that time, after a
garbage collection. It is 0 if the memory in use sufficed. A message in flight is held several times; the rows that grow most send a file of 6 MB.

The figures are from one machine. A row fails if it takes longer than its timeouts allow, or grows by more than ${maxGrownOfAnyMib} MiB and
${timesMessage} times its message.
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

| remote behaviour | outcome | time | memory |
|---|---|---|---|
${rows.map((row) => line(row, measured)).join('\n')}
`

export const document = () => head + sections.map(({ title, rows }) => table(title, rows, read())).join('')
