import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isConnectionSpent, isShutdown, openProviders, type Providers } from './providers.ts'

let folder: string
let providers: Providers
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'providers-'))
  const file = join(folder, 'rules.json')
  const rules = [
    { name: 'partner', mx: ['mx.partner.example'], connections: 2, rate: 5 },
    { name: 'neighbour', mx: ['neighbour.example'], connections: 3 },
    { name: 'deeper', mx: ['deep.neighbour.example'], connections: 4 },
  ]
  await writeFile(file, JSON.stringify({ providers: rules }))
  providers = openProviders(file)
})
afterAll(() => rm(folder, { recursive: true }))

describe('the provider of a mail server', () => {
  test.each([
    ['mx.partner.example', 'partner.example', 'partner'],
    ['a.mx.partner.example', 'partner.example', 'partner'],
    ['mail.partner.example', 'partner.example', 'partner.example'],
    ['mx.neighbour.example', 'neighbour.example', 'neighbour'],
    ['mx.deep.neighbour.example', 'neighbour.example', 'deeper'],
    ['d1.a.ess.barracuda.com', 'barracuda.com', 'barracuda'],
    ['aspmx.l.google.com', 'google.com', 'gmail'],
    ['mx1.small.example', 'small.example', 'small.example'],
  ])('%s is named by the deepest rule, else by its domain %s', (host, domain, name) => {
    expect(providers.of(host, domain)).toMatchObject({ name, isNamed: name !== domain })
  })

  test('has the numbers of its rule, else the usual ones', () => {
    expect(providers.of('mx.partner.example', 'partner.example')).toMatchObject({ connections: 2, rate: 5 })
    expect(providers.of('mail.partner.example', 'partner.example')).toMatchObject({ connections: 20, rate: null })
  })
})

describe('the provider of a domain', () => {
  const route = (...hosts: string[]) => {
    const [firstHost = ''] = hosts
    const site = firstHost.split('.').slice(-2).join('.')
    return { hosts: hosts.map((host) => ({ host, preference: 10 })), firstHost, site }
  }

  test.each([
    [['aspmx.l.google.com', 'aspmx2.googlemail.com'], 'gmail'],
    [['mx1.small.example', 'mx2.small.example'], 'small.example'],
    [['aspmx.l.google.com', 'mx.evil.test'], 'evil.test+gmail'],
    [['mx.evil.test', 'aspmx.l.google.com'], 'evil.test+gmail'],
    [['a.a.test', 'b.b.test', 'c.c.test', 'd.d.test', 'e.e.test'], 'a.test+b.test+c.test+others'],
  ])('of %j is %s', (hosts, name) => {
    expect(providers.ofRoute(route(...hosts))).toMatchObject({ name, isNamed: name === 'gmail' })
  })

  test('without MX records is the domain itself', () => {
    const itself = { hosts: [{ host: 'mail.a.test', preference: 0 }], firstHost: 'mail.a.test', site: 'mail.a.test' }
    expect(providers.ofRoute(itself).name).toBe('mail.a.test')
  })

  test('that mixes several is paused with each', () => {
    expect(providers.among(route('aspmx.l.google.com', 'mx.evil.test')).map(({ name }) => name)).toEqual(['evil.test', 'gmail'])
  })
})

describe('a temporary refusal', () => {
  const isThrottle = (text: string, provider = 'gmail') =>
    providers.isThrottle({ code: Number(text.slice(0, 3)), enhanced: null, text }, provider)

  test.each([
    '421 4.7.0 Try again later, closing connection. - gsmtp',
    '421-4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address',
    '450 4.2.1 Peak SMTP relay limit exceeded for customer. This is a temporary error. - gsmtp',
    '450 4.7.1 Message rate limit exceeded, slow down',
    '421 4.3.2 too many connections',
  ])('because of the number or speed of the mail shapes the provider: %s', (text) => {
    expect(isThrottle(text)).toBe(true)
  })

  test.each([
    '450 4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time. - gsmtp',
    '450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered.',
    '450 4.2.1 The recipient has exceeded message rate limit. Try again later.',
    '421 4.2.2 The email account that you tried to reach is over quota',
    '450 4.7.1 greylisted, try again later',
  ])('of one recipient does not: %s', (text) => {
    expect(isThrottle(text)).toBe(false)
  })

  test.each([
    ['421 4.3.2 Server shutting down', true],
    ['421 mx.a.test Service shutdown, closing transmission channel', true],
    ['421 4.3.2 closing', false],
    ['421 4.7.0 Too many messages, shutting down the connection', false],
    ['421 4.3.2 The host of this mailbox is shutting down', false],
    ['451 4.3.2 Server shutting down', false],
  ])('because the server shuts down is one of all mail, and not of number or speed: %s %s', (text, expected) => {
    expect(isShutdown({ code: Number(text.slice(0, 3)), enhanced: null, text })).toBe(expected)
    if (expected) expect(isThrottle(text)).toBe(false)
  })

  test.each([
    '421 4.7.26 This mail has been rate limited because it is unauthenticated. Gmail requires all senders to authenticate with either SPF or DKIM. - gsmtp',
    '421 4.7.32 Your email has been rate limited because the From: header in this message is not aligned with the SPF or DKIM domain. - gsmtp',
    '451 4.1.8 Domain of sender address a@shop.example.com does not resolve',
  ])("of one sender's domain does not: %s", (text) => {
    expect(isThrottle(text)).toBe(false)
  })
})

describe('a refusal at MAIL or RCPT', () => {
  const isSpent = (text: string, stage: 'mail' | 'rcpt' | 'final' = 'mail') =>
    isConnectionSpent({ state: 'refused', stage, reply: { code: Number(text.slice(0, 3)), enhanced: null, text } })

  test.each([
    '421 Max message per connection reached, closing transmission channel',
    '421 Too many messages in this session',
    '421 too many messages in this connection',
    '452 #4.x.x Too many messages for this session',
    '452 4.5.3 Too many messages for this session',
    '421 4.7.0 Maximum number of messages per connection exceeded',
    '450 4.7.1 Message limit exceeded for this SMTP session',
  ])('because the connection has had its number of messages concerns only the connection: %s', (text) => {
    expect(isSpent(text)).toBe(true)
    expect(isSpent(text, 'rcpt')).toBe(true)
    expect(isSpent(text, 'final')).toBe(false)
  })

  test.each([
    '421 4.3.2 too many connections',
    '421 4.7.0 Too many messages, shutting down the connection',
    '421 4.7.0 Too many concurrent SMTP connections; please try again later.',
    '450 4.7.1 Message rate limit exceeded, slow down',
    '452 4.5.3 Too many recipients for this session',
    '421 4.7.28 too many messages from your address this hour, try another connection later',
    '554 5.7.1 Too many messages for this session',
  ])('for another reason does not: %s', (text) => {
    expect(isSpent(text)).toBe(false)
  })
})
