/**
 * Liquid within bounds. A template has no files, no code and no tags or filters beyond those listed here. Each step is bounded in its input
 * and its output, and the processor time between two steps is counted, so that a hostile template ends soon. Output in HTML is escaped unless
 * the template says `raw`.
 */
import { filters, Liquid, type Template, Tokenizer, toValueSync } from 'liquidjs'
import { LRUCache } from 'lru-cache'
import { Budget, bounded, boundedEscape, type LiquidFilter, refuseTemplate } from './liquid-bounds.ts'
import { BoundedCapture, BoundedCase, BoundedContext, BoundedCycle, BoundedEmitter, BoundedFor, boundedOperators } from './liquid-tags.ts'

export const maxOutputOctets = 5_242_880
/** Outputs and tags of one part. */
const maxTags = 3000
/** Of one tag, without its texts in quotes. */
const maxTagLength = 10_000
const maxTagFilters = 100
/** A parsed template needs up to a hundred times the memory of its text. */
const cachedLength = 300_000

export const parts = ['subject', 'html', 'text'] as const
export type TemplatePart = (typeof parts)[number]
/** Absent or null: the message has no such part. */
export type Source = { subject: string } & { [Name in 'html' | 'text']?: string | null | undefined }

const allowedFilters =
  `abs append at_least at_most capitalize ceil compact concat date default divided_by downcase escape escape_once first floor join json last
  lstrip map minus modulo newline_to_br plus prepend raw remove remove_first replace replace_first reverse round rstrip size slice sort
  sort_natural split strip strip_newlines sum times truncate truncatewords uniq upcase url_decode url_encode where`.split(/\s+/)
const allowedTags = 'assign break capture case comment continue cycle for if raw unless #'.split(' ')

/** An error in a template that its author can correct. */
export class TemplateProblem extends Error {
  readonly part: TemplatePart
  constructor(part: TemplatePart, message: string) {
    super(message)
    this.part = part
  }
}

const boundedTags = { capture: BoundedCapture, case: BoundedCase, cycle: BoundedCycle, for: BoundedFor }

function openEngine(escapes: boolean): Liquid {
  const engine = new Liquid({
    ...(escapes ? { outputEscape: boundedEscape(filters['escape'] as never) as never } : {}),
    operators: boundedOperators as never,
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
    const filter = filters[name] as unknown as LiquidFilter | { handler: LiquidFilter; raw: boolean }
    if (typeof filter === 'function') engine.registerFilter(name, bounded(name, filter) as never)
  }
  for (const [name, tag] of Object.entries(boundedTags)) engine.registerTag(name, tag)
  return engine
}

const engines = { subject: openEngine(false), html: openEngine(true), text: openEngine(false) }
const parsed = new LRUCache<string, Template[]>({ maxSize: cachedLength, sizeCalculation: (_, key) => key.length })

function parse(part: TemplatePart, text: string): Template[] {
  const key = `${part} ${text}`
  const known = parsed.get(key)
  if (known) return known
  if ((text.match(/\{[{%]/g)?.length ?? 0) > maxTags) refuseTemplate(`has more than ${maxTags} tags`)
  const { options, parser } = engines[part]
  const tokens = new Tokenizer(text, options.operators).readTopLevelTokens(options)
  for (const token of tokens) if ('trimLeft' in token && 'contentRange' in token) checkTag(token.getText())
  const templates = parser.parseTokens(tokens)
  parsed.set(key, templates)
  return templates
}

/** A long tag makes a large syntax tree, and much of its work is one step. */
function checkTag(text: string): void {
  const bare = text.replace(/"[^"]*"|'[^']*'/g, '')
  if (bare.length > maxTagLength) refuseTemplate(`has a tag of more than ${maxTagLength} characters`)
  if (bare.split('|').length - 1 > maxTagFilters) refuseTemplate(`has a tag with more than ${maxTagFilters} filters`)
}

export interface Rendered {
  subject: string
  html: string | null
  text: string | null
}

/** Throws `TemplateProblem`. */
export function renderSource(source: Source, variables: object): { rendered: Rendered; spentUs: number } {
  const templates = parseSource(source)
  const budget = new Budget()
  const made = parts.map((part) => {
    const parsedPart = templates[part]
    return parsedPart ? inPart(part, () => renderPart(part, parsedPart, variables, budget)) : null
  })
  const [subject, html, text] = made as [string, string | null, string | null]
  // A header field is one line.
  return { rendered: { subject: subject.replace(/\s+/g, ' ').trim(), html, text }, spentUs: budget.spentUs() }
}

function renderPart(part: TemplatePart, templates: Template[], variables: object, budget: Budget): string {
  const engine = engines[part]
  const limits = { memoryLimit: budget, renderLimit: budget, liquid: engine } as unknown as { liquid: Liquid }
  const context = new BoundedContext(variables, engine.options, { sync: true }, limits)
  const emitter = new BoundedEmitter(maxOutputOctets, budget)
  toValueSync(engine.renderer.renderTemplates(templates, context, emitter))
  if (Buffer.byteLength(emitter.buffer) > maxOutputOctets) refuseTemplate('the output is larger than 5 MB')
  return emitter.buffer
}

/** Throws `TemplateProblem` for text that is not a template. */
export function parseSource(source: Source): { [Name in TemplatePart]?: Template[] } {
  const templates: { [Name in TemplatePart]?: Template[] } = {}
  for (const part of parts) {
    const text = source[part]
    if (text != null) templates[part] = inPart(part, () => parse(part, text))
  }
  return templates
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
