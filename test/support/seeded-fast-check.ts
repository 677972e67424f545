/**
 * fast-check with one seed for all property tests, so that a run tries the same values as the run before it. vitest.config.ts puts it in place of
 * the package. POSTRIDER_TEST_SEED is another seed, or `random`, which draws new values.
 */
import { createRequire } from 'node:module'

const { default: fc } = createRequire(import.meta.url)('fast-check') as typeof import('fast-check')
const seed = process.env['POSTRIDER_TEST_SEED'] ?? '24'
if (seed !== 'random') fc.configureGlobal({ seed: Number(seed) })

export default fc
