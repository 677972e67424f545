/** One destination without the rest of the house, toward a real socket, on a clock whose timers are a little early, as the machine's are. */
import { expect, test, vi } from 'vitest'
import { type Clock, silentLog, systemClock } from '#base'
import { openResolver } from '#net'
import { type Destination, type DestinationDeps, openDestination } from '../../src/delivery/destination.ts'
import { type Job, jobsOf } from '../../src/delivery/job.ts'
import type { End } from '../../src/delivery/lane.ts'
import { startFakeMx } from '../support/fake-mx.ts'

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

function destinationWith(more: Partial<DestinationDeps>, shape = openShape): Destination {
  const end: End = { source: undefined, ehloName: 'mail.house.test', shape, warmUp: undefined }
  return openDestination('one.example', {
    clock: early,
    log: silentLog,
    resolver: openResolver({ servers: ['127.0.0.1:9'], clock: systemClock }),
    prepare: () =>
      Promise.resolve({
        returnPathOf: null,
        messageId: '<a@house.test>',
        acceptedAtMs: 0,
        signed: { signatures: '', data },
        markOf: () => '',
        needs8bit: false,
        needsSmtpUtf8: false,
      }),
    release: () => undefined,
    mayFinish: () => true,
    done: () => undefined,
    abandoned: () => undefined,
    surplus: () => undefined,
    lane: { four: end, six: end, restMs: 0, mostWaiting: 100, isScarce: true },
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
  expect(await mx.waitFor(1, 5000)).toHaveLength(1)
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
  await vi.waitFor(() => expect(abandoned.map(({ contentId }) => contentId)).toEqual(['e']), 5000)
  expect(hasStopped).toBe(true)
  destination.destroy()
})
