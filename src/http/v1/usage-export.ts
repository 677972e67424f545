/** Formats of the usage export (contract section 14.4): CSV, JSON Lines or a bare JSON array, written piece by piece. */
import type { File } from './define-endpoint.ts'

export const exportFormats = ['csv', 'jsonl', 'json'] as const
type Format = (typeof exportFormats)[number]

/** A row of the export; its keys are the columns, in order. */
type Row = Record<string, string | number | null>

const types: Record<Format, string> = {
  csv: 'text/csv; charset=utf-8',
  jsonl: 'application/x-ndjson',
  json: 'application/json; charset=utf-8',
}

/** The requested format, otherwise the one in Accept, otherwise CSV. */
function formatFor(format: Format | undefined, accept: string | undefined): Format {
  if (format !== undefined) return format
  const named = (accept ?? '').toLowerCase()
  if (named.includes('application/json')) return 'json'
  return named.includes('application/x-ndjson') ? 'jsonl' : 'csv'
}

/** RFC 4180. A cell that a spreadsheet would run as a formula is escaped. */
function csvCell(value: string | number | null): string {
  if (typeof value === 'number') return String(value)
  const text = value === null ? '' : /^\s*[=+\-@]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const columns = [
  'tenant_id',
  'tenant_name',
  'external_id',
  'status',
  'sent',
  'delivered',
  'soft_failed',
  'hard_failed',
  'bounced',
  'held',
  'delivery_rate',
  'bounce_rate',
  'period_start',
  'period_end',
] as const

const byteOrderMark = '\ufeff'

const writers: Record<Format, { head: string; row: (row: Row, first: boolean) => string; end: string }> = {
  csv: {
    head: `${byteOrderMark}${columns.join(',')}\r\n`,
    row: (row) => `${columns.map((column) => csvCell(row[column] ?? null)).join(',')}\r\n`,
    end: '',
  },
  jsonl: { head: '', row: (row) => `${JSON.stringify(row)}\n`, end: '' },
  json: { head: '[', row: (row, first) => `${first ? '' : ','}${JSON.stringify(row)}`, end: ']' },
}

/** `rows` arrive in chunks. The first chunk is awaited, so that an early failure is a refusal and not a truncated file. */
export async function exportOf(
  rows: AsyncGenerator<Row[]>,
  wanted: Format | undefined,
  accept: string | undefined,
  name: string,
): Promise<File> {
  const format = formatFor(wanted, accept)
  const writer = writers[format]
  const first = await rows.next()
  const pieces = async function* () {
    let isFirst = true
    yield writer.head
    for (let some = first; !some.done; some = await rows.next()) {
      let piece = ''
      for (const row of some.value) {
        piece += writer.row(row, isFirst)
        isFirst = false
      }
      if (piece !== '') yield piece
    }
    yield writer.end
  }
  return { type: types[format], name: `${name}.${format}`, pieces: pieces() }
}
