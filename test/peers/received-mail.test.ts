/**
 * Mail for routes from other programs: Postfix's smtp-source loses no message, swaks finds no open relay, Python's authheaders judges
 * generated messages in the same way, and dkimpy verifies the ARC sets of copies.
 */

import { execFile, execFileSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import { dnsText, makeRsaKey, signaturesOf } from '#dkim'
import type { Domain } from '#domains'
import { authenticate } from '../../src/received-mail/authenticate.ts'
import { readReceivedMail } from '../../src/received-mail/read-received-mail.ts'
import { extendableStatus, sealOf } from '../../src/received-mail/seal-copy.ts'
import { authenticationSamples, txtResolver } from '../support/authentication-samples.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const run = promisify(execFile)
const smtpSource = '/usr/sbin/smtp-source'
const answers = (program: string, ...words: string[]) => {
  try {
    execFileSync(program, words, { stdio: 'pipe' })
    return true
  } catch {
    return false
  }
}
const hasSwaks = answers('swaks', '--version')
const python = '/usr/bin/python3'
const hasAuthheaders = answers(python, '-c', 'import authheaders, nacl, spf')

let service: Service
beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    roles: ['inbound'],
    smtpBounds: { errors: 1000 },
    receiving: { resolver: txtResolver(new Map()) },
  })
  await service.addDomain(service.tenantId, 'peers.test')
  const { status } = await service.call('POST', '/routes', { key: service.liveKey, body: { address: 'help@peers.test' } })
  expect(status).toBe(201)
})
afterAll(() => service.stop())

const rows = sql<{ count: number }>`
  select count(*)::integer as count
  from received_messages
  where tenant_id = $1`
const stored = async () => (await service.db.first(rows, [service.tenantId]))?.count

test.skipIf(!existsSync(smtpSource))('four hundred messages of smtp-source are stored, each once', { timeout: 90_000 }, async () => {
  const before = (await stored()) ?? 0
  const words = ['-s', '10', '-m', '400', '-l', '3000', '-f', 'a@example.net', '-t', 'help@peers.test', '-M', 'mx.example.net']
  await run(smtpSource, [...words, `127.0.0.1:${service.ports.smtp}`], { timeout: 80_000 })
  expect(await stored()).toBe(before + 400)
})

test.skipIf(!hasSwaks)('swaks finds no form of address that is relayed', { timeout: 60_000 }, async () => {
  const before = await stored()
  const attempt = (to: string, ...more: string[]) =>
    run('swaks', ['--server', `127.0.0.1:${service.ports.smtp}`, '--from', 'a@example.net', '--to', to, '--quit-after', 'RCPT', ...more], {
      timeout: 20_000,
    }).then(
      () => 'accepted',
      () => 'refused',
    )
  const forms = [
    'victim@example.net',
    'victim%example.net@peers.test',
    'example.net!victim@peers.test',
    '@peers.test:victim@example.net',
    '"victim@example.net"@peers.test',
    'help@peers.test@example.net',
    'victim@[127.0.0.1]',
    'help@sub.peers.test',
    'postmaster@peers.test',
  ]
  for (const form of forms) expect(await attempt(form), form).toBe('refused')
  expect(await attempt('victim@example.net', '--from', 'help@peers.test')).toBe('refused')
  expect(await attempt('help@peers.test')).toBe('accepted')
  expect(await stored()).toBe(before)
})

test.skipIf(!hasAuthheaders)("the results of generated messages are those of Python's authheaders", { timeout: 180_000 }, async () => {
  const { samples, txt } = await authenticationSamples(200)
  const folder = await mkdtemp(join(tmpdir(), 'postrider-authheaders-'))
  try {
    const file = join(folder, 'samples.json')
    const given = samples.map(({ octets, client, greeting, sender }) => ({ client, greeting, sender, raw: octets.toString('base64') }))
    await writeFile(file, JSON.stringify({ txt: Object.fromEntries(txt), samples: given }))
    const { stdout } = await run(python, ['test/peers/judge-mail.py', file], { timeout: 150_000, maxBuffer: 10_000_000 })
    const judged = JSON.parse(stdout) as { spf: string; dkim: string[]; dmarc: string }[]
    for (const [nth, sample] of samples.entries()) {
      const signatures = signaturesOf(sample.octets, systemClock.nowMs())
      const deps = { resolver: txtResolver(txt), clock: systemClock, hostname: 'house.test' }
      const { spf, dkim, dmarc } = await authenticate(deps, { ...sample, signatures })
      const ours = { spf: spf.result, dkim: dkim.map(({ result }) => result), dmarc: dmarc.result }
      expect(ours, sample.octets.toString()).toEqual(judged[nth])
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})

test.skipIf(!hasAuthheaders)('dkimpy passes the ARC sets of copies, and Postrider continues its chain', { timeout: 180_000 }, async () => {
  const [own, other] = [await makeRsaKey(), await makeRsaKey()]
  const txt = new Map([
    ['pr-a._domainkey.peers.test', [dnsText('rsa', own.publicKey)]],
    ['s._domainkey.list.test', [dnsText('rsa', other.publicKey)]],
  ])
  const key = { domain: 'peers.test', selector: 'pr-a', algorithm: 'rsa' as const, privateKey: createPrivateKey(own.privateKey) }
  const deps = { resolver: txtResolver(txt), clock: systemClock, hostname: 'house.test' }
  const domains = { signingKeys: async () => [key] }
  const sealed = async (octets: Buffer): Promise<Buffer> => {
    const { arc, facts, signatures = [] } = readReceivedMail(octets, systemClock.nowMs())
    const status = await extendableStatus(deps, arc)
    if (!arc || !status) throw new Error('not sealable')
    const given = { client: '192.0.2.1', greeting: 'mx.example.net', sender: 'a@example.net', from: facts.from, signatures }
    const sealing = { arc, status, authentication: await authenticate(deps, given), isBounce: false }
    return Buffer.concat([Buffer.from(await sealOf({ ...deps, domains }, { tenantId: 'main', id: 1 } as Domain, sealing)), octets])
  }
  const folder = await mkdtemp(join(tmpdir(), 'postrider-arc-'))
  const judge = async (messages: readonly Buffer[]) => {
    const file = join(folder, 'messages.json')
    const seal = { raw: plain.toString('base64'), key: other.privateKey }
    const records = Object.fromEntries([...txt].map(([name, [text]]) => [name, text]))
    await writeFile(file, JSON.stringify({ txt: records, verify: messages.map((one) => one.toString('base64')), seal }))
    const { stdout } = await run(python, ['test/peers/judge-arc.py', file], { timeout: 150_000 })
    const { statuses, sealed } = JSON.parse(stdout) as { statuses: string[]; sealed: string }
    return { statuses, sealed: Buffer.from(sealed, 'base64') }
  }
  const plain = Buffer.from(
    'From: Ann <ann@example.net>\r\nTo: help@peers.test\r\nSubject: A  chain\r\n of servers\r\nMessage-ID: <1@example.net>\r\n\r\nHello  there\r\n\r\n',
  )
  const tampered = (octets: Buffer) => Buffer.from(octets.toString().replace('Hello', 'hello'))
  try {
    const first = await sealed(plain)
    const { statuses, sealed: theirs } = await judge([first, tampered(first)])
    expect(statuses).toEqual(['pass', 'fail'])
    const second = await sealed(theirs)
    expect(second.toString()).toMatch(/^ARC-Seal: i=2; a=rsa-sha256; cv=pass;/)
    const failed = await sealed(tampered(theirs))
    expect(failed.toString()).toMatch(/^ARC-Seal: i=2; a=rsa-sha256; cv=fail;/)
    expect((await judge([second, tampered(second), failed])).statuses).toEqual(['pass', 'fail', 'ended'])
  } finally {
    await rm(folder, { recursive: true })
  }
})
