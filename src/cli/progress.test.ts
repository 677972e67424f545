/** Progress of long commands, on a terminal and elsewhere. */
import { expect, test } from 'vitest'
import type { Clock } from '#base'
import { openProgress } from './progress.ts'

function progressOn(isTTY: boolean) {
  const written: string[] = []
  let ms = 0
  const clock = { monotonicMs: () => ms } as Clock
  const progress = openProgress(clock, { isTTY, write: (text) => written.push(text) })
  return {
    written,
    progress,
    show: (atMs: number, state: string) => {
      ms = atMs
      progress.show(state)
    },
  }
}

test('a terminal shows one line in place, at most every 200 ms, and none at the end', () => {
  const { written, progress, show } = progressOn(true)
  show(0, '1 row')
  show(199, '2 rows')
  show(200, '3 rows')
  progress.end()
  expect(written).toEqual(['\r\u001b[K1 row', '\r\u001b[K3 rows', '\r\u001b[K'])
})

test('elsewhere there is a line every ten seconds, without control characters', () => {
  const { written, progress, show } = progressOn(false)
  show(0, '1 row')
  show(9999, '2 rows')
  show(10_000, '3 rows')
  show(10_500, '4 rows')
  show(20_000, '5 rows')
  progress.end()
  expect(written).toEqual(['3 rows\n', '5 rows\n'])
})

test('a command that ends at once writes nothing', () => {
  const { written, progress } = progressOn(true)
  progress.end()
  expect(written).toEqual([])
})
