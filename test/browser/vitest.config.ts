/** The dashboard in Debian's Chromium: `npm run browser`. Screenshots go to artifacts/dashboard/. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts', 'test/browser/build-dashboard.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    // Polled changes may be slow on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 120_000,
  },
})
