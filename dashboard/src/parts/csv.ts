/** A table as a file: RFC 4180, and no cell that a spreadsheet would take for a formula. */
import { save } from '../api.ts'

const cell = (value: string | number): string => {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const saveCsv = (name: string, rows: readonly (readonly (string | number)[])[]): void =>
  save(name, new Blob([`\ufeff${rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')}`], { type: 'text/csv' }))
