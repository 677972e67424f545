/** `npm run simulate -- --seeds N --from S`: plays seeds one after another and reports those that broke a guarantee. */
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    mutant: { type: 'string' },
    'until-broken': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    story: { type: 'boolean', default: false },
  },
})
if (values.mutant !== undefined) (await import('./mutants.ts')).breakEngine(values.mutant)
const { openStore, startServer } = await import('./seed-databases.ts')
const { simulate } = await import('./run-seed.ts')

const server = await startServer()
const store = await openStore(server.url)
const from = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.seeds) : 1
const began = performance.now()
const broken: number[] = []
try {
  for (let seed = from; seed < from + count; seed++) {
    const { violations, story, ...facts } = await simulate(seed, store)
    if (values.story) console.log(story.join('\n'))
    console.log(JSON.stringify(facts))
    if (violations.length === 0) continue
    broken.push(seed)
    for (const sentence of violations) console.log(`  seed ${seed}: ${sentence}`)
    if (values['until-broken']) break
  }
} finally {
  await store.close()
  await server.stop()
}
const minutes = (performance.now() - began) / 60_000
console.log(`${count} seeds, ${(count / minutes).toFixed(1)} a minute; broken: ${broken.join(' ') || 'none'}`)
process.exitCode = broken.length > 0 ? 1 : 0
