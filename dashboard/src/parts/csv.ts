/** Reads and writes CSV (RFC 4180). Written cells are escaped so that a spreadsheet does not run them as formulas. */
import { save } from '../api-client.ts'

const cell = (value: string | number): string => {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const saveCsv = (name: string, rows: readonly (readonly (string | number)[])[]): void =>
  save(name, new Blob([`\ufeff${rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')}`], { type: 'text/csv' }))

/** Without the quotation mark that `cell` puts before a formula. */
const unguarded = (text: string) => text.replace(/^'(?=[=+\-@\t\r])/, '')

/** Rows of cells, separated by commas or semicolons, as spreadsheets or `saveCsv` write them. Empty lines are omitted. */
export function readCsv(text: string): string[][] {
  const whole = text.replace(/^\ufeff/, '')
  const separator = /^[^\r\n",]*;/.test(whole) ? ';' : ','
  const rows: string[][] = []
  let row: string[] = []
  let value = ''
  let isQuoted = false
  const endRow = () => {
    row.push(unguarded(value))
    if (row.some((one) => one.trim() !== '')) rows.push(row)
    row = []
    value = ''
  }
  for (let index = 0; index < whole.length; index++) {
    const letter = whole[index] as string
    if (isQuoted) {
      if (letter !== '"') value += letter
      else if (whole[index + 1] === '"') value += whole[++index]
      else isQuoted = false
    } else if (letter === '"' && value === '') isQuoted = true
    else if (letter === separator) {
      row.push(unguarded(value))
      value = ''
    } else if (letter === '\n') endRow()
    else if (letter !== '\r') value += letter
  }
  endRow()
  return rows
}
