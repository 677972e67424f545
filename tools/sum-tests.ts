/**
 * Prints the end of .ci/run: a line for each failed test and step, then the sum over vitest's JSON reports, `N passed, N failed`.
 * `node tools/sum-tests.ts <folder of reports> [<step that failed otherwise>...]`; fails if a test failed or no test passed.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Report {
  success: boolean
  numPassedTests: number
  numFailedTests: number
  testResults: {
    name: string
    status: string
    message: string
    assertionResults: { fullName: string; status: string; failureMessages: string[] | null }[]
  }[]
}

/** A file that did not load counts as one failure, and so does an unsuccessful report that names none. */
export function sumReports(reports: readonly Report[], failedSteps: number): { passed: number; failed: number } {
  let passed = 0
  let failed = failedSteps
  for (const report of reports) {
    passed += report.numPassedTests
    failed += Math.max(failuresOf(report).length, report.numFailedTests, report.success ? 0 : 1)
  }
  return { passed, failed }
}

/** A line for each failed test, and for each file that failed without one: `file: test: first line of its error`. */
export function failuresOf(report: Report): string[] {
  return report.testResults.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed')
    if (failed.length === 0 && status === 'failed') return [`${name}: ${firstLine(message)}`]
    return failed.map(({ fullName, failureMessages }) => `${name}: ${fullName}: ${firstLine(failureMessages?.[0] ?? '')}`)
  })
}

const firstLine = (text: string) => text.split('\n', 1)[0]?.slice(0, 300) ?? ''

if (import.meta.main) {
  const [folder = '.', ...failedSteps] = process.argv.slice(2)
  const reports: Report[] = []
  for (const path of globSync(join(folder, '*.json')))
    try {
      reports.push(JSON.parse(readFileSync(path, 'utf8')))
    } catch {
      failedSteps.push(`${path} is not complete`)
    }
  for (const line of [...failedSteps, ...reports.flatMap(failuresOf)]) console.log(`failed: ${line}`)
  const { passed, failed } = sumReports(reports, failedSteps.length)
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1
  console.log(`${passed} passed, ${failed} failed`)
}
