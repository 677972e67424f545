import { expect, test } from 'vitest'
import { fixedComputation } from './soak-samples.ts'
import { failuresOf, idleAgain, type SoakResult, summaryLines, trendsOf } from './soak-summary.ts'

const flat = { 'memory in all, MiB': 500, 'acceptance p50, ms': 3 }
const steady: SoakResult = {
  minutes: 4,
  rate: 200,
  samples: [flat, flat, flat, flat],
  idle: { afterMinutes: 2, figures: [{ name: 'queue, deferred', fresh: 0, warm: 0, after: 0, isIdle: true }] },
  totals: {
    accepted: 60_000,
    failedRequests: 0,
    delivered: 60_000,
    deferred: 3000,
    queued: 0,
    opened: 15_000,
    failedOpens: 0,
    recordedOpens: 15_000,
    webhooks: 78_000,
    endedProcesses: 0,
  },
}

test('a steady soak passes', () => {
  expect(failuresOf(steady)).toEqual([])
  expect(summaryLines(steady).at(-1)).toBe('All checks pass.')
})

test('only the second half counts, and only growth fails', () => {
  const samples = [10, 20, 30, 40, 100, 101, 102, 104].map((memory, minute) => ({ memory, falling: 100 - minute }))
  expect(trendsOf(samples)).toMatchObject([
    { name: 'memory', verdict: 'FAIL' },
    { name: 'falling', verdict: 'pass' },
  ])
})

test('growth within the uncertainty of scattered figures is unclear', () => {
  const samples = [0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0].map((queue) => ({ queue }))
  expect(trendsOf(samples)).toMatchObject([{ name: 'queue', verdict: 'unclear' }])
})

test('each check names its failure', () => {
  const totals = { ...steady.totals, delivered: 59_999, queued: 1, failedRequests: 2, recordedOpens: 14_000, endedProcesses: 1 }
  expect(failuresOf({ ...steady, totals })).toEqual([
    '1 accepted emails were not delivered; 1 of them are queued',
    '2 requests failed',
    '1000 opens were not recorded',
    '1 processes ended during the soak',
  ])
  const figures = [{ name: 'memory of serve, MiB', fresh: 100, warm: 110, after: 120, isIdle: false }]
  expect(failuresOf({ ...steady, idle: { afterMinutes: undefined, figures } })).toEqual([
    'memory of serve, MiB is not idle again: 120.0, before the load 100.0',
  ])
  expect(failuresOf({ ...steady, rate: 400 })).toEqual(['the rate was not reached: 60000 of 120000 emails'])
})

test('idle again means a tenth more at most than after the start, except for shared buffers, which stay', () => {
  const fresh = {
    'memory of serve, MiB': 100,
    'memory of PostgreSQL, shared buffers, MiB': 40,
    'queue, deferred': 0,
    'processor time in all, % of a core': 1.5,
  }
  const warm = { ...fresh, 'memory of serve, MiB': 130 }
  const before = { fresh, warm }
  const after = { ...fresh, 'memory of serve, MiB': 109, 'memory of PostgreSQL, shared buffers, MiB': 300 }
  expect(idleAgain(before, after, 3).afterMinutes).toBe(3)
  expect(idleAgain(before, { ...after, 'memory of serve, MiB': 111 }, 3).afterMinutes).toBeUndefined()
  expect(idleAgain(before, { ...after, 'queue, deferred': 1 }, 3).afterMinutes).toBeUndefined()
})

test('the speed of the processor is shown, but not judged', () => {
  const slower = [100, 100, 100, 100, 100, 110, 120, 130].map((micros) => ({ ...flat, [fixedComputation]: micros }))
  expect(trendsOf(slower).find(({ name }) => name === fixedComputation)).toMatchObject({ verdict: '-' })
  expect(failuresOf({ ...steady, samples: slower })).toEqual([])
})
