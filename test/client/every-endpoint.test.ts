/** The client has a method for each endpoint of the published document, and each method calls its endpoint. */
import { expect, test } from 'vitest'
import { Postrider } from '../../packages/client/src/index.ts'
import { openApiDocument } from '../../tools/openapi.ts'

interface Document {
  paths: Record<string, Record<string, { operationId: string }>>
}

const { paths } = (await openApiDocument()) as Document
const endpoints = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({ id: operationId, asked: `${method.toUpperCase()} ${path}` })),
)

async function askedBy(id: string, path: string): Promise<string> {
  let asked = ''
  const fetch = async (url: string, { method }: RequestInit) => {
    asked = `${method} ${decodeURIComponent(new URL(url).pathname)}`
    return Response.json({ success: true, data: [], page: 1, totalPages: 1 })
  }
  const client = new Postrider({ apiKey: 'svc_test_none', baseUrl: 'http://client.test/v1', fetch })
  const names = id.split('.')
  const isTwin = names.length > 2 && names[0] === 'tenants'
  const root: unknown = isTwin ? client.tenant('{tenantId}') : client
  const method = (isTwin ? names.slice(1) : names).reduce((at, name) => (at as Record<string, unknown>)[name], root) as (
    ...words: unknown[]
  ) => unknown
  const given = [...path.matchAll(/\{\w+\}/g)].map(([name]) => name).slice(isTwin ? 1 : 0)
  const stop = new AbortController()
  const result = method(...given, {}, {}, { signal: stop.signal })
  if (result instanceof Promise) await result
  else if (id === 'events.stream')
    await (result as AsyncIterable<unknown>)
      [Symbol.asyncIterator]()
      .next()
      .catch(() => undefined)
  else await (result as { page(): Promise<unknown> }).page()
  return asked
}

test.for(endpoints.filter(({ id }) => id !== 'events.stream'))('$id asks $asked', async ({ id, asked }) => {
  expect(await askedBy(id, asked)).toBe(asked)
})
