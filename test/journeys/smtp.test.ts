/** An SMTP client against real processes, which are started, killed, cut from their database and stopped while it sends. */
import { execFile } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { loggedIn, smtpClient } from '../support/smtp-client.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

let mx: FakeMx
let service: ServiceProcess
let ports: { smtp: number; submission: number; submissionTls: number }
let login: { user: string; pass: string }

beforeAll(async () => {
  mx = await startFakeMx()
  ports = { smtp: await freePort(), submission: await freePort(), submissionTls: await freePort() }
  service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
    POSTRIDER_SEPARATE_PROCESSES: 'delivery,inbound',
    POSTRIDER_SMTP_PORT: String(ports.smtp),
    POSTRIDER_SUBMISSION_PORT: String(ports.submission),
    POSTRIDER_SUBMISSION_TLS_PORT: String(ports.submissionTls),
  })
  const { tenantId } = await service.command('domain', 'add', 'shop.test', '--trust')
  const made = await service.call('POST', `/tenants/${tenantId}/credentials`, { name: 'shop', type: 'smtp' })
  const { key, smtpUsername } = made.body.data as { key: string; smtpUsername: string }
  login = { user: smtpUsername, pass: key }
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await mx.close()
})

const send = (subject: string, secure: boolean) =>
  createTransport({
    host: '127.0.0.1',
    port: secure ? ports.submissionTls : ports.submission,
    secure,
    auth: login,
    tls: { rejectUnauthorized: false },
  }).sendMail({
    from: 'Shop <orders@shop.test>',
    to: 'ann@one.example',
    subject,
    text: 'Hello',
    headers: { 'X-Postrider-Tag': 'order' },
  })

const isListening = () =>
  smtpClient(ports.submission)
    .then((client) => client.reply().finally(() => client.destroy()))
    .then(
      (reply) => reply.startsWith('220'),
      () => false,
    )
const untilListening = () => vi.waitUntil(isListening, { timeout: 20_000, interval: 100 })

test('the start prints the ports, and submitted mail is delivered and shown by the API', async () => {
  await untilListening()
  expect(service.output()).toContain(
    `SMTP on 127.0.0.1: submission ${ports.submission} (STARTTLS) and ${ports.submissionTls} (TLS), incoming mail ${ports.smtp}`,
  )
  const replies = [await send('one', false), await send('two', true)].map((info) => info.response)
  const messages = await mx.waitFor(2, 15_000)
  expect(messages.map(({ recipients }) => recipients)).toEqual([['ann@one.example'], ['ann@one.example']])
  for (const reply of replies) {
    const id = /queued as (\w{22})$/.exec(reply)?.[1]
    const { body } = await service.call('GET', `/emails/${id}`)
    expect(body.data).toMatchObject({ id, to: 'ann@one.example', tag: 'order' })
  }
})

test('mail of a test key is in the test inbox, and none of it leaves', async () => {
  const before = mx.messages.length
  const to = 'ann+sandbox@one.example'
  const sent = await createTransport({
    host: '127.0.0.1',
    port: ports.submissionTls,
    secure: true,
    auth: { user: 'apikey', pass: service.testKey },
    tls: { rejectUnauthorized: false },
  }).sendMail({ from: 'orders@simulator.test', to, subject: 'Sandbox', text: 'Hello', headers: { 'X-Postrider-Tag': 'order' } })
  const id = /queued as (\w{22})$/.exec(sent.response)?.[1]
  const inbox = await service.call('GET', `/test/inbox?to=${encodeURIComponent(to)}&since=${id}&wait=10`, undefined, service.testKey)
  expect(inbox.body.data).toMatchObject([{ id, to, subject: 'Sandbox' }])
  expect((await service.call('GET', `/emails/${id}`)).body.data).toMatchObject({ id, status: 'sent', tag: 'order' })
  // Live mail that is sent later has arrived, and no other mail.
  await send('after the sandbox', true)
  const arrived = (await mx.waitFor(before + 1, 15_000)).slice(before)
  expect(arrived.map(({ recipients }) => recipients)).toEqual([['ann@one.example']])
})

test('a killed SMTP process is started again, and the API does not notice', async () => {
  const [before] = (await service.processes()).inbound
  process.kill(before as number, 'SIGKILL')
  expect((await service.call('GET', '/limits')).status).toBe(200)
  await vi.waitUntil(async () => (await service.processes()).inbound.some((pid) => pid !== before), { timeout: 20_000, interval: 100 })
  await untilListening()
  expect((await send('three', false)).response).toMatch(/queued as/)
})

test('while the database is frozen clients get a temporary refusal, in time, and then all goes on', async () => {
  const { postgres } = await service.processes()
  const client = await loggedIn(ports.submission, login.user, login.pass)
  const server = await withChildren(postgres as number)
  for (const pid of server) process.kill(pid, 'SIGSTOP')
  try {
    // A cached lookup stays valid for most of a second.
    await wait(1000)
    const began = performance.now()
    expect(await client.say('MAIL FROM:<orders@shop.test>')).toMatch(/^451 4\.3\.0/)
    expect(performance.now() - began).toBeLessThan(14_000)
  } finally {
    for (const pid of server) process.kill(pid, 'SIGCONT')
  }
  client.destroy()
  await vi.waitUntil(() => send('four', true).then(Boolean, () => false), { timeout: 15_000, interval: 500 })
}, 60_000)

async function withChildren(parent: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid='])
  const rows = stdout.split('\n').map((row) => row.trim().split(/\s+/).map(Number))
  return [parent, ...rows.flatMap(([pid, of]) => (pid !== undefined && of === parent ? [pid] : []))]
}

test('an orderly stop of the service answers the message whose data has begun', async () => {
  const client = await loggedIn(ports.submission, login.user, login.pass)
  for (const command of ['MAIL FROM:<orders@shop.test>', 'RCPT TO:<ann@one.example>', 'DATA']) await client.say(command)
  client.write('From: orders@shop.test\r\nSubject: last\r\n\r\nHalf')
  const stopped = service.stop()
  await vi.waitUntil(async () => !(await isListening()), { timeout: 10_000, interval: 50 })
  client.write(' and half\r\n.\r\n')
  expect(await client.reply()).toMatch(/^250 2\.6\.0 Ok: queued as/)
  client.destroy()
  expect(await stopped).toBe(0)
}, 60_000)
