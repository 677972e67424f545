/**
 * Liquid within bounds. A template has no files, no code and no tags or filters beyond those listed here. Each step is bounded in its input
 * and its output, and the processor time between two steps is counted, so that a hostile template ends soon. Output in HTML is escaped unless
 * the template says `raw`.
 */
import { CaptureTag, Context, type Emitter, filters, Liquid, type Template, toValueSync } from 'liquidjs'
import { LRUCache } from 'lru-cache'

/** Processor time of all parts of one message. One step more may follow, which takes a few milliseconds. */
const budgetUs = 35_000
export const maxOutputOctets = 5_242_880
/** Of a value on the way, such as the input of a filter. */
const maxValueLength = 100_000
const maxItems = 10_000
const maxResultLength = 1_000_000
/** Items of ranges and characters of values, together. */
const maxWork = 8_000_000
/** Outputs and tags of one part. */
const maxTags = 3000
const cachedLength = 4_000_000

export const parts = ['subject', 'html', 'text'] as const
export type TemplatePart = (typeof parts)[number]
/** Absent or null: the message has no such part. */
export type Source = { subject: string } & { [Name in 'html' | 'text']?: string | null | undefined }

const allowedFilters =
  `abs append at_least at_most capitalize ceil compact concat date default divided_by downcase escape escape_once first floor join json last
  lstrip map minus modulo newline_to_br plus prepend raw remove remove_first replace replace_first reverse round rstrip size slice sort
  sort_natural split strip strip_newlines sum times truncate truncatewords uniq upcase url_decode url_encode where`.split(/\s+/)
const allowedTags = 'assign break capture case comment continue cycle for if raw unless #'.split(' ')

type Filter = (this: unknown, value: unknown, ...given: unknown[]) => unknown

/** An error in a template that its author can correct. */
export class TemplateProblem extends Error {
  readonly part: TemplatePart
  constructor(part: TemplatePart, message: string) {
    super(message)
    this.part = part
  }
}

const refuse = (message: string): never => {
  throw new Error(message)
}

function refuseLarge(value: unknown): void {
  if (typeof value === 'string' && value.length > maxValueLength) refuse(`a value has more than ${maxValueLength} characters`)
  if (Array.isArray(value) && value.length > maxItems) refuse(`a list has more than ${maxItems} items`)
}

/** How many times an argument can occur in the result. */
const repeats = (name: string, value: unknown) =>
  name.startsWith('replace') || name === 'join' || name === 'json' ? ((value as { length?: number } | null)?.length ?? 0) + 1 : 1

function bounded(name: string, filter: Filter): Filter {
  return function (value, ...given) {
    for (const one of [value, ...given]) refuseLarge(one)
    const length = Math.max(0, ...given.map((one) => (typeof one === 'string' ? one.length : 0)))
    if (length * repeats(name, value) > maxResultLength || (name === 'date' && length > 100))
      refuse(`the result of ${name} would be too long`)
    const result = filter.call(this, value, ...given)
    if (typeof result === 'string' && result.length > maxResultLength) refuse(`the result of ${name} is too long`)
    return result
  }
}

/** Values as Liquid prints them; an object as JSON. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(textOf).join('')
  return value == null ? '' : typeof value === 'number' || typeof value === 'boolean' ? String(value) : JSON.stringify(value)
}

/** Collects output. It refuses before the text grows beyond the bound, because even text that is only linked together takes time. */
class BoundedEmitter implements Emitter {
  buffer = ''
  readonly #maxLength: number

  constructor(maxLength: number) {
    this.#maxLength = maxLength
  }
  write(value: unknown): void {
    const text = textOf(value)
    if (this.buffer.length + text.length > this.#maxLength) refuse(`the output has more than ${this.#maxLength} characters`)
    this.buffer += text
  }
}

class BoundedCapture extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    const emitter = new BoundedEmitter(maxValueLength)
    yield this.liquid.renderer.renderTemplates(this.templates, context, emitter)
    const scope = context.bottom() as Record<string, unknown>
    scope[this.variable] = emitter.buffer
  }
}

function openEngine(escapes: boolean): Liquid {
  const engine = new Liquid({
    ...(escapes ? { outputEscape: 'escape' as const } : {}),
    strictVariables: true,
    lenientIf: true,
    strictFilters: true,
    ownPropertyOnly: true,
    templates: {},
    timezoneOffset: 0,
    locale: 'en-GB',
  })
  for (const name of Object.keys(engine.tags)) if (!allowedTags.includes(name)) delete engine.tags[name]
  for (const name of Object.keys(engine.filters)) if (!allowedFilters.includes(name)) delete engine.filters[name]
  for (const name of allowedFilters) {
    const filter = filters[name] as Filter | { handler: Filter; raw: boolean }
    if (typeof filter === 'function') engine.registerFilter(name, bounded(name, filter) as never)
  }
  engine.registerTag('capture', BoundedCapture)
  return engine
}

const engines = { subject: openEngine(false), html: openEngine(true), text: openEngine(false) }
const parsed = new LRUCache<string, Template[]>({ maxSize: cachedLength, sizeCalculation: (_, key) => key.length })

function parse(part: TemplatePart, text: string): Template[] {
  const key = `${part} ${text}`
  const known = parsed.get(key)
  if (known) return known
  if ((text.match(/\{[{%]/g)?.length ?? 0) > maxTags) refuse(`has more than ${maxTags} tags`)
  const templates = engines[part].parse(text)
  parsed.set(key, templates)
  return templates
}

/** Counts the processor time of this thread and the items that a template makes. The engine calls it before each step. */
class Budget {
  readonly #since = process.threadCpuUsage()
  #work = 0

  spentUs(): number {
    const { user, system } = process.threadCpuUsage(this.#since)
    return user + system
  }
  check(): void {
    if (this.spentUs() > budgetUs) refuse('it takes too long')
  }
  use(count: number): void {
    this.check()
    if (!(count > 0)) return
    this.#work += count
    if (count > maxResultLength / 5 || this.#work > maxWork) refuse('it makes too much')
  }
}

export interface Rendered {
  subject: string
  html: string | null
  text: string | null
}

/** Throws `TemplateProblem`. */
export function renderSource(source: Source, variables: object): { rendered: Rendered; spentUs: number } {
  parseSource(source)
  const budget = new Budget()
  const made = parts.map((part) => {
    const text = source[part]
    return text == null ? null : inPart(part, () => renderPart(part, parse(part, text), variables, budget))
  })
  const [subject, html, text] = made as [string, string | null, string | null]
  // A header field is one line.
  return { rendered: { subject: subject.replace(/\s+/g, ' ').trim(), html, text }, spentUs: budget.spentUs() }
}

function renderPart(part: TemplatePart, templates: Template[], variables: object, budget: Budget): string {
  const engine = engines[part]
  const limits = { memoryLimit: budget, renderLimit: budget, liquid: engine } as unknown as { liquid: Liquid }
  const context = new Context(variables, engine.options, { sync: true }, limits)
  const emitter = new BoundedEmitter(maxOutputOctets)
  toValueSync(engine.renderer.renderTemplates(templates, context, emitter))
  if (Buffer.byteLength(emitter.buffer) > maxOutputOctets) refuse('the output is larger than 5 MB')
  return emitter.buffer
}

/** Throws `TemplateProblem` for text that is not a template. */
export function parseSource(source: Source): void {
  for (const part of parts) {
    const text = source[part]
    if (text != null) inPart(part, () => parse(part, text))
  }
}

const maxMessageLength = 200

function inPart<Made>(part: TemplatePart, make: () => Made): Made {
  try {
    return make()
  } catch (error) {
    const [message = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
    throw new TemplateProblem(part, message.slice(0, maxMessageLength).toWellFormed().replaceAll('\0', '\ufffd'))
  }
}
