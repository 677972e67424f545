/** `npm run migration`: a migration by percent under load; prints the figures, and exits with 1 if a promise was broken. */
import { parseArgs } from 'node:util'
import { systemClock } from '#base'
import { runMigration } from './migration.ts'

const help = `npm run migration -- [--emails N] [--seed S] [--short] [--json]

Runs the program in a temporary folder, with two relays on the loopback interface: the default, and a transport. It sends while the share of
the transport moves 0, 50, 100, 0, both relays die and come back, and processes are killed. Then it compares every request with both relays'
ledgers, the attempts, the events and the suppression list.

--emails  number of emails (default: 20000), beside those that it sends until the transport takes mail again
--seed    number that fixes the messages (default: 1)
--short   changes the transport after it came back, instead of waiting for its next try
--json    prints the verdict as one JSON object`

const { values } = parseArgs({
  options: {
    emails: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    short: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) console.log(help)
else {
  const beganMs = systemClock.monotonicMs()
  const verdict = await runMigration({
    clock: systemClock,
    emails: Number(values.emails),
    seed: Number(values.seed),
    isShort: values.short,
    report: (line) => values.json || console.log(`${Math.round((systemClock.monotonicMs() - beganMs) / 1000)} s: ${line}`),
  })
  const seconds = Math.round((systemClock.monotonicMs() - beganMs) / 1000)
  const { counts, shares, unknown, suppressed, killed, violations } = verdict
  if (values.json) console.log(JSON.stringify({ seconds, ...verdict }))
  else {
    console.log(`
${counts.acknowledged} emails acknowledged in ${counts.requests} requests, ${seconds} s, ${killed} processes killed
${counts.deliveredOnce} delivered once, ${counts.refused} refused as planned
${counts.duplicatesExplained} duplicates explained by an attempt with an unknown outcome
${counts.lost} lost, ${counts.stuck} stuck, ${counts.duplicatesUnexplained} duplicates unexplained, ${counts.eventsMissing} events missing (must be 0)
unknown outcomes by transport: ${JSON.stringify(unknown)}
refused and suppressed by transport: ${JSON.stringify(suppressed)}`)
    for (const { percent, metPercent, emails } of shares) console.log(`share ${percent}%: met ${metPercent}% over ${emails} emails`)
    for (const one of violations) console.log(`  ${one}`)
    console.log(violations.length === 0 ? 'All promises kept.' : 'A PROMISE WAS BROKEN.')
  }
  process.exitCode = violations.length === 0 ? 0 : 1
}
