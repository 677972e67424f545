/**
 * The pages are true. Every block in a language that runs is executed from its page, against the service as `npm start` starts it, and
 * every link resolves. A block in `console` is for other machines; one marked `fragment` is a part of a program.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { type Received, type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const run = promisify(execFile)
const docs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name.replaceAll('\\', '/')}`)
const pages = [
  ...docs.filter((path) => path.endsWith('.md')),
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'packages/client/README.md',
].sort()
const textOf = (page: string) => readFileSync(page, 'utf8')

interface Block {
  page: string
  language: string
  text: string
}

const blocks: Block[] = pages.flatMap((page) =>
  [...textOf(page).matchAll(/^ *```(\w+)( fragment)?\n([\s\S]*?)^ *```$/gm)].flatMap(([, language = '', isFragment, text = '']) =>
    isFragment ? [] : [{ page, language, text }],
  ),
)
const blocksIn = (page: string, language: string) => blocks.filter((one) => one.page === page && one.language === language)

let service: ServiceProcess
let receiver: Receiver
let folder: string
let environment: Record<string, string>
let tenantId: string
beforeAll(async () => {
  service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_DNS: `127.0.0.1:${await freePort()}`,
  })
  receiver = await startReceiver()
  folder = await mkdtemp(join(tmpdir(), 'postrider-pages-'))
  const tenants = (await service.call('GET', '/tenants')).body.data as { id: string }[]
  tenantId = tenants[0]?.id ?? ''

  // The reader's tools: the client, another package, and a `postrider` command that belongs to this service.
  const installed = join(folder, 'node_modules/@postrider/client')
  await mkdir(installed, { recursive: true })
  await cp('packages/client/package.json', join(installed, 'package.json'))
  await run('node_modules/.bin/tsc', ['-p', 'packages/client', '--outDir', join(installed, 'dist')])
  for (const name of ['standardwebhooks', 'resend', 'postmark', '@sendgrid', '@aws-sdk', 'mailgun.js'])
    await symlink(resolve('node_modules', name), join(folder, 'node_modules', name))
  const program = async (name: string, text: string) => {
    await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`)
    await chmod(join(folder, name), 0o755)
  }
  await program('postrider', `exec '${process.execPath}' '${resolve('bin/postrider.js')}' "$@"`)
  await program('npx', '[ "$1" = postrider ] && exec "$@"')
  // Makes curl fail on an error response; the pages need not say so.
  await program(
    'curl',
    `exec ${execFileSync('sh', ['-c', 'command -v curl']).toString().trim()} --silent --show-error --fail-with-body "$@"`,
  )
  environment = { ...(service.environment as Record<string, string>), PATH: `${folder}:${process.env.PATH}`, TENANT: tenantId }
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

/** Fills in the placeholders as a reader would. */
const filled = (text: string) =>
  text.replaceAll('http://localhost:3025', service.url).replaceAll('svc_test_…', service.testKey).replaceAll('svc_live_…', service.liveKey)

/** This page has a test of its own. */
const testingPage = 'docs/testing-your-email.md'
const webhooksPage = 'docs/webhooks.md'

const shellPages = [...new Set(blocks.filter(({ language }) => language === 'sh').map(({ page }) => page))].filter(
  (page) => page !== testingPage,
)

test('there are pages with commands, and every language on a page is one that this test can run', () => {
  expect(shellPages.length).toBeGreaterThan(7)
  const known = 'sh console ts js python json sql'.split(' ')
  expect(blocks.filter(({ language }) => !known.includes(language))).toEqual([])
})

test.for(shellPages.filter((page) => page !== 'CONTRIBUTING.md'))(
  'the commands of %s work, one after the other',
  { timeout: 60_000 },
  async (page) => {
    const script = join(folder, 'commands.sh')
    await writeFile(
      script,
      filled(
        blocksIn(page, 'sh')
          .map(({ text }) => text)
          .join('\n'),
      ),
    )
    await run('sh', ['-eu', script], { cwd: folder, env: environment })
  },
)

test.for(['docs/quick-start.md', 'packages/client/README.md'])('the first program of %s works', { timeout: 60_000 }, async (page) => {
  const file = join(folder, 'program.ts')
  await writeFile(file, filled(blocksIn(page, 'ts')[0]?.text ?? ''))
  await run(process.execPath, [file], { cwd: folder, env: { ...environment, POSTRIDER_KEY: service.testKey } })
})

test.for(['resend', 'postmark', 'sendgrid', 'ses', 'mailgun'].map((vendor) => `docs/migrating-from-${vendor}.md`))(
  'the changed program of %s sends',
  { timeout: 60_000 },
  async (page) => {
    const programs = blocksIn(page, 'js')
    expect(programs).toHaveLength(1)
    await writeFile(join(folder, 'moved.mjs'), filled(programs[0]?.text ?? ''))
    const signing = { name: 'signing', type: 'api', mode: 'test', format: 'ses' }
    const made = (await service.call('POST', '/credentials', signing)).body.data as { accessKeyId: string; key: string }
    const keys = { POSTRIDER_KEY: service.testKey, AWS_ACCESS_KEY_ID: made.accessKeyId, AWS_SECRET_ACCESS_KEY: made.key }
    const { stdout } = await run(process.execPath, ['moved.mjs'], { cwd: folder, env: { ...environment, ...keys } })
    expect(stdout).toMatch(/^sent \w{22}\n$/)
  },
)

describe('a real webhook', () => {
  let request: Received
  let secret: string
  beforeAll(async () => {
    const made = await service.call('POST', '/webhooks', { name: 'pages', url: `${receiver.url}/` })
    const { id } = made.body.data as { id: string }
    secret = (made.body.data as { secret: string }).secret
    await service.call('POST', `/webhooks/${id}/test`, { event: 'MessageSent' })
    request = receiver.received[0] as Received
  })

  const genuine = () => request.body.toString()
  const programs = [...blocksIn(webhooksPage, 'ts'), ...blocksIn(webhooksPage, 'js')].map(({ text, language }, n) => ({
    text,
    language,
    n,
  }))

  test('is verified in three ways with JavaScript', () => expect(programs).toHaveLength(3))

  test.for(programs)(`is accepted by program $n of ${webhooksPage}, and one octet more is not`, async ({ text, language, n }) => {
    await writeFile(join(folder, `verify${n}.${language === 'ts' ? 'ts' : 'mjs'}`), filled(text))
    const asked = `import { verified } from './verify${n}.${language === 'ts' ? 'ts' : 'mjs'}'
const headers = JSON.parse(process.env.HEADERS)
const of = async (body) => { try { return (await verified(${language === 'ts' ? 'Buffer.from(body)' : 'body'}, headers)).event } catch { return 'no' } }
console.log(await of(process.env.BODY), await of(process.env.BODY + ' '))`
    await writeFile(join(folder, 'ask.mjs'), asked)
    const env = { ...environment, WEBHOOK_SECRET: secret, HEADERS: JSON.stringify(request.headers), BODY: genuine() }
    expect((await run(process.execPath, ['ask.mjs'], { cwd: folder, env })).stdout).toBe('MessageSent no\n')
  })

  test('is accepted by the program in Python, and one octet more is not', async ({ skip }) => {
    try {
      execFileSync('python3', ['--version'], { stdio: 'ignore' })
    } catch {
      skip('python3 is not on this machine')
    }
    const [python] = blocksIn(webhooksPage, 'python')
    await writeFile(
      join(folder, 'verify.py'),
      `${python?.text}\nimport os\nfor end in "", " ":\n    event = verified((os.environ["BODY"] + end).encode(), json.loads(os.environ["HEADERS"]), os.environ["SECRET"])\n    print(event and event["event"])\n`,
    )
    const env = { ...environment, SECRET: secret, HEADERS: JSON.stringify(request.headers), BODY: genuine() }
    expect((await run('python3', ['verify.py'], { cwd: folder, env })).stdout).toBe('MessageSent\nNone\n')
  })
})

test.for(blocks.filter(({ language }) => language === 'json'))('a block of JSON in $page is JSON', ({ text }) => {
  expect(JSON.parse(text)).toBeTypeOf('object')
})

/** Anchors as GitHub makes them. */
const anchorsOf = (page: string) =>
  textOf(page)
    .replace(/^ *```[\s\S]*?^ *```$/gm, '')
    .split('\n')
    .flatMap((line) => /^#+ (.+)$/.exec(line)?.[1] ?? [])
    .map((heading) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    )

test.for(pages)('every link of %s leads somewhere', (page) => {
  const text = textOf(page)
    .replace(/^ *```[\s\S]*?^ *```$/gm, '')
    .replace(/`[^`\n]*`/g, '')
  const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, href = '']) => {
    if (/^(https?:|mailto:)/.test(href)) return []
    const [path = '', anchor] = href.split('#', 2)
    const target = path === '' ? page : relative('.', resolve(dirname(page), path))
    if (!existsSync(target)) return [href]
    return anchor !== undefined && !anchorsOf(target).includes(anchor) ? [href] : []
  })
  expect(broken).toEqual([])
})

test('every promise in SECURITY.md names its tests, and they exist', () => {
  const promises = textOf('SECURITY.md')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| promise |'))
  expect(promises.length).toBeGreaterThan(20)
  for (const promise of promises) {
    const named = [...promise.slice(promise.lastIndexOf(' | ')).matchAll(/`([^`]+\.test\.ts)`/g)].map(([, path]) => path as string)
    expect(named, promise).not.toEqual([])
    expect(named.filter((path) => !existsSync(path))).toEqual([])
  }
})

test('index.md names every page of docs/', () => {
  const index = textOf('docs/index.md')
  const missing = docs.filter(
    (path) => /^docs\/[^/]+\.md$/.test(path) && path !== 'docs/index.md' && !index.includes(`(${path.slice('docs/'.length)})`),
  )
  expect(missing).toEqual([])
})
