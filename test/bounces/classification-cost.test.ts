/** Replies that are made to cost processor time: the peer writes them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { classify } from '#bounces'
import { quickCpuUnits } from '../support/cpu-time.ts'

const folder = join(process.cwd(), 'test/corpus/replies')
const corpus = readdirSync(folder)
  .filter((file) => file.endsWith('.jsonl'))
  .flatMap((file) => readFileSync(join(folder, file), 'utf8').trim().split('\n'))
  .map((line) => (JSON.parse(line) as { text: string }).text)

/** Some 5 ms. */
const maxUnits = 25
const cpuUnits = quickCpuUnits(maxUnits)
const unitsOf = (text: string) => cpuUnits(() => classify({ code: 550, enhanced: null, text }))

test('64 KB of the worst a peer can write take little processor time', () => {
  const pieces = "a|@|a.|.|5.1.|550 |http://|www.|user |a_b |ab:c|n't |\n|<a@|a-b.c-d.|((|\\|用|e\u0301|\ufdfa|\ud800"
  const repeated = [...pieces.split('|'), 'sender mail from address ', 'message size too mail ', 'mailbox of the ip is not in your ']
  const slow = repeated
    .map((one) => ({ one, units: unitsOf(one.repeat(Math.ceil(65_536 / one.length))) }))
    .filter(({ units }) => units >= maxUnits)
  expect(slow).toEqual([])
})

test('words of the corpus in any order take little processor time', () => {
  const words = [...new Set(corpus.flatMap((text) => text.split(/\s+/)))]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words), { minLength: 300, maxLength: 400 }), (some) => {
      expect(unitsOf(some.join(' '))).toBeLessThan(maxUnits)
    }),
    { numRuns: 30 },
  )
})
