/** Holds every answer that a test gets against the published OpenAPI document: an answer the document does not describe fails the test. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { openApiDocument } from '#http'

interface Published {
  responses: Record<string, { content?: Record<string, { schema: object }> }>
}
type Document = { paths: Record<string, Record<string, Published>> }

interface Place {
  form: RegExp
  parameters: number
  path: string
  methods: Record<string, Published>
}

const ajv = new Ajv2020({ strict: false, allErrors: false, allowUnionTypes: true })
// The package is CommonJS, whose default export TypeScript and Node see differently.
const formats = addFormats as unknown as (to: Ajv2020) => void
formats(ajv)

let document: Promise<Place[]> | undefined
const validators = new Map<string, ValidateFunction>()

/** Literal segments win over parameters, as in the router. */
async function places(): Promise<Place[]> {
  const { paths } = (await openApiDocument()) as Document
  return Object.entries(paths)
    .map(([path, methods]) => ({
      path,
      methods,
      parameters: path.split('{').length,
      form: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]*')}/?$`),
    }))
    .sort((a, b) => a.parameters - b.parameters)
}

/** Throws when the document does not describe this answer. `path` is below /v1. */
export async function expectPublished(
  method: string,
  path: string,
  answer: { status: number; headers: Headers; text: string },
): Promise<void> {
  document ??= places()
  const target = `/v1${path.split(/[?#]/, 1)[0]}`
  const place = (await document).find(({ form, methods }) => form.test(target) && methods[method.toLowerCase()])
  const published = place?.methods[method.toLowerCase()]
  if (!place || !published || answer.status === 500) return
  const type = (answer.headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
  const what = `${method} ${place.path} answered ${answer.status} ${type}`
  const schema = published.responses[String(answer.status)]?.content?.[type]?.schema
  if (!schema) throw new Error(`${what}, which its OpenAPI document does not have: ${answer.text.slice(0, 300)}`)
  if (type !== 'application/json') return
  let validate = validators.get(what)
  if (!validate) {
    validate = ajv.compile(schema)
    validators.set(what, validate)
  }
  if (!validate(JSON.parse(answer.text))) {
    const [error] = validate.errors ?? []
    throw new Error(
      `${what}, and ${error?.instancePath || 'it'} ${error?.message} (${JSON.stringify(error?.params)}): ${answer.text.slice(0, 500)}`,
    )
  }
}
