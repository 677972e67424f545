/**
 * Runs each row of the table alone, one after the other. Checks its result and measures its duration and the memory of the delivery
 * process.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Measured } from './measurements.ts'
import type { Row } from './row-type.ts'
import { read, sendRow } from './send-rows.ts'
import type { Running } from './service-under-test.ts'
import { maxGrownMib, withinMs } from './time-limits.ts'
import { complaints, expectedOf, wrongWithEmail, wrongWithPeer } from './verdict.ts'

const lookEveryMs = 50
/** After its time limit, a row is watched this much longer to determine its result. */
const looksMs = 3000

/** For a service with one delivery process and no other load. `wrong`: deviations from the table. */
export async function runAlone(row: Row, { call, outside, deliveries, log }: Running): Promise<{ measured: Measured; wrong: string[] }> {
  const [delivery] = deliveries
  if (!delivery) throw new Error('there is no delivery process')
  await using peer = await outside.add(row)
  const loggedBefore = log().length
  const before = (await delivery.settle()).resident
  const ids = new Map<string, string>()
  await sendRow(call, row, peer.place.domain, (to, id) => ids.set(to, id))
  const wrong: string[] = []
  let lastS = 0
  const untilMs = performance.now() + withinMs(row) + looksMs
  for (const [to, wanted] of Object.entries(expectedOf(row))) {
    let told = await read(call, ids.get(to) ?? '')
    while (told.deliveries.length < wanted.length && performance.now() < untilMs) {
      await wait(lookEveryMs)
      told = await read(call, ids.get(to) ?? '')
    }
    wrong.push(...wrongWithEmail(row, wanted, told).map((one) => `mail to ${to} ${one}`))
    lastS = Math.max(lastS, (told.deliveries[wanted.length - 1]?.timestamp ?? Number.POSITIVE_INFINITY) - told.timestamp)
  }
  const grownMib = ((await delivery.peak()) - before) / 1_048_576
  wrong.push(...wrongWithPeer(row, peer))
  if (lastS * 1000 > withinMs(row)) wrong.push(`took ${lastS.toFixed(1)} s; ${(withinMs(row) / 1000).toFixed(1)} s are allowed`)
  if (grownMib > maxGrownMib(row)) wrong.push(`grew by ${grownMib.toFixed(1)} MiB; ${maxGrownMib(row)} are allowed`)
  wrong.push(...complaints(log().slice(loggedBefore)).map((line) => `made a process complain: ${line}`))
  return { measured: { seconds: Math.round(lastS * 10) / 10, grownMib: Math.max(0, Math.round(grownMib)) }, wrong }
}
