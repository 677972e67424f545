/** One site without the rest of Postrider, against a real socket, on a clock whose timers fire a little early, as the machine's do. */
import type { Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { type Clock, silentLog, systemClock } from '#base'
import { openResolver } from '#net'
import type { FindingFor } from '../../src/delivery/carry.ts'
import { type Destination, type DestinationDeps, openDestination } from '../../src/delivery/destination.ts'
import { type Job, jobsOf } from '../../src/delivery/job.ts'
import { type End, outletOf } from '../../src/delivery/outlet.ts'
import { type MxEvent, startFakeMx } from '../support/fake-mx.ts'
import { startRudePeer } from '../support/rude-peer.ts'

const early: Clock = { ...systemClock, after: (delayMs, action) => systemClock.after(delayMs - 5, action) }
const data = Buffer.from('From: a@house.test\r\n\r\nHello\r\n')

const openShape: End['shape'] = {
  connect: () => Promise.resolve({ release: () => undefined }),
  turn: () => Promise.resolve(),
  isWanted: () => Promise.resolve(false),
  isPaced: false,
  restMs: 0,
  mostWaiting: 100,
  accepted: () => undefined,
  throttled: () => undefined,
  distrusted: () => undefined,
  refused: () => undefined,
  isScarce: true,
  isThrottle: () => false,
}

const prepared: DestinationDeps['prepare'] = () =>
  Promise.resolve({
    returnPathOf: null,
    messageId: '<a@house.test>',
    acceptedAtMs: 0,
    signed: { signatures: '', data },
    markOf: () => '',
    needs8bit: false,
    needsSmtpUtf8: false,
  })

function destinationWith(more: Partial<DestinationDeps>, shape = openShape): Destination {
  const end: End = { source: undefined, ehloName: 'mail.house.test', shape, warmUp: undefined }
  return openDestination('one.example', {
    clock: early,
    log: silentLog,
    resolver: openResolver({ servers: ['127.0.0.1:9'], clock: systemClock, ids: { fraction: Math.random } }),
    prepare: prepared,
    release: () => undefined,
    mayFinish: () => true,
    done: () => undefined,
    abandoned: () => undefined,
    surplus: () => undefined,
    isLastTry: () => false,
    putOff: () => undefined,
    outlet: { four: end, six: end, restMs: 0, mostWaiting: 100, isScarce: true },
    ...more,
  })
}

const [job] = jobsOf([
  {
    tenantId: 't',
    emailId: 'e',
    contentId: 'e',
    shard: 0,
    epoch: 1,
    recipient: 'ann@one.example',
    destination: 'one.example',
    failures: 0,
    manual: false,
    test: false,
    sizeOctets: data.length,
    heldBecause: null,
    aheadMs: 0,
  },
]) as [Job]

const wayTo = (port: number): Parameters<Destination['add']>[1] => ({
  hosts: [{ host: '127.0.0.1', preference: 0, tls: 'opportunistic', policy: 'opportunistic' }],
  port,
  auth: undefined,
  guard: { allows: () => true },
})

test('mail that found no slot for a connection is sent when there is one, though nothing new comes', async () => {
  await using mx = await startFakeMx()
  let denials = 3
  const connect = () => Promise.resolve(denials-- > 0 ? undefined : { release: () => undefined })
  const destination = destinationWith({}, { ...openShape, connect })
  destination.add({ ...job }, wayTo(mx.port))
  expect(await mx.waitFor(1, 10_000)).toHaveLength(1)
  destination.destroy()
})

test('mail whose connection breaks before anything was said of it, while the process stops, is given back', async () => {
  const abandoned: Job[] = []
  let hasStopped = false
  await using mx = await startFakeMx({
    script({ stage }) {
      if (stage !== 'mail') return undefined
      destination.close()
      expect(destination.takeBack()).toEqual([])
      hasStopped = true
      return { close: true }
    },
  })
  const destination = destinationWith({ abandoned: (one) => abandoned.push(one) })
  destination.add({ ...job }, wayTo(mx.port))
  await vi.waitFor(() => expect(abandoned.map(({ contentId }) => contentId)).toEqual(['e']), 10_000)
  expect(hasStopped).toBe(true)
  destination.destroy()
})

/** A site that backs off after a reputation block until `isRested` is called, and 60 emails for it. */
function untrusted(more: Partial<End['shape']> = {}) {
  const causes: string[] = []
  const done: FindingFor[] = []
  const back: Job[] = []
  let restMs = 0
  const shape = {
    ...openShape,
    ...more,
    get restMs() {
      return restMs
    },
    distrusted(cause: string) {
      causes.push(cause)
      restMs = 30_000
    },
  }
  const end: End = { source: undefined, ehloName: 'mail.house.test', shape, warmUp: undefined }
  const another = () =>
    destinationWith({
      outlet: outletOf({ four: end, six: end }),
      done: (result) => done.push(result),
      surplus: (jobs) => back.push(...jobs),
    })
  const destination = another()
  const jobs = Array.from({ length: 60 }, (_, n): Job => ({ ...job, contentId: `e${n}` }))
  const isRested = () => {
    restMs = 0
  }
  return { destination, another, jobs, causes, done, back, isRested }
}

const atTheDoor = [
  ['connect', '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org'],
  ['connect', '450 4.7.1 Client host [192.0.2.1] is listed at bl.spamcop.net'],
  ['ehlo', '550 5.7.1 Your IP address has a poor reputation'],
  ['connect', '554 mx.gmx.net Bad DNS PTR resource record'],
] as const

test.each(atTheDoor)(
  'of 60 emails refused at %s by "%s" one is put off, and the others go when the peer has rested',
  async (stage, reply) => {
    let isFriendly = false
    const script = (event: MxEvent) => (event.stage === stage && !isFriendly ? reply : undefined)
    await using mx = await startFakeMx({ script })
    const { destination, jobs, causes, done, back, isRested } = untrusted()
    for (const one of jobs) destination.add(one, wayTo(mx.port))
    await vi.waitFor(() => expect(back).toHaveLength(59), 10_000)
    expect(causes).toEqual([reply])
    expect(done.map(({ findings }) => findings[0]?.kind)).toEqual(['temporary'])
    expect(mx.connections).toBe(1)

    isFriendly = true
    isRested()
    for (const one of back.splice(0)) destination.add(one, wayTo(mx.port))
    expect(await mx.waitFor(59, 10_000)).toHaveLength(59)
    await vi.waitFor(() => expect(done).toHaveLength(60), 10_000)
    expect(done.slice(1).every(({ findings }) => findings[0]?.kind === 'accepted')).toBe(true)
    expect(back).toEqual([])
    destination.destroy()
  },
)

test('a connection more that is refused for our reputation costs no email', async () => {
  await using mx = await startFakeMx({ script: ({ stage, session }) => (stage === 'connect' && session > 1 ? atTheDoor[0][1] : undefined) })
  const { destination, jobs, causes, done, back } = untrusted()
  for (const one of jobs) destination.add(one, wayTo(mx.port))
  await vi.waitFor(() => expect(done.length + back.length).toBe(60), 10_000)
  await vi.waitFor(() => expect(causes).toContain(atTheDoor[0][1]), 10_000)
  expect(done.every(({ findings }) => findings[0]?.kind === 'accepted')).toBe(true)
  destination.destroy()
})

test('two destinations of a provider that are refused for our reputation at once cost one email together', async () => {
  await using mx = await startFakeMx({ script: ({ stage }) => (stage === 'connect' ? atTheDoor[0][1] : undefined) })
  const { destination, another, jobs, done, back } = untrusted()
  const both = [destination, another()]
  for (const [n, one] of jobs.entries()) both[n % 2]?.add(one, wayTo(mx.port))
  await vi.waitFor(() => expect(done.length + back.length).toBe(60), 10_000)
  expect(done).toHaveLength(1)
  expect(mx.connections).toBe(2)
  for (const one of both) one.destroy()
})

test('a host that blocks our address makes us rest, though another one is only out of reach', async () => {
  await using mx = await startFakeMx({ script: ({ stage }) => (stage === 'connect' ? atTheDoor[0][1] : undefined) })
  const { destination, jobs, causes, done, back } = untrusted()
  const way = wayTo(mx.port)
  const [host] = way.hosts
  for (const one of jobs) destination.add(one, { ...way, hosts: host ? [host, { ...host, host: '127.0.0.2', preference: 1 }] : [] })
  await vi.waitFor(() => expect(back).toHaveLength(59), 10_000)
  expect(causes).toEqual([atTheDoor[0][1]])
  expect(done.map(({ findings }) => findings[0]?.kind)).toEqual(['temporary'])
  destination.destroy()
})

/** The peer sends the reply before MAIL once, to the first connection. Later connections meet a server without faults. */
const beforeMail = fc.record({
  stage: fc.constantFrom('connect' as const, 'ehlo' as const),
  code: fc.constantFrom(421, 450, 451, 500, 501, 502, 503, 504, 521, 530, 550, 554),
  text: fc.constantFrom(
    '5.5.2 Invalid domain name',
    '5.1.1 no such user',
    'Error',
    '5.7.1 go away',
    '4.3.2 not now',
    'Mailbox unavailable',
  ),
})

test('a refused greeting or EHLO costs no email its life, and is shown only by the email that it was said to', async () => {
  await fc.assert(
    fc.asyncProperty(beforeMail, async ({ stage, code, text }) => {
      await using mx = await startFakeMx({
        script: (event) => (event.stage === stage && event.session === 1 ? `${code} ${text}` : undefined),
      })
      const done: FindingFor[] = []
      const back: Job[] = []
      const destination = destinationWith({ done: (result) => done.push(result), surplus: (jobs) => back.push(...jobs) })
      for (let n = 0; n < 20; n++) destination.add({ ...job, contentId: `e${n}` }, wayTo(mx.port))
      await vi.waitFor(() => expect(done.length + back.length).toBe(20), 10_000)
      expect(done.filter(({ findings }) => findings[0]?.kind === 'permanent')).toEqual([])
      expect(done.filter(({ findings }) => findings[0]?.reply?.code === code)).toHaveLength(1)
      const others = done.filter(({ findings }) => findings[0]?.kind === 'temporary' && !findings[0].reply)
      const sent = done.filter(({ findings }) => findings[0]?.kind === 'accepted')
      expect(others.length + sent.length).toBe(done.length - 1)
      for (const { findings, conversation } of others) {
        expect(findings[0]).toMatchObject({
          enhanced: null,
          message: expect.stringContaining(`answered the connection made for another email with ${code}`),
        })
        expect(findings[0]?.classification).toBe('connection_error')
        expect(conversation).not.toContain('EHLO')
      }
      destination.destroy()
    }),
    { numRuns: 25 },
  )
}, 60_000)

test('EHLO that is not known to a server is followed by HELO, and the mail goes', async () => {
  for (const code of [500, 501, 502, 504, 550]) {
    await using mx = await startRudePeer({ EHLO: `${code} what?\r\n` })
    const done: FindingFor[] = []
    const destination = destinationWith({ done: (result) => done.push(result) })
    destination.add({ ...job }, wayTo(mx.port))
    await vi.waitFor(() => expect(done.map(({ findings }) => findings[0]?.kind)).toEqual(['accepted']), 10_000)
    destination.destroy()
  }
})

test('a server that greets with our own name ends one email, and the others are put off', async () => {
  await using mx = await startRudePeer({ connect: '220 mail.house.test ESMTP\r\n' })
  const done: FindingFor[] = []
  const destination = destinationWith({ done: (result) => done.push(result) })
  for (let n = 0; n < 5; n++) destination.add({ ...job, contentId: `e${n}` }, { ...wayTo(mx.port), ownName: 'mail.house.test' })
  await vi.waitFor(() => expect(done).toHaveLength(5), 10_000)
  expect(done.map(({ findings }) => findings[0]?.kind)).toEqual(['permanent', ...Array(4).fill('temporary')])
  destination.destroy()
})

test('an email at its last try that was not offered is put off without an attempt, each later than the one before it', async () => {
  await using mx = await startFakeMx({ script: ({ stage }) => (stage === 'ehlo' ? '501 5.5.2 what?' : undefined) })
  const done: FindingFor[] = []
  const later: { forMs: number; waitsFor: string }[] = []
  const putOff = (_: Job, forMs: number, waitsFor: string) => void later.push({ forMs, waitsFor })
  const destination = destinationWith({ done: (result) => done.push(result), isLastTry: () => true, putOff, downForMs: 1000 })
  for (let n = 0; n < 5; n++) destination.add({ ...job, contentId: `e${n}` }, wayTo(mx.port))
  await vi.waitFor(() => expect(later).toHaveLength(4), 10_000)
  expect(done.map(({ findings }) => findings[0]?.reply?.code)).toEqual([501])
  const waitsFor = '127.0.0.1 answered the connection made for another email with 501 5.5.2'
  expect(later).toEqual([1000, 2000, 3000, 4000].map((forMs) => ({ forMs, waitsFor })))
  destination.destroy()
})

const hangsUpAfterEhlo = (socket: Socket) => void socket.write('250 rude.test\r\n', () => socket.end())
test.each([
  ['says more than was asked for behind its reply to EHLO', '250 rude.test\r\n250 ok\r\n250 ok\r\n'],
  ['hangs up after its reply to EHLO', hangsUpAfterEhlo],
])('a server that %s is asked twice, and its mail is put off by the schedule', async (_, EHLO) => {
  await using mx = await startRudePeer({ EHLO })
  const done: FindingFor[] = []
  // Loading the message takes a moment, as from the database, so that the connection is gone when the message is ready.
  const prepare: DestinationDeps['prepare'] = async (...given) => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return await prepared(...given)
  }
  const destination = destinationWith({ prepare, done: (result) => done.push(result) })
  for (let n = 0; n < 3; n++) destination.add({ ...job, contentId: `e${n}` }, wayTo(mx.port))
  await vi.waitFor(() => expect(done).toHaveLength(3), 10_000)
  expect(done.map(({ findings }) => findings[0]?.kind)).toEqual(Array(3).fill('temporary'))
  expect(done.map(({ findings }) => findings[0]?.message)).toEqual([
    'the connection ended before anything could be sent over it',
    ...Array(2).fill(expect.stringMatching(/^not offered, because 127\.0\.0\.1 was not reached for another email: the connection ended/)),
  ])
  expect(mx.connections).toBe(2)
  destination.destroy()
})
