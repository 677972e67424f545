/** The Debian packages, on a Debian machine of their own: `npm run packaging`, as root. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/packaging/debian.test.ts'],
    maxWorkers: 1,
    testTimeout: 300_000,
    // Builds two packages and installs Debian.
    hookTimeout: 1_200_000,
    bail: 1,
  },
})
