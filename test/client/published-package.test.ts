/** The package as published: built, small, and used by JavaScript and TypeScript programs that know only its name. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

const run = promisify(execFile)
const tsc = join(process.cwd(), 'node_modules/.bin/tsc')

let service: Service
let folder: string
let installed: string
beforeAll(async () => {
  service = await startService()
  folder = await mkdtemp(join(tmpdir(), 'postrider-client-'))
  installed = join(folder, 'node_modules/@postrider/client')
  await mkdir(installed, { recursive: true })
  await cp('packages/client/package.json', join(installed, 'package.json'))
  await run(tsc, ['-p', 'packages/client', '--outDir', join(installed, 'dist')])
})
afterAll(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
})

test('it has no dependencies, and less than 50 KB of JavaScript', async () => {
  const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as { dependencies?: object }
  expect(dependencies).toBeUndefined()
  const files = (await readdir(join(installed, 'dist'))).filter((name) => name.endsWith('.js'))
  const sizes = await Promise.all(files.map(async (name) => (await stat(join(installed, 'dist', name))).size))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(50_000)
})

test('a program in JavaScript sends with it', async () => {
  await writeFile(
    join(folder, 'send.mjs'),
    `import { Postrider } from '@postrider/client'
const postrider = new Postrider({ apiKey: process.env.KEY, baseUrl: process.env.URL })
const { status } = await postrider.emails.send({ from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello' })
console.log(status)
`,
  )
  const env = { KEY: service.testKey, URL: `http://127.0.0.1:${service.port}/v1` }
  expect(await run(process.execPath, ['send.mjs'], { cwd: folder, env })).toMatchObject({ stdout: 'pending\n' })
})

test('its types hold in the examples', async () => {
  await cp('examples/nextjs', join(folder, 'nextjs'), { recursive: true })
  const strict = [
    '--strict',
    '--noEmit',
    '--target',
    'es2022',
    '--module',
    'esnext',
    '--moduleResolution',
    'bundler',
    '--lib',
    'es2022,dom',
  ]
  const types = ['--types', 'node', '--typeRoots', join(process.cwd(), 'node_modules/@types')]
  const routes = ['welcome', 'webhooks'].map((name) => `nextjs/app/api/${name}/route.ts`)
  await run(tsc, [...strict, ...types, ...routes], { cwd: folder })
})

test('its types hold in a strict program, for browsers, and find mistakes', async () => {
  await writeFile(
    join(folder, 'use.ts'),
    `import { ApiError, Postrider, type WebhookEvent } from '@postrider/client'
const postrider = new Postrider({ apiKey: 'svc_test_x', baseUrl: 'http://localhost:3025/v1' })
export async function subjects(): Promise<string[]> {
  const all: string[] = []
  for await (const { subject } of postrider.emails.list({ status: 'bounced' })) all.push(subject)
  return all
}
export const codeOf = (error: unknown) => (error instanceof ApiError && error.code === 'domain_not_verified' ? error.requestId : undefined)
export const bounced = (event: WebhookEvent) => (event.event === 'MessageBounced' ? event.payload.bounce.to : undefined)
// @ts-expect-error there is no such status
postrider.emails.list({ status: 'lost' })
// @ts-expect-error a subject is needed
void postrider.emails.send({ from: 'a@example.com', to: ['b@example.com'] })
`,
  )
  const strict = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'esnext', '--moduleResolution', 'bundler']
  await run(tsc, [...strict, '--lib', 'es2022,dom,dom.iterable', '--types', '', '--exactOptionalPropertyTypes', 'use.ts'], { cwd: folder })
})
