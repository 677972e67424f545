/**
 * Reads an export of another service, CSV or JSON in UTF-8, as records with named fields. Memory and time do not depend on the content: a
 * record has at most 64 KiB. A record that cannot be read is reported with its line, and reading goes on.
 */
import { Refusal } from '#base'
import { csvRows } from './csv-records.ts'
import { JsonSplitter } from './json-records.ts'

export interface ExportRecord {
  line: number
  /** Names in lower case, letters and digits only: `EmailAddress`, `email_address` and `Email Address` are one. */
  fields: ReadonlyMap<string, unknown>
}

export interface BadRecord {
  line: number
  problem: string
}

/** Long replies of mail servers have less. */
const maxRecordOctets = 65_536
/** Enough for the first line, which shows the form. */
const sampleOctets = 4096
/** In the order in which a record with several is read. */
export const addressFields = ['emailaddress', 'email', 'address', 'recipient'] as const

const nameOf = (text: string) => text.toLowerCase().replace(/[^a-z0-9]+/g, '')
/** Of SES and Resend. The pages of other services do not show whether they are the last. */
const morePages = /"NextToken"\s*:\s*"[^"]|"has_more"\s*:\s*true/
const lastPageMissing = 'begins a page that is not the last of its list: add the next pages'
const byteOrderMark = Buffer.from('\ufeff')

/** Refuses a file of another form, such as a compressed one or a spreadsheet, and CSV without a header. */
export async function* readExport(input: AsyncIterable<Uint8Array>): AsyncGenerator<ExportRecord | BadRecord> {
  const { sample, rest } = await sampled(input)
  const start = sample.toString('latin1').trimStart()
  if (sample.includes(0) || (sample.length > 1 && sample.readUInt16BE(0) >= 0xfe00))
    throw new Refusal('validation_error', {
      message: 'the file is not text in UTF-8',
      suggestion: 'Export CSV or JSON, unpack a compressed file, and save a spreadsheet as CSV in UTF-8',
    })
  if (start.startsWith('{') || start.startsWith('[')) yield* jsonRecords(rest)
  else yield* csvRecords(rest, delimiterOf(start))
}

/** The first octets without the byte order mark, and the input with them. */
async function sampled(input: AsyncIterable<Uint8Array>) {
  const iterator = input[Symbol.asyncIterator]()
  const parts: Uint8Array[] = []
  let octets = 0
  while (octets < sampleOctets) {
    const { value, done } = await iterator.next()
    if (done) break
    parts.push(value)
    octets += value.length
  }
  const whole = Buffer.concat(parts)
  const sample = whole.subarray(0, 3).equals(byteOrderMark) ? whole.subarray(3) : whole
  async function* rest(): AsyncGenerator<Uint8Array> {
    try {
      yield sample
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value
    } finally {
      await iterator.return?.()
    }
  }
  return { sample, rest: rest() }
}

/** The comma, unless the header lacks it: spreadsheets write other ones in some countries. */
function delimiterOf(start: string): string {
  const [header = ''] = start.split(/\r?\n/, 1)
  return header.includes(',') ? ',' : header.includes(';') ? ';' : header.includes('\t') ? '\t' : ','
}

async function* csvRecords(input: AsyncIterable<Uint8Array>, delimiter: string): AsyncGenerator<ExportRecord | BadRecord> {
  let names: readonly string[] | undefined
  for await (const { line, cells } of csvRows(input, delimiter, maxRecordOctets)) {
    if (!names) names = headerOf(cells)
    else if (cells.length !== names.length) yield { line, problem: `has ${cells.length} cells, the header has ${names.length}` }
    else yield { line, fields: new Map(names.map((name, index) => [name, cells[index]])) }
  }
}

function headerOf(cells: readonly string[]): readonly string[] {
  const names = cells.map(nameOf)
  if (addressFields.some((name) => names.includes(name))) return names
  throw new Refusal('validation_error', {
    message: `the first line has no column email, address or email address: ${cells.join(', ').slice(0, 100)}`,
    suggestion: 'Give the file as the service exports it, with its header',
  })
}

async function* jsonRecords(input: AsyncIterable<Uint8Array>): AsyncGenerator<ExportRecord | BadRecord> {
  const splitter = new JsonSplitter(maxRecordOctets)
  let page: { line: number; text: string } | undefined
  for await (const chunk of input)
    for (const { line, text, isAround } of splitter.push(chunk)) {
      const fields = text === undefined || isAround ? undefined : fieldsOf(text)
      if (isAround || (fields && isEmptyPage(fields))) page = { line, text: text ?? '' }
      else if (fields) yield { line, fields }
      else yield { line, problem: text === undefined ? `is longer than ${maxRecordOctets} octets` : 'is not JSON' }
    }
  const cut = splitter.end()
  if (cut !== undefined) yield { line: cut, problem: 'the file ends within this record' }
  else if (page && morePages.test(page.text)) yield { line: page.line, problem: lastPageMissing }
}

/** The lists of SES, Resend and Mailgun. */
const listNames = ['suppresseddestinationsummaries', 'data', 'items']
const isEmptyPage = (fields: ReadonlyMap<string, unknown>) =>
  listNames.some((name) => {
    const list = fields.get(name)
    return Array.isArray(list) && list.length === 0
  })

/** A text alone is an address. */
function fieldsOf(text: string): ReadonlyMap<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string'
      ? new Map([['address', value]])
      : new Map(Object.entries(value as object).map(([name, field]) => [nameOf(name), field]))
  } catch {
    return undefined
  }
}
