/**
 * Postfix's smtp-source with 200 sessions at once into the submission port: every accepted message arrives once, while mail from the API is
 * sent. MESSAGES sets how many.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { startMxDns } from '../support/simple-dns.ts'
import { freePort, startServiceProcess } from '../support/spawned-service.ts'

const program = '/usr/sbin/smtp-source'
const missing = existsSync(program) ? undefined : 'smtp-source is not installed (Debian package postfix)'
const sessions = 200
const messages = Number(process.env['MESSAGES'] ?? 2000)
const probes = 15

/** smtp-source supports neither TLS nor AUTH: each of its connections is forwarded over one that has both. */
async function startTlsProxy(port: number, user: string, password: string) {
  const login = Buffer.from(`\0${user}\0${password}`).toString('base64')
  const sockets = new Set<{ destroy(): void }>()
  const lead = (plain: Socket) => {
    const secure = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    for (const socket of [plain, secure]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => (plain.destroy(), secure.destroy()))
    }
    const script = ['EHLO proxy\r\n', `AUTH PLAIN ${login}\r\n`]
    let heard = ''
    secure.on('data', function hear(piece: Buffer) {
      heard += piece.toString('latin1')
      if (!/^\d{3} .*\r\n$/m.test(heard)) return
      const said = script.shift()
      heard = ''
      if (said !== undefined) return void secure.write(said)
      secure.off('data', hear)
      plain.write('220 ready\r\n')
      plain.pipe(secure).pipe(plain)
    })
  }
  const server = createServer(lead)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const median = (values: readonly number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] as number

describe.skipIf(missing !== undefined)(
  `smtp-source with ${sessions} sessions at once${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    test(`loses none of ${messages} messages, and mail of the API starts soon all the while`, async () => {
      const arrivedMs = new Map<string, number>()
      await using mx: FakeMx = await startFakeMx({
        script: ({ stage, argument }) => {
          if (stage === 'rcpt') arrivedMs.set(argument, performance.now())
          return undefined
        },
      })
      const domains = ['bulk.example', 'api.example']
      await using dns = await startMxDns({
        mx: Object.fromEntries(domains.map((domain) => [domain, [`mx.${domain}`]])),
        a: Object.fromEntries(domains.map((domain) => [`mx.${domain}`, ['127.0.0.1']])),
      })
      const submission = await freePort()
      await using service = await startServiceProcess({
        POSTRIDER_DNS: dns.address,
        POSTRIDER_MX_PORT: String(mx.port),
        POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
        POSTRIDER_RATE_LIMIT: 'unlimited',
        POSTRIDER_SEND_LIMIT: 'unlimited',
        POSTRIDER_SUBMISSION_TLS_PORT: String(submission),
      })
      const { tenantId } = await service.command('domain', 'add', 'shop.example.com', '--trust')
      const made = await service.call('POST', `/tenants/${tenantId}/credentials`, { name: 'source', type: 'smtp' })
      const { key, smtpUsername } = made.body.data as { key: string; smtpUsername: string }
      await using proxy = await startTlsProxy(submission, smtpUsername, key)

      /** Time from an API request for a message to the first command about it at its server. */
      const startsAfterMs = async (name: string) => {
        const to = `${name}@api.example`
        const beganMs = performance.now()
        const { status } = await service.call('POST', '/emails', { from: 'a@shop.example.com', to: [to], subject: 's', text: 't' })
        expect(status).toBe(200)
        await vi.waitUntil(() => arrivedMs.has(to), { timeout: 60_000, interval: 2 })
        return (arrivedMs.get(to) as number) - beganMs
      }
      const alone: number[] = []
      await startsAfterMs('first')
      for (let nth = 0; nth < probes; nth++) alone.push(await startsAfterMs(`alone${nth}`))

      const words = [
        '-s',
        sessions,
        '-m',
        messages,
        '-l',
        4096,
        '-N',
        '-f',
        'a@shop.example.com',
        '-t',
        'n@bulk.example',
        `127.0.0.1:${proxy.port}`,
      ]
      const beganMs = performance.now()
      let isRunning = true
      const source = promisify(execFile)(program, words.map(String), { timeout: 240_000 }).finally(() => (isRunning = false))
      const beside: number[] = []
      for (let nth = 0; isRunning || nth < probes; nth++) beside.push(await startsAfterMs(`beside${nth}`))
      expect((await source).stderr).toBe('')
      const sourceMs = performance.now() - beganMs

      const bulk = () => mx.messages.flatMap((one) => one.recipients).filter((one) => one.endsWith('@bulk.example'))
      await vi.waitUntil(() => bulk().length >= messages, { timeout: 240_000, interval: 200 })
      const { body } = await service.call('GET', '/emails?perPage=1')
      expect(body.total).toBe(messages + 1 + alone.length + beside.length)
      expect(new Set(bulk()).size).toBe(messages)
      expect(bulk().length).toBe(messages)
      console.log(
        `smtp-source: ${messages} messages in ${(sourceMs / 1000).toFixed(1)} s; the API's start after ${median(beside).toFixed(0)} ms ` +
          `(alone ${median(alone).toFixed(0)} ms), the slowest of ${beside.length} after ${Math.max(...beside).toFixed(0)} ms`,
      )
      expect(median(beside)).toBeLessThan(Math.max(20 * median(alone), 1000))
      expect(Math.max(...beside)).toBeLessThan(Math.max(60 * median(alone), 5000))
    }, 600_000)
  },
)
