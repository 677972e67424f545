/**
 * Mailgun's own header fields of a complete message, which are not sent. Most have the meaning of parameters: Symfony's usual transport
 * writes tags and metadata so.
 */
import { fieldText, readFields, withoutFields } from '#mail'
import { JsonFields } from '#vendors'
import { refuseMailgunField } from './errors.ts'
import { type MailgunOptions, readOptions } from './read-options.ts'

const ownPrefix = 'x-mailgun-'
const tagField = 'x-mailgun-tag'
const variablesField = 'x-mailgun-variables'
/** Mailgun combines the values of several fields. */
const repeatable: readonly string[] = [tagField, variablesField]
const maxFields = 100

/** The parameter that each field stands for. */
const parameters: Readonly<Record<string, string>> = {
  [tagField]: 'o:tag',
  'x-mailgun-drop-message': 'o:testmode',
  'x-mailgun-deliver-by': 'o:deliverytime',
  'x-mailgun-track': 'o:tracking',
  'x-mailgun-track-opens': 'o:tracking-opens',
  'x-mailgun-track-clicks': 'o:tracking-clicks',
  'x-mailgun-dkim': 'o:dkim',
  'x-mailgun-require-tls': 'o:require-tls',
  'x-mailgun-skip-verification': 'o:skip-verification',
}
/** Instructions that are not served. Mailgun writes other fields, such as X-Mailgun-Sid, into mail that passes through it. */
const unserved =
  /^x-mailgun-(?:archive-to|deliver-within|delivery-time-optimize-period|recipient-variables|secondary-dkim|template-|time-zone-localize|track-pixel-location-top)/
const fieldOf = new Map(Object.entries(parameters).map(([field, parameter]) => [parameter, field]))

const wrong = (field: string, problem: string) => refuseMailgunField(`message: the field ${field.slice(0, 60)}`, problem, 'wrong')

interface OwnFields {
  options: MailgunOptions
  variables: Record<string, string>
  /** The message without the fields. */
  octets: Buffer
}

/** Throws the refusal of a field that is not served, or whose value is wrong. */
export function readOwnFields(octets: Buffer, nowMs: number): OwnFields {
  const own = (readFields(octets) ?? [])
    .map(({ name, value }) => ({ name: name.toLowerCase(), value }))
    .filter(({ name }) => name.startsWith(ownPrefix))
  const refused = own.find(({ name }) => unserved.test(name))
  if (refused) throw refuseMailgunField(`message: the field ${refused.name.slice(0, 60)}`, 'is not served', 'not served')
  const fields = own.filter(({ name }) => name === variablesField || Object.hasOwn(parameters, name))
  if (fields.length > maxFields) throw wrong(ownPrefix, `occurs more than ${maxFields} times`)
  const texts = fields.map(({ name, value }) => ({ name, text: fieldText(value.replace(/\r?\n/g, '')) }))
  const named = Map.groupBy(texts, ({ name }) => name)
  for (const [name, list] of named) if (list.length > 1 && !repeatable.includes(name)) throw wrong(name, 'occurs more than once')
  const members = [...named].flatMap(([name, list]) => {
    const values = list.map(({ text }) => text)
    return name === variablesField ? [] : [[parameters[name], name === tagField ? values : values[0]]]
  })
  const options = new JsonFields(Object.fromEntries(members), '', (path, problem) =>
    wrong(fieldOf.get(path.replace(/\[\d+\]$/, '')) ?? path, problem),
  )
  return {
    options: readOptions(options, nowMs),
    variables: Object.fromEntries((named.get(variablesField) ?? []).flatMap(({ text }) => variablesIn(text))),
    octets: own.length === 0 ? octets : withoutFields(octets, ownPrefix),
  }
}

/** A value of another type than text stays JSON. */
function variablesIn(text: string): [string, string][] {
  if (text === '') return []
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw wrong(variablesField, 'is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(variablesField, 'must be a JSON object')
  return Object.entries(value).map(([name, one]) => [name, typeof one === 'string' ? one : JSON.stringify(one)])
}
