/** `npm run failover`: three database nodes under Patroni, several instances, load and faults; prints a line for each fault. */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '#base'
import { lineOf, runFailover } from './failover.ts'
import { type FaultKind, faultKinds } from './faults.ts'
import { missingPackages } from './machines.ts'

const help = `npm run failover -- [--faults N] [--seed S] [--rate R] [--instances N] [--only FAULT,...] [--sdks] [--async] [--json]

Runs three PostgreSQL nodes under Patroni and etcd, instances of this build on them, and a relay, all on the loopback interface. It sends
requests at a fixed rate, injects faults, and compares every request with the relay's ledger and the service's records.

--faults     number of faults (default: each kind once)
--seed       number that fixes the order of the faults and the messages (default: 1)
--rate       requests a second (default: 100)
--instances  instances of the service (default: 2)
--only       only these faults, in turn: ${faultKinds.join(', ')}
--sdks       five SDKs of other vendors send as well, and repeat each request until it is answered
--async      a control with an asynchronous standby: it passes only if emails are lost; "postrider doctor" warns of it
--json       prints the verdict as one JSON object

It needs root and the Debian packages patroni, etcd-server, postgresql-15 and iptables.`

function conclusion({ violations, counts, folder }: Awaited<ReturnType<typeof runFailover>>, isAsync: boolean): string {
  if (!isAsync) return violations.length === 0 ? 'All promises kept.' : `A PROMISE WAS BROKEN: see ${folder}`
  return counts.lost > 0
    ? `As expected of an asynchronous standby, ${counts.lost} acknowledged emails are lost.`
    : 'The asynchronous standby lost no email this time: --only "lag and kill node" shows the danger.'
}

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: String(faultKinds.length) },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string', default: '100' },
    instances: { type: 'string', default: '2' },
    only: { type: 'string' },
    sdks: { type: 'boolean', default: false },
    async: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const missing = missingPackages()
if (values.help) console.log(help)
else if (missing !== undefined) console.log(`skipped: ${missing}`)
else {
  const only = values.only?.split(',').map((name) => {
    const kind = faultKinds.find((one) => one === name.trim())
    if (!kind) throw new Error(`--only: "${name}" is not one of ${faultKinds.join(', ')}`)
    return kind as FaultKind
  })
  const stopped = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopped.abort())
  const verdict = await runFailover({
    clock: systemClock,
    environment: process.env,
    script: join(import.meta.dirname, '../../bin/postrider.js'),
    seed: Number(values.seed),
    faults: Number(values.faults),
    perSecond: Number(values.rate),
    instances: Number(values.instances),
    synchronous: !values.async,
    only,
    sdks: values.sdks,
    signal: stopped.signal,
    onProgress: values.json ? undefined : (line) => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`),
  })
  if (values.json) console.log(JSON.stringify(verdict))
  else {
    for (const warning of verdict.warnings) console.log(`postrider doctor: ${warning}`)
    for (const report of verdict.reports) console.log(lineOf(report))
    console.log(JSON.stringify({ ...verdict.counts, repeated: verdict.repeated, changedAnswers: verdict.changedAnswers }))
    if (values.sdks) console.log(`vendors' SDKs: ${verdict.sdks.messages} messages, ${verdict.sdks.repeated} of them repeated`)
    for (const sentence of [...verdict.skipped.map((one) => `skipped: ${one}`), ...verdict.late, ...verdict.violations])
      console.log(sentence)
    console.log(conclusion(verdict, values.async))
  }
  process.exitCode = (values.async ? verdict.counts.lost > 0 : verdict.violations.length + verdict.late.length === 0) ? 0 : 1
}
