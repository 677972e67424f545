/**
 * Vendors' SDKs that send and repeat while every process and the database are killed: no accepted message is lost, and a repeated request sends
 * once where the vendor has idempotency keys. POSTRIDER_TEST_SDK_KILLS sets the number of kills; `npm run sdk-kills` is the long run.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { silentLog, systemClock } from '#base'
import { embeddedUrlIfRunning, openDb, sql } from '#db'
import { SdkLoad, type SdkName } from '../support/sdk-load.ts'
import { type Peer, startPeer } from '../support/smtp-server-peer.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const kills = Number(process.env['POSTRIDER_TEST_SDK_KILLS'] ?? 1)
/** Messages that are accepted before each kill, and after the last. */
const perRound = 60
const withinMs = 60_000

const storedEmails = sql<{ recipient: string; ids: string[] }>`
  select recipient, array_agg(id order by id) as ids
  from emails
  group by recipient`

const failpoints = mkdtempSync(join(tmpdir(), 'postrider-failpoints-'))
let peer: Peer
let service: ServiceProcess
let load: SdkLoad
beforeAll(async () => {
  peer = await startPeer()
  service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${peer.port}`,
    POSTRIDER_SEPARATE_PROCESSES: 'delivery',
    POSTRIDER_DELIVERY_PROCESSES: '1',
    POSTRIDER_LEASE_MS: '1000',
    POSTRIDER_RETRY_BASE_SECONDS: '1',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_FAILPOINTS: failpoints,
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
  const { url, liveKey: key } = service
  load = await SdkLoad.open({ clock: systemClock, url, key, from: 'orders@shop.example.com', lanesPerSdk: 3, gapMs: 0 })
}, 120_000)
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
  rmSync(failpoints, { recursive: true, force: true })
})

async function killEverything(): Promise<void> {
  const { serve, delivery, postgres } = await service.processes()
  expect(postgres).toBeGreaterThan(0)
  for (const pid of [serve, postgres ?? 0, ...delivery]) process.kill(pid, 'SIGKILL')
  await restart()
}

async function restart(): Promise<void> {
  await service.stop()
  await service.start()
}

/** The ids of the stored emails by recipient. */
async function storedIds(): Promise<ReadonlyMap<string, string[]>> {
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'test', log: silentLog })
  try {
    return new Map((await db.rows(storedEmails, [])).map(({ recipient, ids }) => [recipient, ids]))
  } finally {
    await db.close()
  }
}

/** Sends a message whose commit is stored and whose answer is lost, because the service is killed between them, and repeats the request. */
async function sendThroughLostAnswer(name: SdkName, to: string): Promise<string> {
  writeFileSync(join(failpoints, 'accept-committed'), '')
  await expect(load.sdks[name](to)).rejects.toBeTruthy()
  await restart()
  expect((await storedIds()).get(to)).toHaveLength(1)
  return load.sdks[name](to)
}

test('a request whose answer was lost sends once when it is repeated under its idempotency key', { timeout: withinMs }, async () => {
  const id = await sendThroughLostAnswer('resend', 'once@one.example')
  expect((await storedIds()).get('once@one.example')).toEqual([id])
})

test('a request of a vendor without idempotency keys sends again when it is repeated', { timeout: withinMs }, async () => {
  const id = await sendThroughLostAnswer('postmark', 'twice@one.example')
  const ids = (await storedIds()).get('twice@one.example')
  expect(ids).toHaveLength(2)
  expect(ids).toContain(id)
})

test(`five SDKs lose nothing while every process is killed, ${kills} times`, { timeout: withinMs * (2 + kills) }, async () => {
  const untilMore = async () => {
    const before = load.accepted.size
    await vi.waitUntil(() => load.accepted.size >= before + perRound, { timeout: withinMs, interval: 5 })
  }
  load.start()
  for (let killed = 0; killed < kills; killed++) {
    await untilMore()
    await killEverything()
  }
  await untilMore()
  await load.pause()

  const lost = () => load.lost(new Set(peer.messages.flatMap(({ recipients }) => recipients)))
  await vi.waitUntil(() => lost().length === 0, { timeout: withinMs, interval: 100 }).catch(() => undefined)
  expect(lost()).toEqual([])
  const ids = await storedIds()
  expect(load.wrong((to) => ids.get(to) ?? [])).toEqual([])
  const accepted = [...load.accepted]
  expect(new Set(accepted.map(([, { name }]) => name))).toEqual(new Set(Object.keys(load.sdks)))
  const repeated = accepted.filter(([, { tries }]) => tries > 1)
  expect(repeated.length).toBeGreaterThan(0)
  if (kills > 1) {
    const again = repeated.filter(([to]) => (ids.get(to)?.length ?? 0) > 1)
    console.log(`${kills} kills: ${accepted.length} messages accepted, ${repeated.length} repeated, ${again.length} of them stored again`)
  }
})
