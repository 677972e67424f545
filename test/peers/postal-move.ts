/**
 * `npm run postal-move`: the test of the move from Postal in the size of a large installation, or of the given sizes. Prints the time of
 * each part.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

/** Three organisations, as in docs/migrating-from-postal.md. */
const large = { organizations: 3, servers: 40, domains: 200, suppressions: 100_000, messages: 1_000_000, queued: 2000 }
const names = Object.keys(large) as (keyof typeof large)[]

const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])) })
const scale = Object.fromEntries(
  names.map((name) => {
    const value = values[name] === undefined ? large[name] : Number(values[name])
    if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number above 0`)
    return [name, value]
  }),
)
const vitest = ['vitest', 'run', '--config', 'test/peers/vitest.config.ts', 'test/peers/postal-import.test.ts']
const { status } = spawnSync('npx', vitest, { stdio: 'inherit', env: { ...process.env, POSTRIDER_POSTAL_SCALE: JSON.stringify(scale) } })
process.exit(status ?? 1)
