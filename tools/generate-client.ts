/**
 * Generates two files of packages/client from the OpenAPI document: the types of requests and responses, and a method for each endpoint.
 * Endpoints that are also served below a tenant's path are written once, with the path's beginning as a parameter.
 */

interface Schema {
  type?: string | string[]
  enum?: (string | boolean | null)[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  description?: string
  deprecated?: boolean
}
interface Content {
  content?: Record<string, { schema: Schema }>
}
interface Ref {
  $ref: string
}
interface Operation {
  operationId: string
  summary: string
  description: string
  parameters?: { name: string; in: string; description?: string; schema: Schema }[]
  requestBody?: Content | Ref
  responses: Record<string, Content | Ref>
}
export interface ApiDocument {
  components: Record<string, Record<string, unknown>>
  paths: Record<string, Record<string, Operation>>
}

/** Names of the most used types; the others are named after their endpoint. */
const names: Readonly<Record<string, string>> = {
  'emails.send body': 'EmailToSend',
  'emails.send data': 'SentEmail',
  'emails.sendBatch body': 'BatchToSend',
  'emails.sendBatch data': 'SentBatch',
  'emails.sendRaw body': 'RawEmailToSend',
  'emails.list item': 'ListedEmail',
  'emails.retrieve data': 'Email',
  'emails.retrieveDeliveries data': 'EmailDeliveries',
  'emails.reschedule data': 'ScheduledEmail',
  'emails.reschedule body': 'EmailToReschedule',
  'emails.retrieveDeliveries query': 'OfTenant',
  'tenants.create data': 'Tenant',
  'tenants.delete data': 'Deleted',
  'credentials.create data': 'Credential',
  'credentials.retrieve query': 'Reveal',
  'domains.create data': 'Domain',
  'domains.delete data': 'DoneMessage',
  'tracking.create data': 'TrackDomain',
  'suppressions.create data': 'Suppression',
  'webhooks.create data': 'Webhook',
  'webhooks.listDeliveries item': 'WebhookDelivery',
  'limits.retrieve data': 'Limits',
  'test.inbox.list item': 'ReceivedEmail',
  'logs.list item': 'LoggedRequest',
  'transports.create data': 'Transport',
  'transports.share data': 'TransportRule',
}

const pascal = (words: string) => words.replace(/(?:^|[. ])(\w)/g, (_, first: string) => first.toUpperCase())
const isObject = ({ type, properties }: Schema) => properties !== undefined && (type === 'object' || type === undefined)

class Types {
  readonly #byText = new Map<string, string>()
  /** Declarations by name. */
  readonly declared = new Map<string, string>()

  /** The name of an object's type, declared now unless an equal one exists; any other schema is inlined. */
  nameOf(schema: Schema, what: string, goesIn: boolean): string {
    if (!isObject(schema)) return this.write(schema, goesIn, 0)
    const text = this.write(schema, goesIn, 0)
    const known = this.#byText.get(text)
    if (known) return known
    const name = names[what] ?? pascal(what)
    this.#byText.set(text, name)
    this.declared.set(name, `export interface ${name} ${text}`)
    return name
  }

  write(schema: Schema, goesIn: boolean, depth: number): string {
    if (schema.enum) {
      const words = schema.enum.map((word) => JSON.stringify(word).replace(/^"(.*)"$/, "'$1'"))
      const orNull = schema.type?.includes('null') && !words.includes('null') ? ['null'] : []
      return [...words, ...orNull].join(' | ')
    }
    // `{}` allows any value.
    if (Object.keys(schema).length === 0) return 'unknown'
    const types = [schema.type ?? 'object'].flat()
    return [...new Set(types.map((type) => this.#one(type, schema, goesIn, depth)))].join(' | ')
  }

  #one(type: string, schema: Schema, goesIn: boolean, depth: number): string {
    if (type === 'integer' || type === 'number') return 'number'
    if (type === 'array') {
      const item = this.write(schema.items ?? {}, goesIn, depth)
      return item.includes('|') ? `(${item})[]` : `${item}[]`
    }
    if (type !== 'object') return type
    if (!schema.properties) {
      const values = schema.additionalProperties
      return `Record<string, ${typeof values === 'object' ? this.write(values, goesIn, depth) : 'unknown'}>`
    }
    return `{\n${this.#fields(schema, goesIn, depth + 1)}${'  '.repeat(depth)}}`
  }

  #fields({ properties = {}, required = [] }: Schema, goesIn: boolean, depth: number): string {
    const indent = '  '.repeat(depth)
    const lines = Object.entries(properties).map(([name, schema]) => {
      const isOptional = !required.includes(name)
      const notes = [...(schema.description ? [schema.description] : []), ...(schema.deprecated ? ['@deprecated'] : [])].join(' ')
      const written = this.write(schema, goesIn, depth)
      const type = isOptional && goesIn && written !== 'unknown' ? `${written} | undefined` : written
      return `${notes ? `${indent}/** ${notes.replaceAll('*/', '* /')} */\n` : ''}${indent}${name}${isOptional ? '?' : ''}: ${type}\n`
    })
    return lines.join('')
  }
}

/** Text of two files: the types, which import nothing, and the methods, which import them. */
export function clientApi(document: ApiDocument): { types: string; methods: string } {
  const types = new Types()
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path: path.slice('/v1'.length), method: method.toUpperCase(), operation })),
  )
  const ids = new Set(all.map(({ operation }) => operation.operationId))
  const own = all.filter(({ operation: { operationId: id } }) => !(id.startsWith('tenants.') && ids.has(id.slice('tenants.'.length))))
  const hasTwin = (id: string) => ids.has(`tenants.${id}`)
  const made = own.map(({ path, method, operation }) => ({
    id: operation.operationId,
    text: methodText(document, types, { path, method, operation, under: hasTwin(operation.operationId) ? '${under}' : '' }),
  }))
  const codes = (document.components.schemas as Record<string, Schema>).Failure?.properties?.error?.properties?.code?.enum ?? []
  const head = '/** Made from the OpenAPI document by `npm run golden`. Do not edit. */\n'
  return {
    types: `${head}
/** What a request may be refused with. */
export type ErrorCode =
${codes.map((code) => `  | '${code}'`).join('\n')}

${[...types.declared.values()].join('\n\n')}
`,
    methods: `${head}import { type Api, at, type Options, type SendOptions } from './api.ts'
import type {
${[...types.declared.keys()]
  .sort()
  .map((name) => `  ${name},`)
  .join('\n')}
} from './generated-types.ts'
import type { Pages } from './pages.ts'
import type { EventStream } from './stream.ts'

/** What is the organisation's own; a tenant is named in the body or query, or not at all. */
export const organisationApi = (api: Api) => (${tree(made.filter(({ id }) => !hasTwin(id)))})

/** What exists for the organisation and, below \`/tenants/…\`, for each tenant. */
export const sharedApi = (api: Api, under: string) => (${tree(made.filter(({ id }) => hasTwin(id)))})
`,
  }
}

interface Method {
  path: string
  method: string
  operation: Operation
  under: string
}

function methodText(document: ApiDocument, types: Types, { path, method, operation, under }: Method): string {
  const { operationId: id, parameters = [] } = operation
  const done = Object.entries(operation.responses).find(([status]) => status.startsWith('2'))?.[1] ?? {}
  const answers = resolved(document, done).content ?? {}
  const envelope = answers['application/json']?.schema
  const query = parameters.filter((one) => one.in === 'query')
  const isList = envelope?.properties?.totalPages !== undefined
  const sends = parameters.some(({ name }) => name === 'Idempotency-Key')
  const body = operation.requestBody && resolved(document, operation.requestBody).content?.['application/json']?.schema

  const pathNames = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
  const isNumber = (name: string) => name === 'credentialId' || name === 'domainId'
  const words = pathNames.map((name) => `${name}: string${isNumber(name) ? ' | number' : ''}`)
  if (body) words.push(`body: ${types.nameOf(body, `${id} body`, true)}`)
  if (query.length > 0) words.push(`query: ${types.nameOf(querySchema(query), `${id} query`, true)} = {}`)
  const target = `\`${under}${path.replace(/\{(\w+)\}/g, '${at($1)}')}\``
  const passed = [...(body ? ['body'] : []), ...(query.length > 0 ? ['query'] : []), 'options']
  const note = `/** ${operation.summary}. ${operation.description.replaceAll('*/', '* /')} */\n`

  words.push(`options: ${sends ? 'SendOptions' : 'Options'} = {}`)
  if (answers['text/event-stream'])
    return `${note}METHOD(${words.join(', ')}): EventStream {\n  return api.stream(${target}, query, options)\n}`
  if (isList) {
    const item = types.nameOf(envelope?.properties?.data?.items ?? {}, `${id} item`, false)
    return `${note}METHOD(${words.join(', ')}): Pages<${item}> {\n  return api.pages(${target}, query, options)\n}`
  }
  if (envelope?.properties?.data === undefined) {
    return `${note}METHOD(${words.join(', ')}): Promise<string> {\n  return api.text(${target}, query, options)\n}`
  }
  const data = types.nameOf(envelope.properties.data, `${id} data`, false)
  return `${note}METHOD(${words.join(', ')}): Promise<${data}> {\n  return api.${sends ? 'send' : 'ask'}(${sends ? '' : `'${method}', `}${target}, { ${passed.join(', ')} })\n}`
}

const querySchema = (query: NonNullable<Operation['parameters']>): Schema => ({
  type: 'object',
  properties: Object.fromEntries(
    query.map(({ name, schema, description }) => [name, { ...schema, ...(description ? { description } : {}) }]),
  ),
})

function resolved(document: ApiDocument, part: Content | Ref): Content {
  if (!('$ref' in part)) return part
  const [, kind = '', name = ''] = /^#\/components\/(\w+)\/(.+)$/.exec(part.$ref) ?? []
  return document.components[kind]?.[name] as Content
}

/** `test.inbox.list` is the method `list` of the object `inbox` in the object `test`. */
function tree(methods: readonly { id: string; text: string }[]): string {
  interface Branch {
    [name: string]: Branch | string
  }
  const root: Branch = {}
  for (const { id, text } of methods) {
    const path = id.split('.')
    const name = path.pop() as string
    const branch = path.reduce<Branch>((at, word) => (at[word] ??= {}) as Branch, root)
    branch[name] = text.replace('METHOD', name)
  }
  const indented = (text: string, depth: number) => text.replace(/^(?=.)/gm, '  '.repeat(depth))
  const write = (branch: Branch, depth: number): string => {
    const entries = Object.entries(branch).map(([name, value]) =>
      typeof value === 'string'
        ? `${indented(value, depth)},\n`
        : `${'  '.repeat(depth)}${name}: {\n${write(value, depth + 1)}${'  '.repeat(depth)}},\n`,
    )
    return entries.join('')
  }
  return `{\n${write(root, 1)}}`
}
