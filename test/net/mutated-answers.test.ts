/** DNS responses changed on the way, octet by octet, from a seed. DNS_ANSWERS sets how many. */
import { createSocket, type Socket } from 'node:dgram'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Answer, decode, encode, type RecordType } from 'dns-packet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { openDnssec, openResolver } from '#net'
import { randomFrom } from '../support/mutate-message.ts'

const answers = Number(process.env['DNS_ANSWERS'] ?? 1000)
const atOnce = 50
const random = randomFrom(20_261_121)

/** Memory still referenced, without garbage: that grows to hundreds of MiB before V8 collects it. */
function heldOctets(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Timers fire twenty times as early as the machine's. */
const impatient: Clock = { ...systemClock, after: (delayMs, action) => systemClock.after(delayMs / 20, action) }

/**
 * Keeps the header and the question, so that the response is accepted as one. Changes up to eight octets after them, and may cut the end.
 */
function changed(octets: Buffer, questionEnd: number): Buffer {
  const now = Buffer.from(octets)
  const length = now.length - questionEnd
  for (let change = Math.ceil(random() * 8); change > 0 && length > 0; change--)
    now[questionEnd + Math.floor(random() * length)] = Math.floor(random() * 256)
  // Sometimes changes the record counts too.
  if (random() < 0.3) now[6 + Math.floor(random() * 6)] = Math.floor(random() * 256)
  return random() < 0.3 ? now.subarray(0, questionEnd + Math.floor(random() * (length + 1))) : now
}

function recordsFor(name: string, type: RecordType): Answer[] {
  if (type === 'MX') return [10, 20].map((preference) => ({ name, type, data: { preference, exchange: `mx${preference}.${name}` } }))
  if (type === 'TXT') return [{ name, type, data: ['v=spf1 -all', 'x'.repeat(200)] }]
  if (type === 'A') return [{ name, type, data: '192.0.2.1' }]
  if (type === 'AAAA') return [{ name, type, data: '2001:db8::1' }]
  if (type === 'TLSA') return [{ name, type, data: { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.alloc(32, 7) } }]
  return [
    { name, type: 'CNAME', data: `other.${name}` },
    { name: `other.${name}`, type: 'A', data: '192.0.2.2' },
  ]
}

let server: Socket
beforeAll(async () => {
  server = createSocket('udp4')
  server.on('message', (octets, from) => {
    const { id = 0, questions: [question] = [] } = decode(octets)
    if (!question) return
    const answer = encode({ type: 'response', id, questions: [question], answers: recordsFor(question.name, question.type) })
    server.send(changed(answer, encode({ type: 'response', id, questions: [question] }).length), from.port, from.address)
  })
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
})
afterAll(() => new Promise<void>((resolve) => void server.close(resolve)))

test('always: after any answers, each question ends with an answer of the four kinds, and nothing is kept', async () => {
  const servers = [`127.0.0.1:${server.address().port}`]
  const resolver = openResolver({ servers, clock: systemClock, ids: { random: Math.random }, queryMs: 100 })
  const dnssec = openDnssec({ servers, trusted: [], clock: impatient, random })
  if (!dnssec) throw new Error('a loopback resolver is not believed')
  const questions: ((name: string) => Promise<{ kind: string }>)[] = [
    (name) => resolver.mx(name),
    (name) => resolver.txt(name),
    (name) => resolver.addresses(name),
    (name) => resolver.cname(name),
    (name) => dnssec.mx(name),
    (name) => dnssec.addresses(name),
    (name) => dnssec.tlsa(name),
  ]
  const before = heldOctets()
  const kinds = new Map<string, number>()
  let next = 0
  const ask = async () => {
    while (next < answers) {
      const nth = next++
      const question = questions[nth % questions.length] as (typeof questions)[number]
      const { kind } = await question(`n${nth}.example.org`)
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, ask))
  expect([...kinds.keys()].filter((kind) => !['found', 'none', 'nxdomain', 'trouble'].includes(kind))).toEqual([])
  expect(kinds.get('found')).toBeGreaterThan(0)
  expect(kinds.get('trouble')).toBeGreaterThan(0)
  expect([...kinds.values()].reduce((sum, count) => sum + count, 0)).toBe(answers)
  // Seven caches of 10,000 responses hold some 16 MiB.
  expect(heldOctets() - before).toBeLessThan(48 * 1_048_576)
}, 600_000)
