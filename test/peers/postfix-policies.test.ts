/**
 * Postfix as the receiver with common policies: all mail arrives once behind it, and the counts in its own log show that its limits were
 * respected. One installation, four Postfix servers, at the same time.
 */
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { missingPostfix, type Postfix, startPostfix } from '../support/postfix.ts'
import { freePort } from '../support/spawned-service.ts'
import { startTestDns } from '../support/test-dns.ts'

const missing = missingPostfix()
const arriveWithinMs = 150_000
const greyForMs = 2000
/** Connections to one site before the first refusal. */
const maxAtFirst = 10
/** Messages in flight at the time of the first refusal arrive within this time. */
const knownAfterSeconds = 3

/** `messages`: how many are sent to it. Without the first setting, Postfix exempts its own networks from the counts. */
const policies = {
  'grey.example': { messages: 30, settings: {} },
  'three-connections.example': { messages: 400, settings: { smtpd_client_connection_count_limit: '3' } },
  'few-new-connections.example': {
    messages: 200,
    settings: { smtpd_client_connection_rate_limit: '6', anvil_rate_time_unit: '10s' },
  },
  'twenty-a-second.example': { messages: 250, settings: { smtpd_client_message_rate_limit: '20', anvil_rate_time_unit: '1s' } },
} as const
type Domain = keyof typeof policies
const domains = Object.keys(policies) as Domain[]

describe.skipIf(missing !== undefined)(`Postfix with policies${missing === undefined ? '' : ` (${missing})`}`, () => {
  const closing = new AsyncDisposableStack()
  const postfixes = new Map<Domain, Postfix>()
  let service: Service
  /** The next hop behind all of them. */
  let next: FakeMx

  beforeAll(async () => {
    const port = await freePort()
    next = closing.use(await startFakeMx())
    const greylist = await startGreylist()
    closing.defer(() => new Promise((resolve) => greylist.server.close(() => resolve())))
    const dns = closing.use(await startTestDns())
    for (const [index, domain] of domains.entries()) {
      const host = `127.0.6.${index + 1}`
      dns.set(domain, 'MX', [`10 mx.${domain}`])
      dns.set(`mx.${domain}`, 'A', [host])
      const greylisting = {
        smtpd_recipient_restrictions: `check_policy_service inet:127.0.0.1:${greylist.port}, permit_mynetworks, reject`,
      }
      const settings = {
        smtpd_client_event_limit_exceptions: '',
        anvil_status_update_time: '1s',
        ...policies[domain].settings,
        ...(domain === 'grey.example' ? greylisting : {}),
      }
      postfixes.set(domain, closing.use(await startPostfix(port, 'local.example', { [domain]: next.port }, { host, settings })))
    }
    service = closing.use(
      await startService({
        rateLimit: null,
        sendLimit: null,
        roles: ['delivery'],
        settings: {
          POSTRIDER_DNS: dns.address,
          POSTRIDER_MX_PORT: String(port),
          POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
          POSTRIDER_RETRY_BASE_SECONDS: '1',
        },
      }),
    )
    await service.addDomain(service.tenantId, 'shop.example.com')
    for (const domain of domains) await send(service, domain, policies[domain].messages)
    await next.waitFor(
      domains.reduce((sum, domain) => sum + policies[domain].messages, 0),
      arriveWithinMs,
    )
  }, 240_000)
  afterAll(() => closing.disposeAsync())

  const figures = (domain: Domain) => figuresOf(postfixes.get(domain)?.log() ?? '')

  test.each(domains)('%s: every message arrives once, and is sent', async (domain) => {
    const arrived = next.messages.flatMap((one) => one.recipients).filter((one) => one.endsWith(`@${domain}`))
    expect(arrived.length).toBe(policies[domain].messages)
    expect(new Set(arrived).size).toBe(policies[domain].messages)
    const totalOf = async (query: string) => (await service.call('GET', `/emails?perPage=1${query}`, { key: service.liveKey })).body.total
    await expect.poll(() => totalOf('&status=sent'), { timeout: 10_000 }).toBe(await totalOf(''))
  })

  test('a greylisted recipient is tried again with the same sender, and each is put off once', () => {
    const putOff = (postfixes.get('grey.example')?.log() ?? '').match(/NOQUEUE: reject: .*to=<[^>]*>/g) ?? []
    expect(putOff.length).toBeGreaterThanOrEqual(policies['grey.example'].messages)
    expect(new Set(putOff.map((line) => /from=<([^>]*)>/.exec(line)?.[1])).size).toBe(policies['grey.example'].messages)
  })

  test('of three connections allowed no more stood, and none but the first ones too many was tried', () => {
    const { maxStanding, refusedConnections } = figures('three-connections.example')
    expect(maxStanding).toBeLessThanOrEqual(3)
    expect(refusedConnections).toBeLessThanOrEqual(maxAtFirst - 3)
  })

  test('of six new connections in ten seconds no more were taken, and hardly another was tried', () => {
    const { connections, refusedConnections, seconds } = figures('few-new-connections.example')
    expect(connections - refusedConnections).toBeLessThanOrEqual(6 * (1 + Math.floor(seconds / 10)))
    expect(refusedConnections).toBeLessThanOrEqual(maxAtFirst)
  })

  test('of twenty messages a second hardly more were tried once it was known, and few were refused', () => {
    const { refusedMessages, maxAskedIn3Seconds } = figures('twenty-a-second.example')
    expect(maxAskedIn3Seconds).toBeGreaterThan(0)
    // Postrider probes for a higher limit with one message now and then.
    expect(maxAskedIn3Seconds).toBeLessThanOrEqual(3 * 22)
    // Most of them in the first burst, before the limit was known: how many depends on the machine. From then on only a probe now and then
    // (test/faults/shaping.test.ts).
    expect(refusedMessages).toBeLessThan(policies['twenty-a-second.example'].messages / 2)
  })
})

describe.skipIf(missing !== undefined)('Postfix as the relay of all mail, with three connections allowed', () => {
  const messages = 150

  test('passes every message on once, and no more connections stood', async () => {
    await using next = await startFakeMx()
    const port = await freePort()
    const settings = { smtpd_client_event_limit_exceptions: '', smtpd_client_connection_count_limit: '3' }
    await using postfix = await startPostfix(port, 'local.example', { 'away.example': next.port }, { settings })
    await using service = await startService({
      rateLimit: null,
      sendLimit: null,
      roles: ['delivery'],
      settings: { POSTRIDER_RELAY: `smtp://127.0.0.1:${port}`, POSTRIDER_RETRY_BASE_SECONDS: '1' },
    })
    await service.addDomain(service.tenantId, 'shop.example.com')
    await send(service, 'away.example', messages)
    await next.waitFor(messages, 100_000)
    expect(new Set(next.messages.flatMap((one) => one.recipients)).size).toBe(messages)
    expect(next.messages).toHaveLength(messages)
    const { maxStanding, refusedConnections } = figuresOf(postfix.log())
    expect(maxStanding).toBeLessThanOrEqual(3)
    expect(refusedConnections).toBeLessThanOrEqual(maxAtFirst - 3)
  }, 120_000)
})

async function send(service: Service, domain: string, messages: number): Promise<void> {
  for (let first = 0; first < messages; first += 100) {
    const count = Math.min(100, messages - first)
    const emails = Array.from({ length: count }, (_, at) => ({ to: [`n${first + at}@${domain}`], subject: 'One of many', text: 'Hello' }))
    const answer = await service.call('POST', '/emails/batch', { key: service.liveKey, body: { from: 'a@shop.example.com', emails } })
    expect([answer.status, answer.body.error]).toEqual([200, undefined])
  }
}

/**
 * Counts from Postfix's log: a session is identified by the process that serves it. `maxAskedIn3Seconds`: messages that were tried once the
 * limit was known; over three seconds, because a busy Postfix logs a message a moment later than it counts it.
 */
function figuresOf(log: string) {
  const open = new Set<string>()
  const figures = { connections: 0, maxStanding: 0, refusedConnections: 0, refusedMessages: 0, seconds: 0, maxAskedIn3Seconds: 0 }
  let [begunAt, knownAt] = [Infinity, Infinity]
  const asked = new Map<number, number>()
  for (const line of log.split('\n')) {
    const [, time = '', pid = '', said = ''] = /^(\w+ +\d+ [\d:]+) .*smtpd\[(\d+)\]: (.*)/.exec(line) ?? []
    const second = Date.parse(`2000 ${time}`) / 1000
    if (said.startsWith('connect from')) begunAt = Math.min(begunAt, second)
    if (said !== '') figures.seconds = Math.max(0, second - begunAt)
    if (said.startsWith('connect from')) figures.connections++
    if (/^warning: Connection (concurrency|rate) limit exceeded/.test(said)) figures.refusedConnections++
    const isRefused = said.startsWith('warning: Message delivery request rate limit exceeded')
    if (isRefused) {
      figures.refusedMessages++
      knownAt = Math.min(knownAt, second + knownAfterSeconds)
    }
    // Only now is it certain that the connection was within the limit: a process logs the connection first and the refusal afterwards.
    const isTaken = /^[0-9A-F]+: client=/.test(said)
    if (isTaken) open.add(pid)
    if ((isTaken || isRefused) && second >= knownAt) {
      asked.set(second, (asked.get(second) ?? 0) + 1)
    }
    if (said.startsWith('disconnect from')) open.delete(pid)
    figures.maxStanding = Math.max(figures.maxStanding, open.size)
  }
  for (const second of asked.keys()) {
    const in3Seconds = [second, second + 1, second + 2].reduce((sum, each) => sum + (asked.get(each) ?? 0), 0)
    figures.maxAskedIn3Seconds = Math.max(figures.maxAskedIn3Seconds, in3Seconds)
  }
  return figures
}

/** SMTP access policy delegation (SMTPD_POLICY_README): a new sender gets a temporary failure for a while. */
async function startGreylist(): Promise<{ server: Server; port: number }> {
  const seenAtMs = new Map<string, number>()
  const server = createServer((socket) => {
    let unread = ''
    socket.on('error', () => socket.destroy())
    socket.on('data', (octets) => {
      unread += octets.toString('utf8')
      for (let end = unread.indexOf('\n\n'); end >= 0; end = unread.indexOf('\n\n')) {
        const asked = new Map(
          unread
            .slice(0, end)
            .split('\n')
            .map((line) => line.split(/=(.*)/s) as [string, string]),
        )
        unread = unread.slice(end + 2)
        const triplet = ['client_address', 'sender', 'recipient'].map((name) => asked.get(name)).join(' ')
        const firstMs = seenAtMs.get(triplet) ?? performance.now()
        seenAtMs.set(triplet, firstMs)
        const isNew = performance.now() - firstMs < greyForMs
        socket.write(`action=${isNew ? 'DEFER_IF_PERMIT 4.2.0 Greylisted, see http://postgrey.schweikert.ch/help' : 'DUNNO'}\n\n`)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, port: (server.address() as { port: number }).port }
}
