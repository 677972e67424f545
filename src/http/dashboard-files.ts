/**
 * The dashboard's built files, read once at the start and served from memory; other paths are not found. Its pages load only from this
 * origin, run no inline script, and cannot be framed.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { constants, gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '#base'

/** A file served from memory. */
export interface StaticFile {
  type: string
  octets: Buffer
  /** Compressed at the first request: all files together take 60 ms, which a start does not spend. */
  readonly zipped: () => Buffer
  tag: string
}

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json; charset=utf-8',
  woff2: 'font/woff2',
}

/** First path segments that the dashboard's router handles, at any depth. */
const places =
  'sign-in queue transports emails inbox domains mail-in tracking suppressions reputation dmarc webhooks templates keys usage logs tenants members audit settings'.split(
    ' ',
  )

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

export const documentHeaders = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
} as const

/** Keyed by path, such as `/assets/index-1a2b.js`; empty if the dashboard was not built. */
export function readPages(folder: string): Map<string, StaticFile> {
  if (!existsSync(join(folder, 'index.html'))) return new Map()
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(join(folder, name)).isFile())
  return new Map(
    files.map((name) => {
      const path = `/${relative(folder, join(folder, name)).replaceAll('\\', '/')}`
      const type = types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
      return [path, staticFileOf(readFileSync(join(folder, name)), type)]
    }),
  )
}

export function staticFileOf(octets: Buffer, type: string): StaticFile {
  const tag = `"${createHash('sha256').update(octets).digest('base64url').slice(0, 16)}"`
  let zipped: Buffer | undefined
  const zip = () => {
    zipped ??= gzipSync(octets, { level: constants.Z_BEST_COMPRESSION })
    return zipped
  }
  return { type, octets, zipped: zip, tag }
}

const howToBuild = 'npm ci && npm run build'

/** Logged at the start. */
export const notBuilt = `the dashboard is not built: its pages and sign-in links return 404. Run ${howToBuild} in the program folder, then restart the service`

const wantsPage = /(^|,)\s*text\/html\b/i

/** Shows a page to a browser at an unknown address; programs get JSON. Returns undefined if it did not answer. */
export function showNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  const isAsked = (request.method === 'GET' || request.method === 'HEAD') && wantsPage.test(String(request.headers.accept ?? ''))
  if (!isAsked) return undefined
  return messagePage(reply, 404, {
    title: 'Page not found',
    paragraphs: ['This address does not exist. Continue with one of these pages:'],
    links: [
      ['/', 'Dashboard'],
      ['/docs/guide', 'Guide'],
      ['/docs', 'API reference'],
    ],
  })
}

interface Message {
  title: string
  paragraphs: readonly string[]
  /** Address and name. */
  links: readonly (readonly [string, string])[]
}

/** Answers with a page of its own, which needs no file of the dashboard. */
export const messagePage = (reply: FastifyReply, status: number, message: Message): FastifyReply =>
  reply
    .code(status)
    .headers({
      ...documentHeaders,
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      'cache-control': 'no-store',
    })
    .type('text/html; charset=utf-8')
    .send(messageDocument(message))

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const inHtml = (text: string) => text.replace(/[&<>"]/g, (letter) => escapes[letter] ?? letter)

const messageDocument = ({ title, paragraphs, links }: Message) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${inHtml(title)} · Postrider</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto; padding: 0 1.5rem; color: light-dark(#16202c, #e6ebf1); background: light-dark(#fff, #101418) }
a { color: light-dark(#1d4ed8, #7fb0ff) }
</style>
</head>
<body>
<main>
<h1>${inHtml(title)}</h1>
${paragraphs.map((text) => `<p>${inHtml(text)}</p>`).join('\n')}
<ul>
${links.map(([address, name]) => `<li><a href="${inHtml(address)}">${inHtml(name)}</a></li>`).join('\n')}
</ul>
</main>
</body>
</html>
`

export function servePages(app: FastifyInstance, pages: ReadonlyMap<string, StaticFile>): void {
  const index = pages.get('/index.html')
  if (!index) {
    app.get('/', async () => ({
      service: 'postrider',
      api: '/v1',
      reference: '/docs',
      guide: '/docs/guide',
      openapi: '/v1/openapi.json',
      dashboard: `not built. Run ${howToBuild}, then restart the service`,
    }))
    const refuse = async () => {
      throw new Refusal('not_found', {
        message: 'the dashboard is not built',
        suggestion: `Run ${howToBuild}, then restart the service`,
      })
    }
    for (const place of places) {
      app.get(`/${place}`, refuse)
      app.get(`/${place}/*`, refuse)
    }
    return
  }
  const showIndex = async (request: FastifyRequest, reply: FastifyReply) => sendStaticFile(index, request, reply, 'no-cache')
  app.get('/', showIndex)
  // Browsers request it regardless of the page's icon link.
  const icon = pages.get('/icon.svg')
  if (icon) app.get('/favicon.ico', async (request, reply) => sendStaticFile(icon, request, reply, 'no-cache'))
  for (const place of places) {
    app.get(`/${place}`, showIndex)
    app.get(`/${place}/*`, showIndex)
  }
  for (const [path, page] of pages) {
    if (page === index) continue
    const isHashed = path.startsWith('/assets/')
    app.get(path, async (request, reply) =>
      sendStaticFile(page, request, reply, isHashed ? 'public, max-age=31536000, immutable' : 'no-cache'),
    )
  }
}

export function sendStaticFile(
  { type, octets, zipped, tag }: StaticFile,
  request: FastifyRequest,
  reply: FastifyReply,
  caching: string,
  policy: string = documentHeaders['content-security-policy'],
): FastifyReply {
  reply.headers({ ...documentHeaders, 'content-security-policy': policy, etag: tag, vary: 'accept-encoding', 'cache-control': caching })
  if (request.headers['if-none-match'] === tag) return reply.code(304).send()
  const takesGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  if (takesGzip) reply.header('content-encoding', 'gzip')
  return reply.type(type).send(takesGzip ? zipped() : octets)
}
