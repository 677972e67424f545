/** Compares every response in a test with the published OpenAPI document. A response that the document does not describe fails the test. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { openApiDocument } from '../../tools/openapi.ts'

interface Response {
  headers?: Record<string, object>
  content?: Record<string, { schema: object }>
}
interface Published {
  responses: Record<string, Response | { $ref: string }>
}
interface Components {
  responses: Record<string, Response>
}
type Document = { components: Components; paths: Record<string, Record<string, Published>> }

interface Place {
  form: RegExp
  parameters: number
  path: string
  methods: Record<string, Published>
}

const ajv = new Ajv2020({ strict: false, allErrors: false, allowUnionTypes: true })
// The package is CommonJS; TypeScript and Node see its default export differently.
const formats = addFormats as unknown as (to: Ajv2020) => void
formats(ajv)

let document: Promise<{ places: Place[]; components: Components }> | undefined
const validators = new Map<string, ValidateFunction>()

/** Literal segments take precedence over parameters, as in the router. */
async function read() {
  const { paths, components } = (await openApiDocument()) as Document
  const places = Object.entries(paths)
    .map(([path, methods]) => ({
      path,
      methods,
      parameters: path.split('{').length,
      form: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]*')}/?$`),
    }))
    .sort((a, b) => a.parameters - b.parameters)
  return { places, components }
}

const responseName = /^#\/components\/responses\/(.+)$/

function responseOf(published: Published, status: number, components: Components): Response | undefined {
  const response = published.responses[String(status)]
  return response && '$ref' in response ? components.responses[responseName.exec(response.$ref)?.[1] ?? ''] : response
}

/** The headers of the contract, and those that every response has. */
const contractHeaders = /^(x-(request-id|should-retry|ratelimit-|sendlimit-)|retry-after$|www-authenticate$|idempotent-replayed$)/
const everywhere = /^x-(request-id|ratelimit-)/

/** Returns the fault in the headers of a response, if any. */
function headerProblem(headers: Headers, documented: string[]): string | undefined {
  const lacks = documented.find((name) => everywhere.test(name) && !headers.has(name))
  if (lacks) return `lacks the header ${lacks}`
  const undocumented = [...headers.keys()].find((name) => contractHeaders.test(name) && !documented.includes(name))
  return undocumented && `has the header ${undocumented}, which its OpenAPI document does not have`
}

/** Throws if the document does not describe this response. `path` is below /v1. */
export async function expectInOpenApi(
  method: string,
  path: string,
  answer: { status: number; headers: Headers; text: string },
): Promise<void> {
  document ??= read()
  const { places, components } = await document
  const target = `/v1${path.split(/[?#]/, 1)[0]}`
  const place = places.find(({ form, methods }) => form.test(target) && methods[method.toLowerCase()])
  const published = place?.methods[method.toLowerCase()]
  if (!place || !published || answer.status === 500) return
  const type = (answer.headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
  const what = `${method} ${place.path} answered ${answer.status} ${type}`
  const response = responseOf(published, answer.status, components)
  const schema = response?.content?.[type]?.schema
  if (!schema) throw new Error(`${what}, which its OpenAPI document does not have: ${answer.text.slice(0, 300)}`)
  const wrong = headerProblem(
    answer.headers,
    Object.keys(response.headers ?? {}).map((name) => name.toLowerCase()),
  )
  if (wrong) throw new Error(`${what}, and ${wrong}`)
  if (type !== 'application/json') return
  const { error: told } = JSON.parse(answer.text) as { error?: { field?: string; message: string } }
  if (told?.field !== undefined && !told.message.includes(told.field))
    throw new Error(`${what}, and its message does not name ${told.field}: ${told.message}`)
  let validate = validators.get(what)
  if (!validate) {
    validate = ajv.compile({ ...schema, components })
    validators.set(what, validate)
  }
  if (!validate(JSON.parse(answer.text))) {
    const [error] = validate.errors ?? []
    throw new Error(
      `${what}, and ${error?.instancePath || 'it'} ${error?.message} (${JSON.stringify(error?.params)}): ${answer.text.slice(0, 500)}`,
    )
  }
}
