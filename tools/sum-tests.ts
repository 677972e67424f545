/**
 * Prints the last line of .ci/run: `N passed, N failed`, summed over vitest's JSON reports. `node tools/sum-tests.ts <steps that failed
 * otherwise> <report.json>...`; fails if a test failed or no test passed.
 */
import { existsSync, readFileSync } from 'node:fs'

interface Report {
  success: boolean
  numPassedTests: number
  numFailedTests: number
}

/** An unsuccessful report without a failed test (a file that did not load) counts as one failure. */
export function sumReports(reports: readonly Report[], failedSteps: number): { passed: number; failed: number } {
  let passed = 0
  let failed = failedSteps
  for (const report of reports) {
    passed += report.numPassedTests
    failed += report.success ? report.numFailedTests : Math.max(1, report.numFailedTests)
  }
  return { passed, failed }
}

if (import.meta.main) {
  const [failedSteps, ...paths] = process.argv.slice(2)
  const reports = paths.filter((path) => existsSync(path)).map((path): Report => JSON.parse(readFileSync(path, 'utf8')))
  const { passed, failed } = sumReports(reports, Number(failedSteps))
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1
  console.log(`${passed} passed, ${failed} failed`)
}
