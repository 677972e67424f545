/**
 * The table of docs/vendor-sdks.md, made of vitest's reports. A method counts as driven when a test had its answer and a test had its refusal,
 * and as passed when every test that called it passed as well.
 */
import type { SdkCall } from '../support/sdk-calls.ts'
import type { ServedSdk } from './served-methods.ts'

/** The part of vitest's JSON report that the table needs. */
export interface Report {
  testResults: readonly {
    assertionResults: readonly { status: string; fullName: string; meta?: { sdkCalls?: readonly SdkCall[] } }[]
  }[]
}

export interface Row {
  sdk: ServedSdk
  /** undefined: the SDK is not installed. */
  version: string | undefined
  served: number
  driven: number
  passed: number
  /** Sentences; empty if every method was driven and passed. */
  faults: string[]
}

interface Made extends SdkCall {
  test: string
  hasPassed: boolean
}

const callsIn = (reports: readonly Report[]): Made[] =>
  reports
    .flatMap(({ testResults }) => testResults.flatMap(({ assertionResults }) => assertionResults))
    .flatMap(({ status, fullName, meta }) =>
      (meta?.sdkCalls ?? []).map((call) => ({ ...call, test: fullName, hasPassed: status === 'passed' })),
    )

export function rowsOf(sdks: readonly ServedSdk[], reports: readonly Report[], versionOf: (sdk: ServedSdk) => string | undefined): Row[] {
  const calls = callsIn(reports)
  return sdks.map((sdk) => {
    const version = versionOf(sdk)
    const methods = Object.keys(sdk.methods)
    const row: Row = { sdk, version, served: methods.length, driven: 0, passed: 0, faults: [] }
    if (version === undefined) return row
    for (const method of methods) {
      const own = calls.filter((call) => call.sdk === sdk.name && call.method === method)
      const missing = (['answered', 'refused'] as const).filter((end) => !own.some((call) => call.end === end))
      const failed = own.filter(({ hasPassed }) => !hasPassed)
      if (missing.length === 0) row.driven++
      if (missing.length === 0 && failed.length === 0) row.passed++
      row.faults.push(...missing.map((end) => `${sdk.name}: ${method} was not ${end} in any test`))
      if (failed.length > 0) row.faults.push(`${sdk.name}: ${method} is called in a failed test: ${failed[0]?.test}`)
    }
    return row
  })
}

/** Without the revision of Debian. */
export const upstreamVersion = (text: string): string => text.replace(/^\d+:/, '').replace(/[+~-].*$/, '')

export const rowText = ({ sdk, version, served, driven, passed }: Row): string =>
  `| \`${sdk.name}\` | ${version ?? 'not installed'} | ${sdk.from === 'npm' ? 'npm' : 'Debian 12'} | ${served} | ${driven} | ${passed} |`

export const methodsText = ({ name, methods }: ServedSdk): string =>
  `| \`${name}\` | ${Object.keys(methods)
    .map((method) => `\`${method}\``)
    .join(', ')} |`

/** The written part of the page lies between these headings. */
const [begin, end] = ['\n## Counts\n', '\n## Repetition\n']

/** The page with these tables. */
export function withTables(page: string, rows: readonly Row[]): string {
  const [head, tail] = [page.split(begin)[0], page.split(end)[1]]
  if (head === undefined || tail === undefined) throw new Error('the page has no place for the tables')
  const counts = ['| SDK | version | from | methods served | driven | passed |', '|---|---|---|---|---|---|', ...rows.map(rowText)]
  const methods = ['| SDK | methods |', '|---|---|', ...rows.map(({ sdk }) => methodsText(sdk))]
  return `${[head + begin, ...counts, '\n## Methods\n', ...methods].join('\n')}\n${end}${tail}`
}
