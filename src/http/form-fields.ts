/**
 * Reads a form, application/x-www-form-urlencoded or multipart/form-data (RFC 7578), as an object like one of JSON: a member for each name, and
 * an array for a repeated one. Looks at every octet a fixed number of times, and limits the fields before anything is built.
 */
import { isUtf8 } from 'node:buffer'
import { Refusal } from '#base'
import { structured } from '#mail'
import { decoded } from './form-body.ts'
import type { JsonBounds } from './json-limits.ts'
import { parseJson } from './parse-json.ts'

/** A thousand recipients with a field for each, attachments, headers and variables. */
const maxFields = 2500
const maxNameOctets = 1024
const maxPartHeaderOctets = 8192
const maxBoundaryLength = 70

export type FormKind = { kind: 'urlencoded' } | { kind: 'multipart'; boundary: string }

/** The fields of an endpoint's form that are more than text. */
export interface FormLimits {
  /** Names of fields whose values are JSON; they become the values of that JSON, within `bounds`. */
  json: readonly string[]
  bounds: JsonBounds
  /** Names of fields that the request log must not have. */
  hidden: readonly string[]
}

/** A file of a form. */
export interface FormFile {
  filename: string
  /** Empty if absent. */
  contentType: string
  /** Base64. */
  content: string
}

interface Field {
  name: string
  value: Buffer
  /** Of a file. */
  file?: { filename: string; contentType: string }
}

const refuse = (problem: string) =>
  new Refusal('validation_error', { message: `the form ${problem}`, suggestion: 'Send the fields of this endpoint as a form' })

/** undefined: the content type is not that of a form. Refuses a multipart form without a boundary. */
export function formKind(contentType: string): FormKind | undefined {
  const { value, parameters } = structured(contentType)
  if (value === 'application/x-www-form-urlencoded') return { kind: 'urlencoded' }
  if (value !== 'multipart/form-data') return undefined
  const boundary = parameters.get('boundary') ?? ''
  if (boundary === '' || boundary.length > maxBoundaryLength) throw refuse(`has no boundary of 1 to ${maxBoundaryLength} characters`)
  return { kind: 'multipart', boundary }
}

/** `body`: the members; `shown`: the same for the request log, as JSON, without the content of files. */
export function readFormFields(octets: Buffer, form: FormKind, limits: FormLimits): { body: Record<string, unknown>; shown: Buffer } {
  const fields = form.kind === 'urlencoded' ? urlencodedFields(octets) : multipartFields(octets, form.boundary)
  const values = new Map<string, unknown[]>()
  const shown = new Map<string, unknown[]>()
  for (const field of fields) {
    // The bounds of JSON are those of one field.
    if (limits.json.includes(field.name) && values.has(field.name)) throw refuse(`has the field ${field.name} twice`)
    add(values, field.name, valueOf(field, limits))
    add(shown, field.name, shownOf(field, limits))
  }
  return { body: asObject(values), shown: Buffer.from(JSON.stringify(asObject(shown))) }
}

const add = (to: Map<string, unknown[]>, name: string, value: unknown) => {
  const known = to.get(name)
  if (known) known.push(value)
  else to.set(name, [value])
}

const asObject = (values: ReadonlyMap<string, readonly unknown[]>): Record<string, unknown> =>
  Object.fromEntries([...values].map(([name, list]) => [name, list.length === 1 ? list[0] : list]))

/** More than the request log keeps. */
const maxShownOctets = 32_768
function shownOf({ name, value, file }: Field, { hidden }: FormLimits): unknown {
  if (file) return { ...file, size: value.length }
  return hidden.includes(name) ? { size: value.length } : value.toString('utf8', 0, maxShownOctets)
}

function valueOf({ name, value, file }: Field, { json, bounds }: FormLimits): unknown {
  if (file) return { ...file, content: value.toString('base64') }
  if (!isUtf8(value)) throw refuse(`has a field that is not UTF-8: ${name.slice(0, 60)}`)
  if (!json.includes(name) || value.length === 0) return value.toString()
  try {
    return parseJson(value, bounds)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Refusal('validation_error', { field: name, message: error.message.replace(/^the body\b/, name) })
  }
}

const ampersand = 0x26
const equals = 0x3d

function urlencodedFields(octets: Buffer): Field[] {
  const fields: Field[] = []
  for (let start = 0; start < octets.length; ) {
    const next = octets.indexOf(ampersand, start)
    const end = next === -1 ? octets.length : next
    const pair = octets.subarray(start, end)
    start = end + 1
    if (pair.length === 0) continue
    const sign = pair.indexOf(equals)
    const name = decoded(sign === -1 ? pair : pair.subarray(0, sign))
    fields.push({ name: nameOf(name.toString()), value: sign === -1 ? Buffer.alloc(0) : decoded(pair.subarray(sign + 1)) })
    if (fields.length > maxFields) throw tooMany()
  }
  return fields
}

const tooMany = () => refuse(`has more than ${maxFields} fields`)

function nameOf(name: string): string {
  if (name === '' || Buffer.byteLength(name) > maxNameOctets) throw refuse(`has a field without a name of 1 to ${maxNameOctets} bytes`)
  return name
}

const lineEnd = Buffer.from('\r\n')
const headerEnd = Buffer.from('\r\n\r\n')
const dash = 0x2d
const space = 0x20
const tab = 0x09

/** Where the part after a delimiter begins, 'end' for the last one, undefined for text that only looks like a delimiter. */
function afterDelimiter(octets: Buffer, at: number): number | 'end' | undefined {
  if (octets[at] === dash && octets[at + 1] === dash) return 'end'
  let end = at
  // Padding of a delimiter line (RFC 2046 section 5.1.1) is rare and short.
  while (end - at < maxBoundaryLength && (octets[end] === space || octets[end] === tab)) end++
  return octets[end] === lineEnd[0] && octets[end + 1] === lineEnd[1] ? end + 2 : undefined
}

/** The next delimiter from `from` on: its beginning, with the line end before it, and the beginning of the next part. */
function findDelimiter(octets: Buffer, delimiter: Buffer, from: number): { begin: number; next: number | 'end' } {
  for (let at = from; ; ) {
    const begin = octets.indexOf(delimiter, at)
    if (begin === -1) throw refuse('is not complete: its last boundary is missing')
    const next = afterDelimiter(octets, begin + delimiter.length)
    if (next !== undefined) return { begin, next }
    at = begin + delimiter.length
  }
}

function multipartFields(octets: Buffer, boundary: string): Field[] {
  const first = Buffer.from(`--${boundary}`)
  const delimiter = Buffer.concat([lineEnd, first])
  const fields: Field[] = []
  const starts = octets.subarray(0, first.length).equals(first) ? afterDelimiter(octets, first.length) : undefined
  let next = starts ?? findDelimiter(octets, delimiter, 0).next
  while (next !== 'end') {
    if (fields.length >= maxFields) throw tooMany()
    const header = octets.subarray(next, next + maxPartHeaderOctets)
    const end = header.indexOf(headerEnd)
    if (end === -1) throw refuse(`has a part without a header of at most ${maxPartHeaderOctets} bytes`)
    const start = next + end + headerEnd.length
    // An empty part: the line end before the delimiter is that of the header.
    const found = findDelimiter(octets, delimiter, start - lineEnd.length)
    fields.push(fieldOf(header.toString('latin1', 0, end), octets.subarray(start, Math.max(start, found.begin))))
    next = found.next
  }
  return fields
}

/** Names of fields in lower case, with their values. */
function headersOf(head: string): Map<string, string> {
  const lines = head.replace(/\r\n[ \t]/g, ' ').split('\r\n')
  return new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, Math.max(0, colon)).trim().toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
}

const plainEncodings = ['', '7bit', '8bit', 'binary']
/** The escapes of RFC 7578's senders (WHATWG HTML, multipart form data). */
const unescaped = (text: string) => text.replace(/%22/g, '"').replace(/%0D%0A|%0D|%0A/gi, ' ')

function fieldOf(head: string, value: Buffer): Field {
  const headers = headersOf(head)
  const { value: disposition, parameters } = structured(headers.get('content-disposition') ?? '')
  if (disposition !== 'form-data') throw refuse('has a part whose Content-Disposition is not form-data')
  const encoding = headers.get('content-transfer-encoding')?.toLowerCase() ?? ''
  if (!plainEncodings.includes(encoding)) throw refuse('has a part with a Content-Transfer-Encoding that is not served')
  const name = nameOf(unescaped(parameters.get('name') ?? ''))
  const filename = parameters.get('filename')
  if (filename === undefined) return { name, value }
  return { name, value, file: { filename: unescaped(filename), contentType: headers.get('content-type') ?? '' } }
}
