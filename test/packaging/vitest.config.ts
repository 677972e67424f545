/** Packages as a user installs them, on Debian as root: `npm run packaging`. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/packaging/*.test.ts'],
    exclude: ['test/packaging/packaging.test.ts', 'test/packaging/manifests.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 900_000,
    // Builds two packages and installs Debian.
    hookTimeout: 1_200_000,
    expect: { poll: { timeout: 30_000 } },
  },
})
