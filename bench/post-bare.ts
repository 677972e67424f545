/** The same bodies to the same sink by undici and nothing else: neither signed nor recorded. */
import { Pool } from 'undici'
import { bareBody, connections } from './webhooks.ts'

const requests = Number(process.env['REQUESTS'])
const body = bareBody()
const pool = new Pool(`http://127.0.0.1:${process.env['SINK_PORT']}`, { connections })
let sent = 0
const worker = async () => {
  while (sent < requests) {
    sent++
    const answer = await pool.request({ method: 'POST', path: '/0', headers: { 'content-type': 'application/json' }, body })
    await answer.body.dump()
  }
}
process.send?.({ started: true })
await Promise.all(Array.from({ length: connections }, worker))
await pool.close()
process.on('disconnect', () => process.exit(0))
process.once('SIGTERM', () => process.exit(0))
setInterval(() => undefined, 1000)
