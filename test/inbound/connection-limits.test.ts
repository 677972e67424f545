/** Connections to an SMTP port: one network leaves places to others, and a client without a login cannot stay. */
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, silentLog, systemClock } from '#base'
import { type MemoryBudget, openMemoryBudget } from '../../src/inbound/memory-budget.ts'
import { type Backend, type ListenerLimits, openListener } from '../../src/inbound/smtp-listener.ts'
import { ReplyError } from '../../src/inbound/smtp-replies.ts'
import { testCertificate } from '../support/certificate.ts'
import { type SmtpClient, smtpClient } from '../support/smtp-client.ts'
import { handMoved } from '../support/test-clock.ts'

const times = { firstMs: 1000, stepMs: 5000, messageMs: 5000, sessionMs: 1_000_000 }
const usual = { largestOctets: 1000, recipients: 50, errors: 100, greetAtOnce: true, ...times }

async function listen(
  tls: 'implicit' | 'starttls',
  backend: Partial<Backend<string>>,
  bounds: Partial<ListenerLimits>,
  clock: Clock = systemClock,
  budget: MemoryBudget = openMemoryBudget(),
) {
  const all = { sender: async () => {}, recipient: async () => {}, message: async () => 'Ok', ...backend }
  const facts = { host: '127.0.0.1', port: 0, setting: 'PORT', hostname: 'mail.example.test', certificate: testCertificate, log: silentLog }
  const limits = { connections: 100, connectionsPerNetwork: 100, ...usual, ...bounds }
  const listener = await openListener<string>({ ...facts, tls, backend: all, bounds: limits, budget, clock })
  onTestFinished(() => listener.stop())
  return listener
}

test('one network gets no more connections than are left for others', async () => {
  const { port } = await listen('starttls', {}, { connections: 4, connectionsPerNetwork: 4 })
  const greetingOf = (localAddress: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).once('error', reject)
      onTestFinished(() => void socket.destroy())
      socket.once('data', (octets) => resolve(octets.toString().slice(0, 3)))
    })
  const greetings: string[] = []
  for (const address of ['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.3'])
    greetings.push(await greetingOf(address))
  expect(greetings).toEqual(['220', '220', '421', '220', '421', '220'])
})

test('a message keeps its memory while the work on it goes on, also if its client was answered before', async () => {
  const clock = handMoved()
  const budget = openMemoryBudget(1000)
  const [taken, work] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  const message = () => {
    taken.resolve()
    return work.promise
  }
  const { port } = await listen('starttls', { message }, { stepMs: 500_000 }, clock, budget)
  const client = await smtpClient(port)
  onTestFinished(() => client.destroy())
  await client.reply()
  for (const command of ['EHLO x.test', 'MAIL FROM:<a@x.test>', 'RCPT TO:<b@x.test>', 'DATA']) await client.say(command)
  client.write(`A: b\r\n\r\n${'x'.repeat(900)}\r\n.\r\n`)
  await taken.promise
  clock.moveMs(40_000)
  expect(await client.reply()).toMatch(/^451/)
  const other = budget.open('192.0.2.1', () => {})
  expect(other.take(500)).toBe(false)
  work.resolve('Ok')
  await expect.poll(() => other.take(1000)).toBe(true)
})

test('a wrong login does not start the time limit again, also if the answer takes longer than it', async () => {
  const clock = handMoved()
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const authenticate = async (_user: string, key: string) => {
    if (key === 'slow') {
      asked.resolve()
      await answered.promise
    }
    if (key !== 'right') throw new ReplyError(535, '5.7.8', 'Authentication failed')
    return key
  }
  const { port } = await listen('implicit', { authenticate }, {}, clock)
  const login = (key: string) => `AUTH PLAIN ${Buffer.from(`\0user\0${key}`).toString('base64')}`
  const greeted = async () => {
    const client = await smtpClient(port, 'implicit')
    onTestFinished(() => client.destroy())
    await client.reply()
    await client.say('EHLO x.test')
    return client
  }
  const member = await greeted()
  expect(await member.say(login('right'))).toMatch(/^235/)
  const stranger = await greeted()
  expect(await stranger.say(login('wrong'))).toMatch(/^535/)
  clock.moveMs(600)
  expect(await stranger.say(login('wrong'))).toMatch(/^535/)
  clock.moveMs(600)
  expect(await stranger.say('NOOP')).toBe('421 4.4.2 Too slow, closing connection')
  expect(await member.say('NOOP')).toMatch(/^250/)

  const slow = await greeted()
  slow.write(`${login('slow')}\r\n`)
  await asked.promise
  clock.moveMs(1200)
  answered.resolve()
  expect(await slow.reply()).toMatch(/^535/)
  expect(await slow.say('NOOP')).toBe('421 4.4.2 Too slow, closing connection')
})

test('a client that sends no message has to go, however many commands it sends; an accepted message starts its time again', async () => {
  const clock = handMoved()
  const message = async (octets: Buffer) => {
    if (octets.includes('unwanted')) throw new ReplyError(550, '5.7.1', 'Unwanted')
    return 'Ok'
  }
  const { port } = await listen('starttls', { message }, { sessionMs: 12_000 }, clock)
  const client = async () => {
    const opened = await smtpClient(port)
    onTestFinished(() => opened.destroy())
    await opened.reply()
    await opened.say('EHLO x.test')
    return opened
  }
  const [idle, refused, sender] = [await client(), await client(), await client()]
  const all = [idle, refused, sender]
  const send = async (one: SmtpClient, text: string) => {
    for (const command of ['MAIL FROM:<a@x.test>', 'RCPT TO:<b@x.test>', 'DATA']) expect(await one.say(command)).toMatch(/^(?:250|354)/)
    return one.say(`A: b\r\n\r\n${text}\r\n.`)
  }
  const reset = async (one: SmtpClient) => {
    expect(await one.say('MAIL FROM:<>')).toMatch(/^250/)
    expect(await one.say('RSET')).toMatch(/^250/)
  }
  for (const one of all) await reset(one)
  clock.moveMs(4000)
  for (const one of all) await reset(one)
  clock.moveMs(4000)
  await reset(idle)
  expect(await send(refused, 'unwanted')).toMatch(/^550/)
  expect(await send(sender, 'wanted')).toMatch(/^250/)
  clock.moveMs(4500)
  for (const one of [idle, refused]) expect(await one.reply()).toBe('421 4.4.2 Too slow, closing connection')
  await reset(sender)
  clock.moveMs(4500)
  await reset(sender)
  clock.moveMs(4500)
  expect(await sender.reply()).toMatch(/^421/)
})
