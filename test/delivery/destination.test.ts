/** One destination without the rest of the house, toward a real socket, on a clock whose timers are a little early, as the machine's are. */
import { expect, test } from 'vitest'
import { type Clock, silentLog, systemClock } from '#base'
import { openResolver } from '#net'
import { type DestinationDeps, openDestination } from '../../src/delivery/destination.ts'
import { jobsOf } from '../../src/delivery/job.ts'
import type { End } from '../../src/delivery/lane.ts'
import { startFakeMx } from '../support/fake-mx.ts'

const early: Clock = { ...systemClock, after: (delayMs, action) => systemClock.after(delayMs - 5, action) }

test('mail that found no slot for a connection is sent when there is one, though nothing new comes', async () => {
  await using mx = await startFakeMx()
  let denials = 3
  const shape: End['shape'] = {
    connect: () => Promise.resolve(denials-- > 0 ? undefined : { release: () => undefined }),
    turn: () => Promise.resolve(),
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
  const end: End = { source: undefined, ehloName: 'mail.house.test', shape, warmUp: undefined }
  const data = Buffer.from('From: a@house.test\r\n\r\nHello\r\n')
  const deps: DestinationDeps = {
    clock: early,
    log: silentLog,
    resolver: openResolver({ servers: ['127.0.0.1:9'], clock: systemClock }),
    prepare: () =>
      Promise.resolve({
        returnPathOf: null,
        messageId: '<a@house.test>',
        acceptedAtMs: 0,
        data,
        dataFor: (_, whole) => whole,
        needs8bit: false,
        needsSmtpUtf8: false,
      }),
    release: () => undefined,
    mayFinish: () => true,
    done: () => undefined,
    abandoned: () => undefined,
    surplus: () => undefined,
    lane: { four: end, six: end, restMs: 0, mostWaiting: 100, isScarce: true },
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
  ])
  if (!job) throw new Error('no job')
  const destination = openDestination('one.example', deps)
  destination.add(job, {
    hosts: [{ host: '127.0.0.1', preference: 0, tls: 'opportunistic', policy: 'opportunistic' }],
    port: mx.port,
    auth: undefined,
    guard: { allows: () => true },
  })
  expect(await mx.waitFor(1, 5000)).toHaveLength(1)
  destination.destroy()
})
