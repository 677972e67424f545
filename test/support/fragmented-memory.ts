/** A process with many free pages between blocks in use: prints its resident octets before and after `startMemoryManagement`. */
import { silentLog, startMemoryManagement, systemClock } from '#base'

const blockOctets = 900
const blocks = Array.from({ length: 200_000 }, () => Buffer.allocUnsafeSlow(blockOctets).fill(1))
const kept = blocks.filter((_, index) => index % 1000 === 0)
blocks.length = 0

const before = process.memoryUsage.rss()
// Time passes 60 times as fast, so that the process is idle for long enough soon.
const clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() * 60,
  after: (delayMs: number, action: () => void) => systemClock.after(delayMs / 60, action),
}
const trim = startMemoryManagement({ clock, log: silentLog })
for (let waited = 0; waited < 100 && process.memoryUsage.rss() > before / 2; waited++)
  await new Promise((resolve) => void systemClock.after(100, () => resolve(undefined)))
await trim.stop()
console.log(JSON.stringify({ before, after: process.memoryUsage.rss(), kept: kept.length }))
