/**
 * Vitest configuration of the slow tests: journeys through the whole program, the programs of the docs, kills, crashes, restores, hostile
 * peers. `npm run faults`; `.ci/run` calls it after `npm test`.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { alias: { 'fast-check': fileURLToPath(new URL('../support/seeded-fast-check.ts', import.meta.url)) } },
  test: {
    include: [
      '{src,test}/**/*.slow.test.ts',
      'test/faults/**/*.test.ts',
      'test/journeys/**/*.test.ts',
      'test/backup/**/*.test.ts',
      'test/docs/**/*.test.ts',
    ],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    // Asynchronous results may take longer on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 60_000,
  },
})
