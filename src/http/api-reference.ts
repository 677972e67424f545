/**
 * The OpenAPI document, the API reference at /docs, a page that shows it, and /llms.txt, the list of pages for programs. All are built beforehand (`npm run golden`, `npm run build`),
 * and read when they are asked for.
 */
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Refusal } from '#base'

/** Scripts, styles and data from this server only: the reference must work in a closed network and send no requests elsewhere. */
const policy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'"

const notBuilt = () =>
  new Refusal('not_found', {
    message: 'the API reference is not built; /v1/openapi.json describes the API',
    suggestion: 'Run npm ci && npm run build in the program folder',
  })

export function serveReference(
  app: FastifyInstance,
  { docsFolder, referenceFolder }: { docsFolder: string; referenceFolder: string },
): void {
  const answered = (reply: FastifyReply) => reply.header('content-security-policy', policy)
  const open = async <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? notBuilt() : error
    })

  app.get('/v1/openapi.json', async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(createReadStream(join(docsFolder, 'generated/openapi.json'))),
  )
  app.get('/llms.txt', async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(createReadStream(join(docsFolder, 'generated/llms.txt'))),
  )
  app.get('/docs/', async (request, reply) => {
    // Fastify ignores the slash; the address of the program is relative to it.
    if (!request.url.startsWith('/docs/')) return reply.redirect('/docs/', 301)
    const page = await open(readFile(join(referenceFolder, 'index.html')))
    return answered(reply).type('text/html; charset=utf-8').send(page)
  })
  app.get('/docs/js/scalar.js', async (request, reply) => {
    const packed = createReadStream(join(referenceFolder, 'scalar.js.gz'))
    await open(new Promise((resolve, reject) => packed.once('open', resolve).once('error', reject)))
    answered(reply).type('application/javascript; charset=utf-8').header('vary', 'accept-encoding').header('cache-control', 'no-cache')
    if (/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) return reply.header('content-encoding', 'gzip').send(packed)
    // With `pipe`, the file would stay open once the client is gone: Fastify destroys only the stream that it sends.
    return reply.send(pipeline(packed, createGunzip(), () => undefined))
  })
}
