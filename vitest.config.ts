/**
 * One PostgreSQL for each project (test/support/global-setup.ts); two workers, because many tests run a whole service. The tests beside the
 * source are small, and share the processes that have loaded it.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { alias: { 'fast-check': fileURLToPath(new URL('test/support/seeded-fast-check.ts', import.meta.url)) } },
  test: {
    projects: [
      { extends: true, test: { name: 'src', include: ['src/**/*.test.ts'], isolate: false } },
      { extends: true, test: { name: 'test', include: ['test/**/*.test.ts', 'tools/**/*.test.ts', 'bench/**/*.test.ts'] } },
    ],
    // Slow tests run with `npm run faults`.
    exclude: [
      '**/*.slow.test.ts',
      'test/faults/**',
      'test/journeys/**',
      'test/backup/**',
      'test/docs/**',
      'test/peers/**',
      'test/failover/**',
      // Installs Debian: npm run packaging.
      'test/packaging/debian.test.ts',
      'test/browser/**',
      'test/packaging/image.test.ts',
      'node_modules/**',
    ],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    // Asynchronous results may take longer on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 60_000,
  },
})
