/**
 * `npm run growth`: searches the readers of external octets for inputs whose cost grows faster than their length. Exits with 1 if it finds
 * one.
 */
import { parseArgs } from 'node:util'
import { openMeasure } from './measure.ts'
import type { Reader } from './reader.ts'
import { readers } from './readers.ts'
import { limits, search, told } from './search.ts'

const help = `npm run growth -- [--minutes N] [--reader NAME] [--seed N] [--list]

Searches every reader of outside octets for an input that costs it more than ${limits.msPer100Kb} ms of processor time for 100 KB, or more than
${limits.growth} times as much for twice as much. Each find is made as small as it goes and printed with what
test/faults/growth/known-findings.json is to keep.

  --minutes N      for all readers together, 20
  --reader NAME    only those whose name contains NAME
  --seed N         a random one; the same seed tries the same inputs, as many as the time allows
  --list           the readers and the functions that they stand for

It exits with 1 when something was found.`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '20' },
    reader: { type: 'string', default: '' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
})

/** Time limit for reducing a find to a shorter input. */
const shrinkMs = 20_000
const minutes = Number(values.minutes)
const seed = Number(values.seed)
const chosen = readers.filter(({ name }) => name.includes(values.reader))

if (values.help) console.log(help)
else if (values.list) for (const { name, reads } of chosen) console.log(`${name}\n  ${reads.join('\n  ')}`)
else if (!(minutes > 0) || !Number.isSafeInteger(seed)) wrong('--minutes is a number above 0, --seed a whole number')
else if (chosen.length === 0) wrong(`no reader has a name with "${values.reader}" in it`)
else await searchAll(chosen)

function wrong(message: string): void {
  console.error(message)
  process.exitCode = 2
}

/** One after the other: two concurrent searches would slow each other down. */
async function searchAll(list: readonly Reader[]): Promise<void> {
  console.error(`${list.length} readers, ${minutes} minutes, seed ${seed}`)
  const measure = openMeasure(new URL('./readers.ts', import.meta.url).href)
  try {
    let finds = 0
    for (const [at, reader] of list.entries()) {
      const startedMs = performance.now()
      const endMs = startedMs + (minutes * 60_000) / list.length
      const { find, tried } = await search(reader, { seed, measure, isOver: () => performance.now() > endMs, shrinkMs })
      const seconds = Math.round((performance.now() - startedMs) / 1000)
      console.error(`${at + 1}/${list.length} ${reader.name}: ${tried} inputs in ${seconds} s${find ? ', found one' : ''}`)
      if (!find) continue
      finds++
      console.log(told(find))
    }
    console.error(finds === 0 ? 'nothing was found' : `${finds} found`)
    if (finds > 0) process.exitCode = 1
  } finally {
    await measure.close()
  }
}
