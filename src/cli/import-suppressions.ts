/** `postrider import suppressions`: adds the suppressions that another service has exported, over the API. */
import { createReadStream } from 'node:fs'
import { Refusal } from '#base'
import { exportLists, exportVendors, readSuppressions, type VendorSuppression } from '#imports'
import { apiHelp, apiUsage, plain, scopeOf, tenantApiOptions, withApi } from './api.ts'
import { type Command, needed, printed, text, UsageError } from './command-definition.ts'
import { openProgress } from './progress.ts'

/** Bad and skipped rows that are shown. */
const shownRows = 10
/** The most that a request may have. */
const entriesPerRequest = 1000

export const importSuppressionsCommand: Command = {
  name: 'import suppressions',
  audited: 'unnamed',
  summary: 'add suppressions exported by another service',
  help: `postrider import suppressions --from VENDOR FILE [--list LIST] [--dry-run] [--tenant ID] ${apiUsage}

Adds the addresses of an export, CSV or JSON in UTF-8, to a suppression list, with their reasons and times. Addresses that are on the list stay as
they are, so the command may be repeated. Bad rows are counted, and the first ${shownRows} shown with their lines.
FILE       the export; - reads standard input
--from     ${exportVendors.join(', ')}
--list     the list that the file has, for SendGrid and Mailgun: ${exportLists.join(', ')}.
           Needed for SendGrid's bounces, blocks and invalid addresses, whose files look alike
--dry-run  reads and compares, and adds nothing
--tenant   the list of this tenant (default: the list of the organisation, which applies to every tenant)
${apiHelp}

Example: postrider import suppressions --from ses suppressed.json --dry-run`,
  options: { from: { type: 'string' }, list: { type: 'string' }, 'dry-run': { type: 'boolean' }, ...tenantApiOptions },
  values: { from: exportVendors, list: exportLists },
  positionals: ['FILE'],
  async run(given, deps) {
    const vendor = oneOf(exportVendors, 'from', needed(given, 'from'))
    const named = text(given, 'list')
    const list = named === undefined ? undefined : oneOf(exportLists, 'list', named)
    const [file = ''] = given.positionals
    await withApi(given, deps, async (service) => {
      const progress = openProgress(deps.clock)
      const { suppressions } = scopeOf(service, given)
      const dryRun = given.options['dry-run'] === true
      const run = new ImportRun(async (some) => {
        const counted = await suppressions.import({ suppressions: some.map(wireOf), dryRun })
        progress.show(`${run.counts.rows.toLocaleString('en')} rows read, ${run.counts.added.toLocaleString('en')} added`)
        return counted
      })
      try {
        await run.all(readSuppressions(vendor, file === '-' ? process.stdin : createReadStream(file), list))
      } finally {
        progress.end()
      }
      printed(given, deps, { dryRun, ...run.report() }, shown(run.report(), dryRun))
    })
  },
}

function oneOf<const Value extends string>(values: readonly Value[], option: string, given: string): Value {
  const found = values.find((one) => one === given)
  if (found === undefined) throw new UsageError(`--${option} must be one of ${values.join(', ')}: ${given}`)
  return found
}

const wireOf = ({ createdAt, ...entry }: VendorSuppression) => ({ ...entry, ...(createdAt ? { createdAt: createdAt.toISOString() } : {}) })

interface LineNote {
  line: number
  problem: string
}

type Report = ReturnType<ImportRun['report']>

type Send = (entries: readonly VendorSuppression[]) => Promise<{ added: number; existing: number; failed: number }>

/** Sends the entries in groups, and counts. */
class ImportRun {
  readonly #send: Send
  readonly counts = { rows: 0, added: 0, existing: 0, skipped: 0, bad: 0 }
  readonly #reasons = new Map<string, number>()
  readonly #bad: LineNote[] = []
  readonly #skipped: LineNote[] = []
  #waiting: VendorSuppression[] = []

  constructor(send: Send) {
    this.#send = send
  }

  /** Refuses a file without any entry. */
  async all(rows: ReturnType<typeof readSuppressions>): Promise<void> {
    for await (const row of rows) {
      this.counts.rows++
      if ('entry' in row) await this.#add(row.entry)
      else if ('skipped' in row) this.#note('skipped', this.#skipped, { line: row.line, problem: row.skipped })
      else this.#note('bad', this.#bad, row)
    }
    await this.#flush()
    const { rows: total, bad } = this.counts
    if (total > 0 && bad < total) return
    const [first] = this.#bad
    throw new Refusal('validation_error', {
      message: total === 0 ? 'the file has no rows' : `the file has no suppression: line ${first?.line} ${plain(first?.problem ?? '')}`,
      suggestion: 'Check --from, and that the file is an export of suppressions',
    })
  }

  report() {
    return { ...this.counts, reasons: Object.fromEntries(this.#reasons), badRows: this.#bad, skippedRows: this.#skipped }
  }

  async #add(entry: VendorSuppression): Promise<void> {
    this.#reasons.set(entry.reason, (this.#reasons.get(entry.reason) ?? 0) + 1)
    this.#waiting.push(entry)
    if (this.#waiting.length === entriesPerRequest) await this.#flush()
  }

  async #flush(): Promise<void> {
    const entries = this.#waiting
    if (entries.length === 0) return
    this.#waiting = []
    const { added, existing, failed } = await this.#send(entries)
    this.counts.added += added
    this.counts.existing += existing
    this.counts.bad += failed
  }

  #note(kind: 'bad' | 'skipped', list: LineNote[], { line, problem }: LineNote): void {
    this.counts[kind]++
    if (list.length < shownRows) list.push({ line, problem })
  }
}

function shown({ rows, added, existing, skipped, bad, reasons, badRows, skippedRows }: Report, dryRun: boolean): string {
  const number = (count: number) => count.toLocaleString('en').padStart(11)
  const lines = (title: string, count: number, notes: readonly LineNote[]) =>
    count === 0
      ? []
      : [
          '',
          `${title}:`,
          ...notes.map(({ line, problem }) => `  line ${line}: ${plain(problem)}`),
          ...(count > notes.length ? [`  and ${(count - notes.length).toLocaleString('en')} more`] : []),
        ]
  return [
    `${number(rows)} rows read${Object.entries(reasons)
      .map(([reason, count], index) => `${index === 0 ? ': ' : ', '}${count.toLocaleString('en')} ${reason}`)
      .join('')}`,
    `${number(added)} ${dryRun ? 'would be added' : 'added'}`,
    `${number(existing)} on the list already, or repeated`,
    `${number(skipped)} skipped`,
    `${number(bad)} bad`,
    ...lines('Skipped rows', skipped, skippedRows),
    ...lines('Bad rows', bad, badRows),
    ...(dryRun ? ['', 'Nothing was changed. To add the addresses, run the command again without --dry-run.'] : []),
  ].join('\n')
}
