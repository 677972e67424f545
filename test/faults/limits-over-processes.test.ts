/** Limits shared by several processes: together the processes let through no more than one process alone would, and hardly less. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { embeddedUrlIfRunning } from '#db'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { startMxDns } from '../support/simple-dns.ts'
import { type Peer, startPeer } from '../support/smtp-server-peer.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { notAtTheEndOfAnHour } from '../support/test-clock.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]()
})
const kept = <T extends AsyncDisposable>(one: T): T => {
  open.push(one)
  return one
}

/** Starts `count` processes with the role api on one database. The first also has all other roles. */
async function startApis(count: number, environment: Record<string, string>): Promise<[ServiceProcess, ...ServiceProcess[]]> {
  const first = kept(await startServiceProcess(environment))
  const url = (await embeddedUrlIfRunning(first.folder)) as string
  const secret = (await readFile(join(first.folder, 'secret'), 'utf8')).trim()
  const shared = { ...environment, DATABASE_URL: url, POSTRIDER_SECRET: secret, POSTRIDER_ROLES: 'api' }
  const others = await Promise.all(Array.from({ length: count - 1 }, async () => kept(await startServiceProcess(shared))))
  return [first, ...others]
}

describe.each([1, 3])('%i processes that serve the API', (count) => {
  test('let a key through as often as one, and give out exactly the emails of an hour', async () => {
    const peer = kept(await startPeer())
    const apis = await startApis(count, { POSTRIDER_RATE_LIMIT: 'unlimited', POSTRIDER_RELAY: `smtp://127.0.0.1:${peer.port}` })
    await apis[0].command('domain', 'add', 'shop.example.com', '--trust')
    await refusesOverItsRate(apis)
    await givesOutItsHour(apis, peer)
  }, 180_000)
})

/** Each process asks for more than the limit, so that every slot that becomes free is taken. */
async function refusesOverItsRate(apis: [ServiceProcess, ...ServiceProcess[]]): Promise<void> {
  // A low rate, so that even a busy machine exceeds it.
  const perSecond = 10
  // Long enough that a moment's delay at the end is a small part.
  const seconds = 20
  const { id, key } = (await apis[0].command('key', 'create', '--type', 'live')) as { id: string; key: string }
  await apis[0].command('limits', 'set', '--key', id, '--rate', String(perSecond))
  await settingsAreRead()
  const beganMs = performance.now()
  let passed = 0
  const ask = async (api: ServiceProcess) => {
    while (performance.now() < beganMs + seconds * 1000) {
      const { status } = await api.call('GET', '/limits', undefined, key)
      expect([200, 429]).toContain(status)
      if (status === 200) passed++
    }
  }
  await Promise.all(apis.flatMap((api) => [ask(api), ask(api), ask(api)]))
  const tookMs = performance.now() - beganMs
  console.log(
    `limits: ${apis.length} API processes let ${passed} requests through in ${tookMs.toFixed(0)} ms, ${perSecond} a second allowed`,
  )
  expect(passed).toBeLessThanOrEqual(perSecond * Math.ceil(tookMs / 1000))
  expect(passed).toBeGreaterThanOrEqual(0.95 * perSecond * seconds)
}

async function givesOutItsHour(apis: [ServiceProcess, ...ServiceProcess[]], peer: Peer): Promise<void> {
  const perHour = 150
  await notAtTheEndOfAnHour()
  await apis[0].command('limits', 'set', '--send', String(perHour))
  await settingsAreRead()
  const send = (api: ServiceProcess, name: string) =>
    api.call('POST', '/emails', { from: 'a@shop.example.com', to: [`${name}@one.example`], subject: 'One', text: 'Hello' }, apis[0].liveKey)
  const statuses = await Promise.all(
    apis.map(async (api, at) => {
      const seen: number[] = []
      for (let nth = at; nth < 2 * perHour; nth += apis.length) seen.push((await send(api, `n${nth}`)).status)
      return seen
    }),
  )
  expect(new Set(statuses.flat())).toEqual(new Set([200]))
  await vi.waitUntil(() => peer.messages.length >= perHour, { timeout: 30_000, interval: 20 })
  expect((await send(apis[0], 'last')).headers.get('x-sendlimit-remaining')).toBe('0')
  // Postrider records a message shortly after the peer took it.
  const pending = async () => (await apis[0].call('GET', '/emails?status=pending&perPage=1')).body.total
  await expect.poll(pending, { timeout: 10_000 }).toBe(perHour + 1)
  expect(peer.messages.length).toBe(perHour)
}

/** New limits are in force within a second. */
const settingsAreRead = () => new Promise((resolve) => setTimeout(resolve, 1100))

describe.each([1, 3])('%i delivery processes', (count) => {
  test('keep to the connections and the rate of a provider, and use them', async () => {
    // Long enough that a moment's delay of the last message is a small part.
    const [connections, rate, seconds] = [3, 10, 20]
    const standing = new Set<number>()
    let maxStanding = 0
    const takenAtMs: number[] = []
    const mx: FakeMx = kept(
      await startFakeMx({
        script: ({ stage, session }) => {
          if (stage === 'connect') standing.add(session)
          // Counted at EHLO: only then has the server certainly seen earlier connections close.
          if (stage === 'ehlo') maxStanding = Math.max(maxStanding, standing.size)
          if (stage === 'mail') takenAtMs.push(performance.now())
          return undefined
        },
        closed: (session) => standing.delete(session),
      }),
    )
    const service = kept(await startToward(mx, { connections, rate }, count))
    // More messages than are counted: when one process has run out, another may still wait for a connection.
    const counted = rate * seconds
    const wanted = counted + rate * 4
    for (let first = 0; first < wanted; first += 60) {
      const emails = Array.from({ length: 60 }, (_, at) => ({ to: [`n${first + at}@one.example`], subject: 'One of many', text: 'Hello' }))
      expect((await service.call('POST', '/emails/batch', { from: 'a@shop.example.com', emails })).status).toBe(200)
    }
    await mx.waitFor(wanted, 60_000)
    takenAtMs.splice(counted)
    const inWindow = takenAtMs.map((fromMs, at) => takenAtMs.slice(at).filter((atMs) => atMs < fromMs + 1000).length)
    // The least late message of the first second sets the start: the very first one waited for its connection.
    const beganMs = Math.min(...takenAtMs.slice(0, rate).map((atMs, nth) => atMs - (nth * 1000) / rate))
    const tookMs = (takenAtMs.at(-1) as number) - beganMs
    const perSecond = ((counted - 1) * 1000) / tookMs
    console.log(
      `limits: ${count} delivery processes: ${perSecond.toFixed(1)} of ${rate} messages a second, at most ${Math.max(...inWindow)} within one, ${maxStanding} of ${connections} connections`,
    )
    expect(maxStanding).toBeLessThanOrEqual(connections)
    expect(perSecond).toBeLessThanOrEqual(rate * 1.01)
    expect(perSecond).toBeGreaterThanOrEqual(rate * 0.95)
    // Each message goes at its time or slightly later, never earlier. On a busy machine up to half as many again may be late and fall
    // together with the next ones.
    expect(Math.max(...inWindow)).toBeLessThanOrEqual(rate * 1.5)
  }, 120_000)
})

test('a connection of few is kept while no other destination wants it', async () => {
  const emails = 12
  let connects = 0
  const mx = kept(
    await startFakeMx({
      script: ({ stage }) => {
        if (stage === 'connect') connects++
        return undefined
      },
    }),
  )
  const service = kept(await startToward(mx, { connections: 2 }, 1))
  for (let nth = 0; nth < emails; nth++) {
    await service.call('POST', '/emails', { from: 'a@shop.example.com', to: [`n${nth}@one.example`], subject: 'One', text: 'Hello' })
    // The connection is idle for a moment after each message.
    await mx.waitFor(nth + 1, 10_000)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  expect(connects).toBeLessThanOrEqual(3)
}, 60_000)

/** Starts delivery processes that send directly to `mx`, with `rule` as the provider rule. */
async function startToward(mx: FakeMx, rule: { connections: number; rate?: number }, processes: number): Promise<ServiceProcess> {
  const dns = kept(await startMxDns({ mx: { 'one.example': ['mx.one.example'] }, a: { 'mx.one.example': ['127.0.0.1'] } }))
  const folder = await mkdtemp(join(tmpdir(), 'postrider-rules-'))
  kept({ [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) })
  const rules = join(folder, 'rules.json')
  await writeFile(rules, JSON.stringify({ providers: [{ name: 'strict', mx: ['one.example'], ...rule }] }))
  const service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_DELIVERY_PROCESSES: String(processes),
    POSTRIDER_PROVIDER_RULES: rules,
    POSTRIDER_DNS: dns.address,
    POSTRIDER_MX_PORT: String(mx.port),
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
  return service
}
