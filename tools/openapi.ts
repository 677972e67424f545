/** The OpenAPI 3.1 document, generated only from the endpoints' declarations. */
import swagger from '@fastify/swagger'
import fastify from 'fastify'
import Type from 'typebox'
import { type RefusalCode, refusals } from '#base'
import { type Endpoint, failureOf, fastifyPath, pathsOf, refusalsOf, routes } from '#http'
import { type Document, shareParts } from './openapi-parts.ts'

const parameterMeanings: Readonly<Record<string, string>> = {
  emailId: 'Id of an email, as returned by a send',
  tenantId: 'Id of a tenant',
  email: 'An email address, percent-encoded or not',
  webhookId: 'Id or uuid of a webhook',
  deliveryId: 'Id of a delivery',
}

const integerHeader = (description: string) => ({ type: 'integer', description })
const usualHeaders = {
  'X-Request-Id': { type: 'string' },
  'X-RateLimit-Limit': integerHeader('Requests per second'),
  'X-RateLimit-Remaining': integerHeader('Requests left in the window'),
  'X-RateLimit-Reset': integerHeader('Unix seconds'),
}
const sendHeaders = {
  'X-SendLimit-Limit': integerHeader('Emails per clock hour; absent when unlimited'),
  'X-SendLimit-Used': integerHeader('Emails counted in this hour'),
  'X-SendLimit-Remaining': integerHeader('Absent when unlimited'),
  'X-SendLimit-Reset': integerHeader('Unix seconds: top of the next hour'),
}
const replayHeader = {
  'Idempotent-Replayed': { type: 'string', enum: ['true'], description: 'The response is that of an earlier request' },
}
const retryHeaders = {
  'Retry-After': integerHeader('Seconds to wait'),
  'X-Should-Retry': {
    type: 'string',
    enum: ['true', 'false'],
    description: 'true: repeat the request; false: do not. Overrides the status',
  },
}

/** Returns the document, with every endpoint under its full path. */
export async function openApiDocument(): Promise<object> {
  const app = fastify({ exposeHeadRoutes: false })
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => JSON.stringify)
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Postrider',
        version: '1',
        description: 'Transactional email: send messages and follow their delivery. For examples see the [guide](/docs/guide).',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          key: { type: 'http', scheme: 'bearer', description: 'An API key: `svc_live_…`, or `svc_test_…` for simulated delivery' },
        },
      },
      security: [{ key: [] }],
    },
  })
  for (const endpoint of routes) {
    for (const [index, path] of pathsOf(endpoint).entries()) {
      app.route({ method: endpoint.method, url: fastifyPath(path), schema: schemaOf(endpoint, path, index), handler: () => undefined })
    }
  }
  await app.ready()
  const document = app.swagger()
  await app.close()
  shareParts(document as unknown as Document, failureOf(Object.keys(refusals)))
  return document
}

function schemaOf(endpoint: Endpoint, path: string, family: number) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
  const params = Type.Object(Object.fromEntries(names.map((name) => [name, Type.String({ description: parameterMeanings[name] ?? name })])))
  const body = endpoint.documentedBody ?? endpoint.body
  return {
    operationId: family === 0 ? endpoint.name : `tenants.${endpoint.name}`,
    summary: endpoint.summary,
    description: permissionText(endpoint),
    tags: [endpoint.name.split('.', 1)[0] as string],
    ...(names.length > 0 ? { params } : {}),
    ...(endpoint.query ? { querystring: endpoint.query } : {}),
    ...(endpoint.sends ? { headers: idempotencyHeader } : endpoint.streams ? { headers: lastEventHeader } : {}),
    ...(body ? { body } : {}),
    response: { ...doneAnswers(endpoint), ...refusalAnswers(endpoint) },
  }
}

const idempotencyHeader = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[\\w\\-_.~]+$',
      description: 'Each key sends once in 24 hours; a repeated request returns the first response',
    }),
  ),
})

const lastEventHeader = Type.Object({
  'Last-Event-ID': Type.Optional(Type.String({ description: 'Id of the last event received; the stream resumes after it' })),
})

function permissionText({ permission, scope }: Endpoint): string {
  const known: Partial<Record<Endpoint['permission'], string>> = {
    'any key': 'Any valid key',
    'full access': 'A key with full access',
    'full access, or any key of the tenant': 'An organisation-level key with full access, or any key of the tenant',
  }
  const who = known[permission] ?? `Permission \`${permission}\``
  if (scope === 'organisation or tenant') return `${who}.`
  return `${who}, at organisation level${scope === 'organisation' ? '' : ' unless the path names its tenant'}.`
}

const answer = (schema: object, description: string, headers: object, otherTypes: readonly string[] = []) => ({
  description,
  headers: { ...usualHeaders, ...headers },
  content: { 'application/json': { schema }, ...Object.fromEntries(otherTypes.map((type) => [type, { schema: Type.String() }])) },
})

function doneAnswers({ status, reply, sends, streams, otherTypes }: Endpoint): Record<string, object> {
  const headers = sends ? { ...sendHeaders, ...replayHeader } : {}
  if (streams)
    return {
      200: { ...answer(reply, 'Stays open until either side closes it', headers), content: { 'text/event-stream': { schema: reply } } },
    }
  if (status !== 'either') return { [status ?? 200]: answer(reply, 'Done', headers, otherTypes) }
  return { 200: answer(reply, 'It already existed', headers), 201: answer(reply, 'Made', headers) }
}

/** In addition to the headers of every answer. */
const refusalHeaders = (status: number, sends: boolean) => ({
  ...(sends && status !== 401 ? sendHeaders : {}),
  ...(status === 401 ? { 'WWW-Authenticate': { type: 'string', enum: ['Bearer'] } } : {}),
  ...(status === 429 || status === 500 || (sends && status === 400) ? retryHeaders : {}),
})

function refusalAnswers(endpoint: Endpoint): Record<string, object> {
  const byStatus = Map.groupBy(refusalsOf(endpoint), (code) => refusals[code].status)
  const sorted = [...byStatus].sort(([a], [b]) => a - b)
  const meanings = (codes: readonly RefusalCode[]) => codes.map((code) => `\`${code}\`: ${refusals[code].means}`).join('\n\n')
  return Object.fromEntries(
    sorted.map(([status, codes]) => [status, answer(failureOf(codes), meanings(codes), refusalHeaders(status, endpoint.sends))]),
  )
}
