/**
 * Sends the same bodies to the same sink with undici only: unrecorded, and signed only if SIGNED is set. It then signs in both ways of the
 * contract, which every sender of such webhooks must do.
 */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { Pool } from 'undici'
import { bareBody, connections } from './webhooks.ts'

const requests = Number(process.env['REQUESTS'])
const body = bareBody()
const pool = new Pool(`http://127.0.0.1:${process.env['SINK_PORT']}`, { connections })
const isSigned = process.env['SIGNED'] === '1'
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const secret = Buffer.alloc(32, 7)
const signRsa = promisify(sign)
const signatures = async () => ({
  'webhook-signature': `v1,${createHmac('sha256', secret).update('id.1795000002.').update(body).digest('base64')}`,
  'x-webhook-signature': (await signRsa('sha256', body, privateKey)).toString('base64'),
})
let sent = 0
const worker = async () => {
  while (sent < requests) {
    sent++
    const answer = await pool.request({
      method: 'POST',
      path: '/0',
      headers: { 'content-type': 'application/json', ...(isSigned ? await signatures() : {}) },
      body,
    })
    await answer.body.dump()
  }
}
process.send?.({ started: true })
await Promise.all(Array.from({ length: connections }, worker))
await pool.close()
process.on('disconnect', () => process.exit(0))
process.once('SIGTERM', () => process.exit(0))
setInterval(() => undefined, 1000)
