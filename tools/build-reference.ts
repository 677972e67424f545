/**
 * Builds the API reference at /docs into dashboard/reference: its page, and its program, compressed. Built once, because the library that
 * makes them holds the whole program as text, and the service would hold it too. `npm run build` and the tests call it.
 */
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { constants, gzipSync } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'dashboard/reference')

const configuration = {
  url: '/v1/openapi.json',
  pageTitle: 'Postrider API',
  withDefaultFonts: false,
  telemetry: false,
  // Hides links to services of the viewer's vendor.
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
} as const

function isUpToDate(): boolean {
  const page = join(folder, 'index.html')
  const sources = [import.meta.filename, join(root, 'package-lock.json')]
  return existsSync(page) && sources.every((path) => !existsSync(path) || statSync(path).mtimeMs <= statSync(page).mtimeMs)
}

/** Returns at once if the build is up to date. */
export async function buildReference(): Promise<void> {
  if (isUpToDate()) return
  const [{ default: fastify }, { default: reference }] = await Promise.all([import('fastify'), import('@scalar/fastify-api-reference')])
  const app = fastify()
  await app.register(reference, { routePrefix: '/docs', configuration })
  const [page, program] = await Promise.all(['/docs/', '/docs/js/scalar.js'].map((url) => app.inject({ url })))
  await app.close()
  if (page?.statusCode !== 200 || program?.statusCode !== 200) throw new Error('the library for the API reference answered with an error')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'scalar.js.gz'), gzipSync(program.rawPayload, { level: constants.Z_BEST_COMPRESSION }))
  writeFileSync(join(folder, 'index.html'), page.rawPayload)
}
