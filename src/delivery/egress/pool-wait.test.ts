import { expect, test } from 'vitest'
import { decideWait, type Wait } from './pool-wait.ts'

const path = (backoffMs: number, warmUpReason?: string) => ({ backoffMs, warmUpReason })

test.each<[string, number, ReturnType<typeof path>[], Wait]>([
  [
    'without an address on this machine, a minute',
    0,
    [],
    { kind: 'postpone', forMs: 60_000, reason: 'no address of pool bulk is on the machine that has this mail' },
  ],
  ['a short backoff, in the queue', 1_000_000, [path(1500), path(90_000)], { kind: 'suspend' }],
  ['a short time until the site reconsiders, in the queue', 1000, [path(90_000)], { kind: 'suspend' }],
  [
    'a longer backoff of every path, until the first may send',
    1_000_000,
    [path(20_000), path(90_000)],
    { kind: 'postpone', forMs: 20_000, reason: 'Gmail accepts no more mail from pool bulk at present' },
  ],
  [
    'at most a quarter of an hour',
    Number.MAX_SAFE_INTEGER,
    [path(Number.POSITIVE_INFINITY)],
    { kind: 'postpone', forMs: 900_000, reason: 'Gmail accepts no more mail from pool bulk at present' },
  ],
  [
    'a reached warm-up ceiling, with its reason',
    1_000_000,
    [path(50_000), path(60_000, 'day 3 of the warm-up')],
    { kind: 'postpone', forMs: 50_000, reason: 'day 3 of the warm-up' },
  ],
])('a job that no path of its pool accepts waits: %s', (_name, retryMs, paths, expected) => {
  expect(decideWait({ pool: 'bulk', provider: 'Gmail', retryMs, paths })).toEqual(expected)
})
