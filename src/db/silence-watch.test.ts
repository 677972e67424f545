import { describe, expect, test } from 'vitest'
import type { HostFault } from './errors.ts'
import { type HostAnswer, reasonToGiveUp } from './silence-watch.ts'

const server = { host: 'a', timeline: 6 }
const writable = (host: string, timeline: number): HostAnswer => ({ host, state: 'writable', timeline })
const fault = (host: string, state: HostFault, timeline = 0): HostAnswer => ({ host, state, timeline })

describe('the connections to a server with a pending statement', () => {
  test.each<[string, { silentMs: number; answers: HostAnswer[]; timeline?: number }, RegExp | undefined]>([
    [
      'stay while it answers: a commit may wait for its standby',
      { silentMs: 60_000, answers: [writable('a', 6), fault('b', 'read-only', 6)] },
      undefined,
    ],
    [
      'end when another was promoted, though it answers',
      { silentMs: 0, answers: [writable('a', 6), writable('b', 7)] },
      /b was promoted \(timeline 7\)/,
    ],
    [
      'end when it became a standby',
      { silentMs: 2000, answers: [fault('a', 'read-only', 7), fault('b', 'silent')] },
      /a accepts no writes/,
    ],
    ['stay for four seconds while no host answers', { silentMs: 3999, answers: [fault('a', 'silent'), fault('b', 'silent')] }, undefined],
    [
      'end after four seconds without an octet',
      { silentMs: 4000, answers: [fault('a', 'silent'), fault('b', 'read-only', 6)] },
      /a does not answer/,
    ],
    ['end when its machine refuses new connections', { silentMs: 5000, answers: [fault('a', 'refused')] }, /a does not answer/],
    ['stay when it answers new connections with an error', { silentMs: 60_000, answers: [fault('a', 'other')] }, undefined],
    [
      'end sooner when another accepts writes on an unknown timeline',
      { silentMs: 2000, answers: [fault('a', 'silent'), writable('b', 0)], timeline: 0 },
      /b accepts writes/,
    ],
    [
      'stay while it still sends octets on other connections',
      { silentMs: 100, answers: [fault('a', 'refused'), writable('b', 6)] },
      undefined,
    ],
  ])('%s', (_name, { silentMs, answers, timeline = 6 }, reason) => {
    const found = reasonToGiveUp({ ...server, timeline }, silentMs, answers)
    if (reason) expect(found).toMatch(reason)
    else expect(found).toBeUndefined()
  })
})
