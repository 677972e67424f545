/** The engine in a simulated world, at length: seeds, and each of the engine's mutants. `.ci/run` calls it. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/simulation/**/*.long.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Each of these tests waits for a process of its own.
    maxConcurrency: 2,
    testTimeout: 600_000,
    hookTimeout: 120_000,
  },
})
