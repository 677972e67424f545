/** Worst-case mail from a stranger without a login, to addresses that are publicly known. Other clients must not notice it. */
import { connect as connectTcp } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openReturnPaths } from '#emails'
import { smtpClient } from '../support/smtp-client.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { attachedAsText, passedOnAsText, recipients } from '../support/worst-reports.ts'

const secret = 'a secret for this test only, long enough'
const hostname = 'mail.postrider.test'
const kibibyte = 1024
const greetsWithinMs = 250
const looksAtEach = 60
/** A sender whose mail was deferred retries. */
const tries = 20

const returnPaths = openReturnPaths(openSecrets(secret, systemRandom))
const returnPathOf = (emailId: string) => returnPaths.make(emailId, `rp.${hostname}`, Date.now())
const ids = openIds(systemRandom)

let service: ServiceProcess
let ports: { smtp: number; submission: number; submissionTls: number }
let listeners: (readonly [port: number, tls: boolean])[]
beforeAll(async () => {
  ports = { smtp: await freePort(), submission: await freePort(), submissionTls: await freePort() }
  listeners = [
    [ports.smtp, false],
    [ports.submission, false],
    [ports.submissionTls, true],
  ]
  service = await startServiceProcess({
    POSTRIDER_SECRET: secret,
    POSTRIDER_HOSTNAME: hostname,
    POSTRIDER_SMTP_HOST: '127.0.0.1',
    POSTRIDER_SMTP_PORT: String(ports.smtp),
    POSTRIDER_SUBMISSION_PORT: String(ports.submission),
    POSTRIDER_SUBMISSION_TLS_PORT: String(ports.submissionTls),
  })
}, 120_000)
afterAll(() => service[Symbol.asyncDispose]())

/** Time from the first octet of the connection to the greeting. */
const greetingMs = (port: number, tls: boolean) =>
  new Promise<number>((resolve, reject) => {
    const beganMs = performance.now()
    const socket = tls ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connectTcp(port, '127.0.0.1')
    socket.once('error', reject)
    socket.once('data', () => {
      resolve(performance.now() - beganMs)
      socket.end('QUIT\r\n')
    })
  })

async function mail(to: readonly string[], octets: Buffer): Promise<string> {
  await using client = await smtpClient(ports.smtp)
  await client.reply()
  await client.say('EHLO mx.evil.example')
  await client.say('MAIL FROM:<>')
  for (const one of to) expect(await client.say(`RCPT TO:<${one}>`)).toMatch(/^250/)
  await client.say('DATA')
  client.write(octets)
  client.write('\r\n.\r\n')
  return await client.reply()
}

test('every port greets within 250 ms while a stranger sends the worst mail there is, and a real bounce is taken meanwhile', async () => {
  const body = { from: 'shop@simulator.test', to: ['ann@simulator.test'], subject: 's', text: 't' }
  const answer = await service.call('POST', '/emails', body, service.testKey)
  const { id } = answer.body.data as { id: string }
  const statusOf = async () => (await service.call('GET', `/emails/${id}`, undefined, service.testKey)).body.data as { status: string }
  await expect.poll(async () => (await statusOf()).status, { timeout: 20_000 }).toBe('sent')

  for (const [port, tls] of listeners)
    await expect.poll(() => greetingMs(port, tls).catch(() => undefined), { timeout: 60_000 }).toEqual(expect.any(Number))
  const quiet = await greetings(10)
  let isOver = false
  const taken: string[] = []
  const strangers = [
    passedOnAsText(100 * kibibyte),
    attachedAsText(8)(407 * kibibyte),
    recipients(100 * kibibyte),
    attachedAsText(195)(19 * kibibyte ** 2),
  ]
  const sending = strangers.map(async (octets) => {
    const to = ['fbl@rp.mail.postrider.test', ...Array.from({ length: 9 }, () => returnPathOf(ids.emailId(Date.now())))]
    while (!isOver) taken.push(await mail(to, octets))
  })
  await wait(1_000)

  const bounce = `From: mailer-daemon@mx.example\r\nMessage-ID: <1@mx.example>\r\nContent-Type: message/delivery-status\r\n\r\nFinal-Recipient: rfc822; ann@simulator.test\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no such user`
  const bounced = bring([returnPathOf(id)], Buffer.from(bounce))
  const disturbed = await greetings(looksAtEach)
  expect(await bounced).toBe('250 2.6.0 Ok')
  expect((await statusOf()).status).toBe('bounced')
  isOver = true
  await Promise.all(sending)
  expect(taken.length).toBeGreaterThanOrEqual(strangers.length)
  for (const reply of taken) expect(reply).toMatch(/^(?:250 2\.6\.0|451 4\.3\.0) /)
  // The mail port waits before its greeting, and the machine has other work. Only the delay added by the stranger counts.
  for (const at of listeners.keys()) expect(middleOf(disturbed, at) - middleOf(quiet, at)).toBeLessThan(greetsWithinMs)
}, 240_000)

/** Measures each port in turn, `times` times. */
async function greetings(times: number): Promise<number[][]> {
  const found: number[][] = listeners.map(() => [])
  for (let looked = 0; looked < times; looked++)
    for (const [at, [port, tls]] of listeners.entries()) found[at]?.push(await greetingMs(port, tls))
  return found
}

const middleOf = (found: number[][], at: number) =>
  found[at]?.toSorted((a, b) => a - b)[Math.floor((found[at]?.length ?? 0) / 2)] ?? Number.NaN

async function bring(to: readonly string[], octets: Buffer): Promise<string> {
  let reply = ''
  for (let tried = 0; tried < tries && !reply.startsWith('250'); tried++) reply = await mail(to, octets)
  return reply
}
