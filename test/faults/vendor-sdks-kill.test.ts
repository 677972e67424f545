/**
 * Vendors' SDKs that send and repeat while every process and the database are killed: no accepted message is lost, and a repeated request sends
 * once where the vendor has idempotency keys. POSTRIDER_TEST_SDK_KILLS sets the number of kills; `npm run sdk-kills` is the long run.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SendEmailCommand as SendEmail1Command } from '@aws-sdk/client-ses'
import { SendEmailCommand } from '@aws-sdk/client-sesv2'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { silentLog } from '#base'
import { embeddedUrlIfRunning, openDb, sql } from '#db'
import type { SignedBy } from '../support/aws-signature.ts'
import { postmarkClient, resendClient, sendgridClient, sendgridMailer, sesClient, sesv2Client } from '../support/sdk-clients.ts'
import { type Peer, startPeer } from '../support/smtp-server-peer.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const kills = Number(process.env['POSTRIDER_TEST_SDK_KILLS'] ?? 1)
/** Messages that are accepted before each kill, and after the last. */
const perRound = 60
const lanesPerSdk = 3
const withinMs = 60_000
const maxTries = 50
const from = 'orders@shop.example.com'

const storedEmails = sql<{ recipient: string; ids: string[] }>`
  select recipient, array_agg(id order by id) as ids
  from emails
  group by recipient`

/** Sends one message, and returns its id; rejects without an answer. */
type Send = (to: string) => Promise<string>

const failpoints = mkdtempSync(join(tmpdir(), 'postrider-failpoints-'))
let peer: Peer
let service: ServiceProcess
let sdks: Record<'resend' | 'postmark' | 'sendgrid' | 'sesv2' | 'ses', Send>
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
  sdks = openSdks((await service.command('key', 'create', '--type', 'live', '--format', 'ses')) as unknown as SignedBy)
}, 120_000)
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
  rmSync(failpoints, { recursive: true, force: true })
})

function openSdks(signing: SignedBy): typeof sdks {
  const { url, liveKey } = service
  const [resend, postmark] = [resendClient(liveKey, url), postmarkClient(liveKey, url)]
  const mailer = sendgridMailer(sendgridClient(liveKey, url))
  const [two, one] = [sesv2Client(signing, url), sesClient(signing, url)]
  const [subject, text] = ['Hello', 'Hi']
  return {
    async resend(to) {
      const { data, error } = await resend.emails.send({ from, to, subject, text }, { idempotencyKey: `welcome/${to}` })
      if (data) return data.id
      throw error
    },
    postmark: async (To) => (await postmark.sendEmail({ From: from, To, Subject: subject, TextBody: text })).MessageID,
    async sendgrid(to) {
      const [{ headers }] = await mailer.send({ from, to, subject, text })
      return (headers as Record<string, string>)['x-message-id'] as string
    },
    async sesv2(to) {
      const Content = { Simple: { Subject: { Data: subject }, Body: { Text: { Data: text } } } }
      return (await two.send(new SendEmailCommand({ FromEmailAddress: from, Destination: { ToAddresses: [to] }, Content }))).MessageId as string
    },
    async ses(to) {
      const Message = { Subject: { Data: subject }, Body: { Text: { Data: text } } }
      return (await one.send(new SendEmail1Command({ Source: from, Destination: { ToAddresses: [to] }, Message }))).MessageId as string
    },
  }
}

interface Answered {
  id: string
  tries: number
}

/** Repeats the request until it is answered, as a careful program does. */
async function sendUntilAnswered(send: Send, to: string): Promise<Answered> {
  for (let tries = 1; ; tries++) {
    try {
      return { id: await send(to), tries }
    } catch (error) {
      if (tries === maxTries) throw error
    }
    await vi.waitUntil(isReady, { timeout: withinMs, interval: 20 })
  }
}

const isReady = () =>
  fetch(`${service.url}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  )

async function killEverything(): Promise<void> {
  const { serve, delivery, postgres } = await service.processes()
  expect(postgres).toBeGreaterThan(0)
  for (const pid of [serve, postgres ?? 0, ...delivery]) process.kill(pid, 'SIGKILL')
  await service.stop()
  await service.start()
}

/** The ids of the stored emails by recipient. */
async function stored(): Promise<ReadonlyMap<string, string[]>> {
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'test', log: silentLog })
  try {
    return new Map((await db.rows(storedEmails, [])).map(({ recipient, ids }) => [recipient, ids]))
  } finally {
    await db.close()
  }
}

/** The first commit is stored, but its answer is lost, because the service is killed between them. */
async function sendThroughLostAnswer(name: keyof typeof sdks, to: string): Promise<string> {
  writeFileSync(join(failpoints, 'accept-committed'), '')
  await expect(sdks[name](to)).rejects.toBeTruthy()
  await service.stop()
  await service.start()
  expect((await stored()).get(to)).toHaveLength(1)
  return sdks[name](to)
}

test('a request whose answer was lost sends once when it is repeated under its idempotency key', { timeout: withinMs }, async () => {
  const id = await sendThroughLostAnswer('resend', 'once@one.example')
  expect((await stored()).get('once@one.example')).toEqual([id])
})

test('a request of a vendor without idempotency keys sends again when it is repeated', { timeout: withinMs }, async () => {
  const id = await sendThroughLostAnswer('postmark', 'twice@one.example')
  const ids = (await stored()).get('twice@one.example')
  expect(ids).toHaveLength(2)
  expect(ids).toContain(id)
})

test(`five SDKs lose nothing while every process is killed ${kills} times`, { timeout: withinMs * (2 + kills) }, async () => {
  const accepted = new Map<string, Answered & { name: string }>()
  let isOver = false
  const lane = async (name: string, send: Send, lane: number) => {
    for (let n = 0; !isOver; n++) {
      const to = `${name}-${lane}-${n}@one.example`
      accepted.set(to, { name, ...(await sendUntilAnswered(send, to)) })
    }
  }
  const lanes = Object.entries(sdks).flatMap(([name, send]) => Array.from({ length: lanesPerSdk }, (_, nth) => lane(name, send, nth)))
  const untilMore = async () => {
    const before = accepted.size
    await vi.waitUntil(() => accepted.size >= before + perRound, { timeout: withinMs, interval: 5 })
  }
  for (let killed = 0; killed < kills; killed++) {
    await untilMore()
    await killEverything()
  }
  await untilMore()
  isOver = true
  await Promise.all(lanes)

  const arrived = () => new Set(peer.messages.flatMap(({ recipients }) => recipients))
  const lost = () => [...accepted.keys()].filter((to) => !arrived().has(to))
  await vi.waitUntil(() => lost().length === 0, { timeout: withinMs, interval: 100 }).catch(() => undefined)
  expect(lost()).toEqual([])
  const ids = await stored()
  const wrong = [...accepted].filter(([to, { id, tries, name }]) => {
    const own = ids.get(to) ?? []
    return !own.includes(id) || own.length > (name === 'resend' ? 1 : tries)
  })
  expect(wrong).toEqual([])
  expect(new Set([...accepted.values()].map(({ name }) => name))).toEqual(new Set(Object.keys(sdks)))
  const repeated = [...accepted].filter(([, { tries }]) => tries > 1)
  expect(repeated.length).toBeGreaterThan(0)
  if (kills > 1) {
    const twice = repeated.filter(([to]) => (ids.get(to)?.length ?? 0) > 1)
    console.log(`${kills} kills: ${accepted.size} messages accepted, ${repeated.length} repeated, ${twice.length} of those stored again, 0 lost`)
  }
})
