/**
 * A fast SMTP sink in its own process: accepts every message and reports the count to its parent. Mail for subdomains of SLOW_DOMAIN gets its reply
 * after SLOW_MS, so that its queue stays long.
 */
import { startSinkServer } from './smtp-sink-server.ts'

const slowDomain = process.env['SLOW_DOMAIN']
const slowMs = Number(process.env['SLOW_MS'] ?? 0)
let messages = 0

startSinkServer(
  {
    accepted: () => messages++,
    ...(slowDomain === undefined ? {} : { delayMs: (line: string) => (line.includes(`.${slowDomain}>`) ? slowMs : 0) }),
  },
  (port) => process.send?.({ port }),
)
process.on('message', (question) => {
  if (question === 'count') process.send?.({ messages })
  if (question === 'reset') messages = 0
})
process.on('disconnect', () => process.exit(0))
