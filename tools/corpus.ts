/**
 * `npm run corpus`: measures report classification on labelled reports: a confusion table of kinds, one of classifications, and each error.
 * Another folder with a labels.jsonl of the same form can be given: `npm run corpus -- FOLDER`.
 */
import { join } from 'node:path'
import { type Judgement, judged, judgeReports, share } from '../test/support/labelled-reports.ts'

const judgements = judgeReports(process.argv[2] ?? join(process.cwd(), 'test/corpus/reports'))

function confusion(of: 'kind' | 'classification', some: readonly Judgement[]): string {
  const name = (value: string | null) => value ?? '-'
  const names = [...new Set(some.flatMap(({ label, report }) => [name(label[of]), name(report[of])]))].sort()
  const width = Math.max(...names.map((one) => one.length)) + 1
  const count = (is: string, read: string) => some.filter(({ label, report }) => name(label[of]) === is && name(report[of]) === read).length
  const short = (one: string) => one.slice(0, 7).padStart(8)
  const rows = names.map((is) => is.padEnd(width) + names.map((read) => String(count(is, read) || '.').padStart(8)).join(''))
  return [`${of} (rows: right, columns: read)`, ''.padEnd(width) + names.map(short).join(''), ...rows].join('\n')
}

console.log(`${confusion('kind', judgements)}\n\n${confusion('classification', judgements)}\n`)
for (const key of judged) console.log(`${key.padEnd(18)} ${(share(judgements, key) * 100).toFixed(1)}% of ${judgements.length}`)
for (const { label, report, wrong } of judgements) {
  for (const key of wrong) console.log(`\n${label.file}: ${key} is ${label[key]}, read ${report[key]}\n  ${report.reason ?? ''}`.trimEnd())
}
