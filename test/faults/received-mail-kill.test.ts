/**
 * Kills the process of the SMTP listeners while mail for routes arrives. Each message that got 250 is one event and one stored message, and
 * a message whose reply was lost, which its sender repeats, is not stored twice. POSTRIDER_TEST_RECEIVED_KILLS=20
 * POSTRIDER_TEST_RECEIVED_MESSAGES=2000 is the full run.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import { type MxDns, startMxDns } from '../support/simple-dns.ts'
import type { SmtpClient } from '../support/smtp-client.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const kills = Number(process.env['POSTRIDER_TEST_RECEIVED_KILLS'] ?? 2)
const messages = Number(process.env['POSTRIDER_TEST_RECEIVED_MESSAGES'] ?? 200)
const senders = 8
const maxMs = 60_000 + kills * 10_000 + messages * 20

let service: ServiceProcess
let port: number
let dns: MxDns
beforeAll(async () => {
  // Without records: the checks of SPF and DMARC end at once.
  dns = await startMxDns({})
  port = await freePort()
  service = await startServiceProcess({
    POSTRIDER_SMTP_PORT: String(port),
    POSTRIDER_SEPARATE_PROCESSES: 'inbound',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_DNS: dns.address,
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
  await service.command('route', 'add', 'in+*@shop.example.com')
}, 90_000)
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await dns[Symbol.asyncDispose]()
})

/** A client of the listeners, as soon as they listen. */
const connected = () => vi.waitFor(() => greetedClient(port), { timeout: maxMs, interval: 50 })

interface Summary {
  id: string
  subject: string
}

async function listAll(): Promise<Summary[]> {
  const found: Summary[] = []
  for (let page = 1; ; page++) {
    const { body } = await service.call('GET', `/received?perPage=100&page=${page}`)
    found.push(...(body.data as Summary[]))
    if (found.length >= (body.total ?? 0)) return found
  }
}

test(
  `of ${messages} messages during ${kills} kills each is stored once`,
  async () => {
    const waiting = Array.from({ length: messages }, (_, nth) => nth)
    let stored = 0
    let repeated = 0
    const send = async () => {
      let client: SmtpClient | undefined
      for (let nth = waiting.shift(); nth !== undefined; nth = waiting.shift()) {
        const octets = `From: ann@example.net\r\nSubject: n${nth}\r\nMessage-ID: <${nth}@example.net>\r\n\r\nHello ${nth}`
        client ??= await connected()
        const reply = await sendIncoming(client, { to: [`in+${nth}@shop.example.com`], octets }).catch(() => 'closed')
        if (reply.startsWith('250')) stored++
        else {
          // As a mail server does: everything but 5xx is tried again.
          expect(reply).not.toMatch(/^5/)
          client.destroy()
          client = undefined
          repeated++
          waiting.push(nth)
        }
      }
      client?.destroy()
    }
    const sending = Promise.all(Array.from({ length: senders }, send))
    let killed = 0
    for (let round = 1; round <= kills; round++) {
      // Found before the time has come, so that messages are under way at the kill.
      const started = async () => (await service.processes()).inbound.filter((pid) => pid !== killed)
      const [victim = 0] = await vi.waitUntil(async () => ((await started()).length === 1 ? started() : undefined), {
        timeout: maxMs,
        interval: 50,
      })
      await vi.waitUntil(() => stored >= (messages / (kills + 1)) * round, { timeout: maxMs, interval: 1 })
      process.kill(victim, 'SIGKILL')
      killed = victim
    }
    await sending
    expect(repeated).toBeGreaterThan(0)
    const found = await listAll()
    expect(found.map(({ subject }) => subject).sort()).toEqual(Array.from({ length: messages }, (_, nth) => `n${nth}`).sort())
    expect(new Set(found.map(({ id }) => id)).size).toBe(messages)
  },
  maxMs,
)
