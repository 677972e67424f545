/** One site without the rest of Postrider, against a real socket, on a clock whose timers fire a little early, as the machine's do. */
import type { Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { type Clock, metrics, silentLog, systemClock } from '#base'
import { CostlyHandshakes, openResolver } from '#net'
import { type EgressPath, egressPathsOf } from '../../src/delivery/egress-path.ts'
import { type Job, type JobResult, jobsOf, type PreparedMessage } from '../../src/delivery/job.ts'
import { Site, type SiteDeps } from '../../src/delivery/site.ts'
import { type MxEvent, startFakeMx } from '../support/fake-mx.ts'
import { makeLongChain } from '../support/long-chain.ts'
import { startMisbehavingPeer } from '../support/misbehaving-peer.ts'

const early: Clock = { ...systemClock, after: (delayMs, action) => systemClock.after(delayMs - 5, action) }
const data = Buffer.from('From: a@house.test\r\n\r\nHello\r\n')

const openLimiter: EgressPath['limiter'] = {
  connect: () => Promise.resolve({ release: () => undefined }),
  acquireSendPermit: () => Promise.resolve(),
  isContended: () => Promise.resolve(false),
  isRateLimited: false,
  backoffMs: 0,
  maxWaiting: 100,
  accepted: () => undefined,
  rateLimited: () => undefined,
  shutDown: () => undefined,
  blocked: () => undefined,
  connectionRefused: () => undefined,
  hasFewConnections: true,
  isThrottle: () => false,
}

const message: PreparedMessage = {
  returnPathOf: null,
  messageId: '<a@house.test>',
  acceptedAtMs: 0,
  signed: { signatures: '', data },
  traceHeaderOf: () => '',
  needs8bit: false,
  needsSmtpUtf8: false,
}
const prepared: SiteDeps['prepare'] = (one) => Promise.resolve({ kind: 'ready', job: one, others: [], message })

function siteWith(more: Partial<SiteDeps>, limiter = openLimiter): Site {
  const path: EgressPath = { source: undefined, ehloName: 'mail.house.test', limiter, warmUp: undefined }
  return new Site('one.example', {
    clock: early,
    log: silentLog,
    resolver: openResolver({ servers: ['127.0.0.1:9'], clock: systemClock, ids: { random: Math.random } }),
    prepare: prepared,
    release: () => undefined,
    leaseStillHeld: () => true,
    done: () => undefined,
    requeue: () => undefined,
    postponeUnprepared: () => undefined,
    postponeJobs: () => undefined,
    divert: () => false,
    isLastTry: () => false,
    postpone: () => undefined,
    paths: { ipv4: path, ipv6: path, backoffMs: 0, maxWaiting: 100, hasFewConnections: true },
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
    recipientDomain: 'one.example',
    attempts: 0,
    manualRetry: false,
    test: false,
    sizeOctets: data.length,
    holdReason: null,
    clockOffsetMs: 0,
    scheduledAt: null,
  },
]) as [Job]
const newJob = (contentId = 'e'): Job => ({ ...job, contentId, state: { ...job.state } })

const nextHopTo = (port: number): Parameters<Site['add']>[1] => ({
  hosts: [{ host: '127.0.0.1', preference: 0, tls: 'opportunistic', policy: 'opportunistic' }],
  port,
  auth: undefined,
  guard: { allows: () => true },
})

test('mail that found no slot for a connection is sent when there is one, though nothing new comes', async () => {
  await using mx = await startFakeMx()
  let denials = 3
  const connect = () => Promise.resolve(denials-- > 0 ? undefined : { release: () => undefined })
  const site = siteWith({}, { ...openLimiter, connect })
  site.add(newJob(), nextHopTo(mx.port))
  expect(await mx.waitFor(1, 10_000)).toHaveLength(1)
  site.destroy()
})

test('mail whose connection breaks before its first reply, while the process stops, is given back', async () => {
  const requeue: Job[] = []
  let hasStopped = false
  await using mx = await startFakeMx({
    script({ stage }) {
      if (stage !== 'mail') return undefined
      site.close()
      expect(site.takeUnstarted()).toEqual([])
      hasStopped = true
      return { close: true }
    },
  })
  const site = siteWith({ requeue: (one) => requeue.push(one) })
  site.add(newJob(), nextHopTo(mx.port))
  await vi.waitFor(() => expect(requeue.map(({ contentId }) => contentId)).toEqual(['e']), 10_000)
  expect(hasStopped).toBe(true)
  site.destroy()
})

/** A site that backs off after a reputation block until `hasBackedOff` is called, and 60 emails for it. */
function blockedSite(more: Partial<EgressPath['limiter']> = {}) {
  const causes: string[] = []
  const done: JobResult[] = []
  const back: Job[] = []
  let backoffMs = 0
  const limiter = {
    ...openLimiter,
    ...more,
    get backoffMs() {
      return backoffMs
    },
    blocked(cause: string) {
      causes.push(cause)
      backoffMs = 30_000
    },
  }
  const path: EgressPath = { source: undefined, ehloName: 'mail.house.test', limiter, warmUp: undefined }
  const another = () =>
    siteWith({
      paths: egressPathsOf({ ipv4: path, ipv6: path }),
      done: (result) => done.push(result),
      postponeJobs: (jobs) => back.push(...jobs),
    })
  const site = another()
  const jobs = Array.from({ length: 60 }, (_, n) => newJob(`e${n}`))
  const hasBackedOff = () => {
    backoffMs = 0
  }
  return { site, another, jobs, causes, done, back, hasBackedOff }
}

const refusedBeforeMail = [
  ['connect', '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org'],
  ['connect', '450 4.7.1 Client host [192.0.2.1] is listed at bl.spamcop.net'],
  ['ehlo', '550 5.7.1 Your IP address has a poor reputation'],
  ['connect', '554 mx.gmx.net Bad DNS PTR resource record'],
] as const

test.each(refusedBeforeMail)(
  'of 60 emails refused at %s by "%s" one is put off, and the others go when the peer has rested',
  async (stage, reply) => {
    let isFriendly = false
    const script = (event: MxEvent) => (event.stage === stage && !isFriendly ? reply : undefined)
    await using mx = await startFakeMx({ script })
    const { site, jobs, causes, done, back, hasBackedOff } = blockedSite()
    for (const one of jobs) site.add(one, nextHopTo(mx.port))
    await vi.waitFor(() => expect(back).toHaveLength(59), 10_000)
    expect(causes).toEqual([reply])
    expect(done.map(({ results }) => results[0]?.kind)).toEqual(['temporary'])
    expect(mx.connections).toBe(1)

    isFriendly = true
    hasBackedOff()
    for (const one of back.splice(0)) site.add(one, nextHopTo(mx.port))
    expect(await mx.waitFor(59, 10_000)).toHaveLength(59)
    await vi.waitFor(() => expect(done).toHaveLength(60), 10_000)
    expect(done.slice(1).every(({ results }) => results[0]?.kind === 'accepted')).toBe(true)
    expect(back).toEqual([])
    site.destroy()
  },
)

test('a connection more that is refused for the reputation of the sender costs no email', async () => {
  await using mx = await startFakeMx({
    script: ({ stage, session }) => (stage === 'connect' && session > 1 ? refusedBeforeMail[0][1] : undefined),
  })
  const { site, jobs, causes, done, back } = blockedSite()
  for (const one of jobs) site.add(one, nextHopTo(mx.port))
  await vi.waitFor(() => expect(done.length + back.length).toBe(60), 10_000)
  await vi.waitFor(() => expect(causes).toContain(refusedBeforeMail[0][1]), 10_000)
  expect(done.every(({ results }) => results[0]?.kind === 'accepted')).toBe(true)
  site.destroy()
})

test('two destinations of a provider that are refused for the reputation of the sender at once cost one email together', async () => {
  await using mx = await startFakeMx({ script: ({ stage }) => (stage === 'connect' ? refusedBeforeMail[0][1] : undefined) })
  const { site, another, jobs, done, back } = blockedSite()
  const both = [site, another()]
  for (const [n, one] of jobs.entries()) both[n % 2]?.add(one, nextHopTo(mx.port))
  await vi.waitFor(() => expect(done.length + back.length).toBe(60), 10_000)
  expect(done).toHaveLength(1)
  expect(mx.connections).toBe(2)
  for (const one of both) one.destroy()
})

test('a host that blocks the sending address makes the provider rest, though another one is only out of reach', async () => {
  await using mx = await startFakeMx({ script: ({ stage }) => (stage === 'connect' ? refusedBeforeMail[0][1] : undefined) })
  const { site, jobs, causes, done, back } = blockedSite()
  const nextHop = nextHopTo(mx.port)
  const [host] = nextHop.hosts
  for (const one of jobs) site.add(one, { ...nextHop, hosts: host ? [host, { ...host, host: '127.0.0.2', preference: 1 }] : [] })
  await vi.waitFor(() => expect(back).toHaveLength(59), 10_000)
  expect(causes).toEqual([refusedBeforeMail[0][1]])
  expect(done.map(({ results }) => results[0]?.kind)).toEqual(['temporary'])
  site.destroy()
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

test('a refused greeting or EHLO costs no email its life, and is shown only by the email that was offered', async () => {
  await fc.assert(
    fc.asyncProperty(beforeMail, async ({ stage, code, text }) => {
      await using mx = await startFakeMx({
        script: (event) => (event.stage === stage && event.session === 1 ? `${code} ${text}` : undefined),
      })
      const done: JobResult[] = []
      const back: Job[] = []
      const site = siteWith({ done: (result) => done.push(result), postponeJobs: (jobs) => back.push(...jobs) })
      for (let n = 0; n < 20; n++) site.add(newJob(`e${n}`), nextHopTo(mx.port))
      await vi.waitFor(() => expect(done.length + back.length).toBe(20), 10_000)
      expect(done.filter(({ results }) => results[0]?.kind === 'permanent')).toEqual([])
      expect(done.filter(({ results }) => results[0]?.reply?.code === code)).toHaveLength(1)
      const others = done.filter(({ results }) => results[0]?.kind === 'temporary' && !results[0].reply)
      const sent = done.filter(({ results }) => results[0]?.kind === 'accepted')
      expect(others.length + sent.length).toBe(done.length - 1)
      for (const { results, conversation } of others) {
        expect(results[0]).toMatchObject({
          enhanced: null,
          message: expect.stringMatching(new RegExp(`replied ${code}( \\S+)? on a connection opened for another email$`)),
        })
        expect(results[0]?.classification).toBe('connection_error')
        expect(conversation).not.toContain('EHLO')
      }
      site.destroy()
    }),
    { numRuns: 25 },
  )
}, 60_000)

test('EHLO that is not known to a server is followed by HELO, and the mail goes', async () => {
  for (const code of [500, 501, 502, 504, 550]) {
    await using mx = await startMisbehavingPeer({ EHLO: `${code} what?\r\n` })
    const done: JobResult[] = []
    const site = siteWith({ done: (result) => done.push(result) })
    site.add(newJob(), nextHopTo(mx.port))
    await vi.waitFor(() => expect(done.map(({ results }) => results[0]?.kind)).toEqual(['accepted']), 10_000)
    site.destroy()
  }
})

test('a server that greets with the name of this host ends one email, and the others are put off', async () => {
  await using mx = await startMisbehavingPeer({ connect: '220 mail.house.test ESMTP\r\n' })
  const done: JobResult[] = []
  const site = siteWith({ done: (result) => done.push(result) })
  for (let n = 0; n < 5; n++) site.add(newJob(`e${n}`), { ...nextHopTo(mx.port), ownName: 'mail.house.test' })
  await vi.waitFor(() => expect(done).toHaveLength(5), 10_000)
  expect(done.map(({ results }) => results[0]?.kind)).toEqual(['permanent', ...Array(4).fill('temporary')])
  site.destroy()
})

test('an email at its last try that was not offered is put off without an attempt, each later than the one before it', async () => {
  await using mx = await startFakeMx({ script: ({ stage }) => (stage === 'ehlo' ? '501 5.5.2 what?' : undefined) })
  const done: JobResult[] = []
  const later: { forMs: number; delayReason: string }[] = []
  const postpone = (_: Job, forMs: number, delayReason: string) => void later.push({ forMs, delayReason })
  const site = siteWith({ done: (result) => done.push(result), isLastTry: () => true, postpone, downForMs: 1000 })
  for (let n = 0; n < 5; n++) site.add(newJob(`e${n}`), nextHopTo(mx.port))
  await vi.waitFor(() => expect(later).toHaveLength(4), 10_000)
  expect(done.map(({ results }) => results[0]?.reply?.code)).toEqual([501])
  const delayReason = '127.0.0.1 replied 501 5.5.2 on a connection opened for another email'
  expect(later).toEqual([1000, 2000, 3000, 4000].map((forMs) => ({ forMs, delayReason })))
  site.destroy()
})

const hangsUpAfterEhlo = (socket: Socket) => void socket.write('250 rude.test\r\n', () => socket.end())
test.each([
  ['says more than was asked for behind its reply to EHLO', '250 rude.test\r\n250 ok\r\n250 ok\r\n'],
  ['hangs up after its reply to EHLO', hangsUpAfterEhlo],
])('a server that %s is asked twice, and its mail is put off by the schedule', async (_, EHLO) => {
  await using mx = await startMisbehavingPeer({ EHLO })
  const done: JobResult[] = []
  // Loading the message takes a moment, as from the database, so that the connection is gone when the message is ready.
  const prepare: SiteDeps['prepare'] = async (...given) => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return await prepared(...given)
  }
  const site = siteWith({ prepare, done: (result) => done.push(result) })
  for (let n = 0; n < 3; n++) site.add(newJob(`e${n}`), nextHopTo(mx.port))
  await vi.waitFor(() => expect(done).toHaveLength(3), 10_000)
  expect(done.map(({ results }) => results[0]?.kind)).toEqual(Array(3).fill('temporary'))
  expect(done.map(({ results }) => results[0]?.message)).toEqual([
    'the connection closed before a message could be sent',
    ...Array(2).fill(expect.stringMatching(/^not attempted: 127\.0\.0\.1 was unreachable for another email: the connection closed/)),
  ])
  expect(mx.connections).toBe(2)
  site.destroy()
})

test('a connection is counted under its phase until it ends', async () => {
  const phases = async () => {
    const { values } = await metrics.deliveryConnections.get()
    return Object.fromEntries(values.filter(({ value }) => value !== 0).map(({ labels, value }) => [labels.phase, value]))
  }
  const reaches = (expected: object) => vi.waitFor(async () => expect(await phases()).toEqual(expected), 10_000)
  let isSilent = false
  await using mx = await startFakeMx({ script: ({ stage }) => (isSilent && stage === 'content' ? { silent: true } : undefined) })
  const permit = Promise.withResolvers<void>()
  const limiter = { ...openLimiter, hasFewConnections: false, isRateLimited: true, acquireSendPermit: () => permit.promise }
  const site = siteWith({}, limiter)
  // The connections of other tests have ended.
  await reaches({})
  site.add({ ...job }, nextHopTo(mx.port))
  await reaches({ waiting_for_permit: 1 })
  permit.resolve()
  await reaches({ idle: 1 })
  isSilent = true
  site.add({ ...job, contentId: 'f' }, nextHopTo(mx.port))
  await reaches({ sending: 1 })
  site.close()
  await reaches({ draining: 1 })
  site.destroy()
  await reaches({})
})

test('mail for which a busy connection was woken whose source may no longer send goes over the other family meanwhile', async () => {
  const reply = Promise.withResolvers<void>()
  await using mx = await startFakeMx({
    script: ({ stage }) => (stage === 'content' ? { reply: '250 ok', after: reply.promise } : undefined),
  })
  await using mx6 = await startFakeMx({ host: '::1', port: mx.port })
  let ipv4BackoffMs = 0
  const limiter = { ...openLimiter, hasFewConnections: false }
  const ipv6: EgressPath = { source: undefined, ehloName: 'mail.house.test', limiter, warmUp: undefined }
  const ipv4 = {
    ...ipv6,
    limiter: {
      ...limiter,
      get backoffMs() {
        return ipv4BackoffMs
      },
    },
  }
  const site = siteWith({ paths: egressPathsOf({ ipv4, ipv6 }) })
  const one = nextHopTo(mx.port)
  const hosts = ['127.0.0.1', '::1'].map((host, preference) => one.hosts.map((known) => ({ ...known, host, preference })))
  const both = { ...one, hosts: hosts.flat() }
  // A first success allows the site a second connection.
  site.answered({
    recipients: [{ state: 'accepted', reply: { code: 250, enhanced: null, text: '250 ok' } }],
    transcript: '',
    durationMs: 100,
    repliedMs: {},
  })
  site.add(newJob('before'), both)
  await vi.waitFor(() => expect(site.busyWorkers.size).toBe(1), 10_000)
  ipv4BackoffMs = 60_000
  site.add(newJob('after'), both)
  expect(await mx6.waitFor(1, 10_000)).toHaveLength(1)
  expect(mx.messages).toHaveLength(1)
  reply.resolve()
  site.destroy()
})

test.each([
  [421, '421 Max message per connection reached, closing transmission channel'],
  [452, '452 4.5.3 Too many messages for this session'],
])(
  'a server that takes five messages per connection and then replies %d gets the others over new connections, without an attempt more',
  async (code, reply) => {
    const mails = new Map<number, number>()
    let refusals = 0
    await using mx = await startFakeMx({
      script({ stage, session }) {
        if (stage !== 'mail') return undefined
        const count = (mails.get(session) ?? 0) + 1
        mails.set(session, count)
        if (count <= 5) return undefined
        refusals++
        return { reply, close: code === 421 }
      },
    })
    const limited: string[] = []
    const done: JobResult[] = []
    const limiter = {
      ...openLimiter,
      hasFewConnections: false,
      isThrottle: () => true,
      rateLimited: (cause: string) => void limited.push(cause),
    }
    const path: EgressPath = { source: undefined, ehloName: 'mail.house.test', limiter, warmUp: undefined }
    const site = siteWith({ paths: egressPathsOf({ ipv4: path, ipv6: path }), done: (result) => done.push(result) })
    const add = (from: number, to: number) => {
      for (let n = from; n < to; n++) site.add(newJob(`e${n}`), nextHopTo(mx.port))
    }
    add(0, 40)
    expect(await mx.waitFor(40, 10_000)).toHaveLength(40)
    await vi.waitFor(() => expect(done).toHaveLength(40), 10_000)
    expect(done.every(({ results }) => results[0]?.kind === 'accepted')).toBe(true)
    expect(limited).toEqual([])
    // The limit is known now: further connections end before the server refuses a message.
    const before = refusals
    expect(site.maxPerConnection).toBe(5)
    await vi.waitFor(() => expect(site.idle).toBe(true), 10_000)
    add(40, 60)
    await vi.waitFor(() => expect(done).toHaveLength(60), 10_000)
    expect(refusals).toBe(before)
    site.destroy()
  },
)

test('the messages that a server takes per connection include those whose recipients it refuses', async () => {
  const mails = new Map<number, number>()
  let recipients = 0
  await using mx = await startFakeMx({
    script({ stage, session }) {
      // After one accepted message the site may open a second connection, and no third.
      if (stage === 'rcpt' && recipients++ > 0) return '550 5.1.1 User unknown'
      if (stage !== 'mail') return undefined
      const count = (mails.get(session) ?? 0) + 1
      mails.set(session, count)
      return count <= 10 ? undefined : { reply: '421 4.7.0 Too many messages in this connection', close: true }
    },
  })
  const done: JobResult[] = []
  const site = siteWith({ done: (result) => done.push(result) })
  for (let n = 0; n < 40; n++) site.add(newJob(`e${n}`), nextHopTo(mx.port))
  await vi.waitFor(() => expect(done).toHaveLength(40), 10_000)
  expect(site.maxPerConnection).toBe(10)
  site.destroy()
})

test('a server that refuses the first message of a connection for its number is sent less', async () => {
  const reply = '452 4.5.3 Too many messages for this session'
  await using mx = await startFakeMx({ script: ({ stage }) => (stage === 'mail' ? reply : undefined) })
  const limited: string[] = []
  const done: JobResult[] = []
  const limiter = { ...openLimiter, isThrottle: () => true, rateLimited: (cause: string) => void limited.push(cause) }
  const path: EgressPath = { source: undefined, ehloName: 'mail.house.test', limiter, warmUp: undefined }
  const site = siteWith({ paths: egressPathsOf({ ipv4: path, ipv6: path }), done: (result) => done.push(result) })
  site.add(newJob(), nextHopTo(mx.port))
  await vi.waitFor(() => expect(done.map(({ results }) => results[0]?.kind)).toEqual(['temporary']), 10_000)
  expect(limited).toEqual([reply])
  site.destroy()
})

test('mail for a server that occupies its clients with a chain of 41 certificates goes without TLS after the first connection', async () => {
  await using mx = await startFakeMx({ starttls: true, tls: makeLongChain(['mx.example.test']) })
  const site = siteWith({ costlyHandshakes: new CostlyHandshakes(systemClock) })
  site.add(newJob('first'), nextHopTo(mx.port))
  expect(await mx.waitFor(1, 10_000)).toMatchObject([{ secure: true }])
  await vi.waitFor(() => expect(site.idle).toBe(true), 10_000)
  site.add(newJob('second'), nextHopTo(mx.port))
  expect(await mx.waitFor(2, 10_000)).toMatchObject([{ secure: true }, { secure: false }])
  site.destroy()
})
