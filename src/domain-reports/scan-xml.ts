/**
 * Scans the part of XML that reports use: elements, text, CDATA, comments, the five named entities and character references. A document
 * type is refused, and with it every entity of its own, so no text can grow. Linear in time; limited in depth and in the length of names.
 */
import { UnreadableReport } from './unreadable-report.ts'

export interface XmlVisitor {
  /** `name` without its namespace prefix. */
  open(name: string): void
  /** A piece of the text of the innermost element. */
  text(text: string): void
  close(name: string): void
}

const maxDepth = 20
const maxNameLength = 100
const maxTagLength = 10_000
const nameForm = /^[A-Za-z_\u0080-\uffff][-\w.:\u0080-\uffff]*/

/** Ends after the first element. Throws UnreadableReport. */
export function scanXml(xml: string, visitor: XmlVisitor): void {
  const open: string[] = []
  let at = xml.charCodeAt(0) === 0xfeff ? 1 : 0
  for (;;) {
    const next = xml.indexOf('<', at)
    if (next < 0) throw wrong('ends too early')
    if (open.length > 0 && next > at) visitor.text(unescaped(xml.slice(at, next)))
    else if (open.length === 0 && !isBlank(xml, at, next)) throw wrong('has text before its first element')
    if (xml.startsWith('<!--', next)) at = after(xml, '-->', next + 4)
    else if (xml.startsWith('<?', next)) at = after(xml, '?>', next + 2)
    else if (xml.startsWith('<![CDATA[', next) && open.length > 0) {
      at = after(xml, ']]>', next + 9)
      visitor.text(xml.slice(next + 9, at - 3))
    } else if (xml.startsWith('<!', next)) throw new UnreadableReport('has a document type or entities, which are not accepted')
    else {
      at = element(xml, next, open, visitor)
      if (open.length === 0) return
    }
  }
}

/** Handles one tag; returns the position after it. */
function element(xml: string, start: number, open: string[], visitor: XmlVisitor): number {
  const closes = xml[start + 1] === '/'
  const nameAt = start + (closes ? 2 : 1)
  const [qualified] = nameForm.exec(xml.slice(nameAt, nameAt + maxNameLength)) ?? []
  if (qualified === undefined) throw wrong('has a malformed tag')
  const name = qualified.slice(qualified.indexOf(':') + 1)
  const end = endOfTag(xml, nameAt + qualified.length)
  if (closes) {
    if (open.pop() !== qualified) throw wrong('has tags that do not match')
    visitor.close(name)
    return end
  }
  if (open.length >= maxDepth) throw wrong(`has more than ${maxDepth} levels`)
  visitor.open(name)
  if (xml[end - 2] === '/') visitor.close(name)
  else open.push(qualified)
  return end
}

/** The position after the `>` of a tag; it may occur inside the quotes of an attribute. */
function endOfTag(xml: string, from: number): number {
  let quote = ''
  for (let at = from; at < xml.length && at - from < maxTagLength; at++) {
    const character = xml[at] as string
    if (quote !== '') {
      if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (character === '>') return at + 1
    else if (character === '<') break
  }
  throw wrong('has a malformed tag')
}

function after(xml: string, mark: string, from: number): number {
  const at = xml.indexOf(mark, from)
  if (at < 0) throw wrong('ends too early')
  return at + mark.length
}

function isBlank(xml: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (xml.charCodeAt(at) > 32) return false
  return true
}

const wrong = (what: string) => new UnreadableReport(`is not well-formed XML: it ${what}`)

/** Half of a surrogate pair is no character, and the database would change it. */
const isCharacter = (point: number) => point > 0 && point < 0x110000 && !(point >= 0xd800 && point <= 0xdfff)

/** A map, because an object also has names of its prototype. */
const named: ReadonlyMap<string, string> = new Map(Object.entries({ lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }))

function unescaped(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w{1,10}));|&/g, (whole, decimal?: string, hex?: string, name?: string) => {
    const known = name === undefined ? undefined : named.get(name)
    if (known !== undefined) return known
    const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
    if (whole === '&' || name !== undefined || !isCharacter(point)) throw wrong('has an unknown entity')
    return String.fromCodePoint(point)
  })
}
