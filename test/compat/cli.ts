/**
 * `npm run compat`: runs the tests that drive the vendors' SDKs and writes the tables of docs/vendor-sdks.md. With reports of earlier runs as
 * arguments, it only judges them. Exits with 1 if a test failed, or if no test drives a served method.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Report, rowsOf, rowText, upstreamVersion, withTables } from './sdk-table.ts'
import { type ServedSdk, servedSdks } from './served-methods.ts'

const help = `npm run compat
npm run compat -- REPORT.json ...

Runs the tests that drive the vendors' SDKs, and writes the tables of docs/vendor-sdks.md. With JSON reports of vitest, it runs no test and
writes nothing: it only judges the reports. SDKs whose Debian package is not installed are left out of the judgement.`

const page = 'docs/vendor-sdks.md'
const suites = { 'test/compat': 'test/faults/vitest.config.ts', 'test/peers': 'test/peers/vitest.config.ts' }

function versionOf({ name, from }: ServedSdk): string | undefined {
  if (from === 'npm') return (JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')) as { version: string }).version
  try {
    const text = execFileSync('dpkg-query', ['-W', '-f', '${db:Status-Status} ${Version}', name], { encoding: 'utf8', stdio: 'pipe' })
    return text.startsWith('installed ') ? upstreamVersion(text.slice('installed '.length)) : undefined
  } catch {
    return undefined
  }
}

/** The files of a folder whose tests record calls. */
const filesIn = (folder: string) =>
  readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith('.test.ts') && readFileSync(path, 'utf8').includes('\nrecordSdkCalls()\n'))

function runTests(): { reports: Report[]; hasPassed: boolean } {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-compat-'))
  try {
    const runs = Object.entries(suites).map(([tests, config], index) => {
      const file = join(folder, `${index}.json`)
      const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
      const words = ['node_modules/vitest/vitest.mjs', 'run', '--config', config, ...reporters, ...filesIn(tests)]
      const { status } = spawnSync(process.execPath, words, { stdio: ['ignore', 'inherit', 'inherit'] })
      return { report: JSON.parse(readFileSync(file, 'utf8')) as Report, hasPassed: status === 0 }
    })
    return { reports: runs.map(({ report }) => report), hasPassed: runs.every(({ hasPassed }) => hasPassed) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const { values, positionals } = parseArgs({ options: { help: { type: 'boolean', default: false } }, allowPositionals: true })
if (values.help) console.log(help)
else {
  const isOnlyJudged = positionals.length > 0
  const given = () => positionals.map((path) => JSON.parse(readFileSync(path, 'utf8')) as Report)
  const { reports, hasPassed } = isOnlyJudged ? { reports: given(), hasPassed: true } : runTests()
  const rows = rowsOf(servedSdks, reports, versionOf)
  const faults = rows.flatMap((row) => row.faults)
  const absent = rows.filter(({ version }) => version === undefined)
  for (const row of rows) console.log(rowText(row))
  for (const fault of faults) console.log(fault)
  if (!hasPassed) console.log('tests failed')
  process.exitCode = hasPassed && faults.length === 0 ? 0 : 1
  if (!isOnlyJudged && absent.length > 0) {
    console.log(`${page} stays as it is, because packages are missing: apt-get install ${absent.map(({ sdk }) => sdk.name).join(' ')}`)
    process.exitCode = 1
  } else if (!isOnlyJudged) writeFileSync(page, withTables(readFileSync(page, 'utf8'), rows))
}
