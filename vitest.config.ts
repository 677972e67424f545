/** One PostgreSQL for the whole run (test/support/global-setup.ts); two workers, because each test of the house runs a whole service. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'tools/**/*.test.ts'],
    // What takes its time runs with `npm run faults`.
    exclude: [
      '**/*.slow.test.ts',
      'test/faults/**',
      'test/journeys/**',
      'test/backup/**',
      'test/docs/**',
      'test/peers/**',
      'test/browser/**',
      'node_modules/**',
    ],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    // What comes by itself may take its time on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 60_000,
  },
})
