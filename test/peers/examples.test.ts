/** The programs of examples/ behave as docs/examples.md says, each against the running service. Needs php, ruby, go, python3 and curl. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testCertificate } from '../support/certificate.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { type Received, type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const run = promisify(execFile)
const domain = 'shop.example'

let service: Service
let receiver: Receiver
let folder: string
let environment: Record<string, string>
let hook: { secret: string; request: Received }
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postrider-examples-'))
  const certificate = join(folder, 'certificate.pem')
  await writeFile(certificate, testCertificate.cert)
  await writeFile(join(folder, 'key.pem'), testCertificate.key)
  service = await startService({
    rateLimit: null,
    roles: ['inbound'],
    settings: {
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_DNS: '127.0.0.1:9',
      POSTRIDER_TLS_CERT: certificate,
      POSTRIDER_TLS_KEY: join(folder, 'key.pem'),
    },
  })
  await service.addDomain(service.tenantId, domain)
  const login = await ask('POST', `/tenants/${service.tenantId}/credentials`, { name: 'shop', type: 'smtp' }, service.liveKey)
  receiver = await startReceiver()
  const made = await ask('POST', '/webhooks', { name: 'example', url: `${receiver.url}/` })
  await ask('POST', `/webhooks/${made.id}/test`, { event: 'MessageSent' })
  const [request] = receiver.received
  if (!request) throw new Error('no webhook came')
  hook = { secret: made.secret as string, request }
  environment = {
    POSTRIDER_URL: `http://127.0.0.1:${service.port}`,
    POSTRIDER_KEY: service.testKey,
    SMTP_HOST: 'localhost',
    SMTP_USER: login.smtpUsername as string,
    SMTP_KEY: login.key as string,
    MAIL_FROM: `orders@${domain}`,
    WEBHOOK_SECRET: hook.secret,
    // Each program verifies the certificate of the SMTP listeners in its own way.
    NODE_EXTRA_CA_CERTS: certificate,
    CURL_CA_BUNDLE: certificate,
    GOCACHE: join(folder, 'go'),
    HOME: folder,
    PATH: process.env.PATH ?? '',
  }
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await service.stop()
  await rm(folder, { recursive: true })
})

async function ask(method: string, path: string, body?: object, key = service.testKey): Promise<Record<string, unknown>> {
  return (await service.call(method, path, { key, body })).body.data as Record<string, unknown>
}

const idsOf = async (query = '') =>
  ((await service.call('GET', `/emails?perPage=100${query}`, { key: service.testKey })).body.data as { id: string }[]).map(({ id }) => id)

/** Where every program must be installed (`.ci/run`), a test that would be skipped fails. */
function need(program: string, skip: (why: string) => void, how: readonly string[] = ['--version']): void {
  try {
    execFileSync(program, how, { stdio: 'ignore' })
  } catch {
    if (process.env.CI) throw new Error(`${program} is not on this machine`)
    skip(`${program} is not on this machine`)
  }
}

const senders = [
  { program: 'sh', words: ['examples/curl/send.sh', 'order-1042'], needs: 'curl' },
  { program: 'python3', words: ['examples/python/send.py'], needs: 'python3' },
  { program: 'go', words: ['run', './examples/go/send/main.go'], needs: 'go', how: ['version'] },
  { program: 'ruby', words: ['examples/ruby/send.rb'], needs: 'ruby' },
  { program: 'php', words: ['examples/php/send.php'], needs: 'php' },
]

/** Go compiles its whole standard library first, because its cache is empty. */
const building = { timeout: 240_000 }

test.for(senders)('$words sends one email', building, async ({ program, words, needs, how }, { skip }) => {
  need(needs, skip, how)
  const before = await idsOf()
  const { stdout } = await run(program, words, { env: environment })
  const fresh = (await idsOf()).filter((id) => !before.includes(id))
  expect(fresh).toHaveLength(1)
  expect(stdout).toContain(fresh[0])
  expect(stdout).toContain('pending')
})

test.for(senders)('$words explains why the service refuses', building, async ({ program, words, needs, how }, { skip }) => {
  need(needs, skip, how)
  const ended = run(program, words, { env: { ...environment, POSTRIDER_KEY: 'svc_test_none' } })
  await expect(ended).rejects.toSatisfy(({ stdout, stderr }: { stdout: string; stderr: string }) => /invalid_api_key/.test(stdout + stderr))
})

test.for([
  { name: 'examples/smtp/send.sh', program: 'sh', needs: 'curl', tag: 'curl', port: 'submissionTls' },
  { name: 'examples/nodemailer/send.mjs', program: process.execPath, needs: process.execPath, tag: 'nodemailer', port: 'submission' },
] as const)('$name sends one email over SMTP', async ({ name, program, needs, tag, port }, { skip }) => {
  need(needs, skip)
  await run(program, [name], { env: { ...environment, SMTP_PORT: String(service.ports[port]) } })
  expect(await idsOf(`&tag=${tag}`)).toHaveLength(1)
})

const variablesOf = (headers: Received['headers']) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [`HTTP_${name.toUpperCase().replaceAll('-', '_')}`, String(value)]))

/** The program's response to the webhook, when run as a web server runs it. */
async function answerOf(program: string, words: string[], body: Buffer, more: Record<string, string> = {}): Promise<string> {
  const child = spawn(program, words, { env: { ...environment, ...variablesOf(hook.request.headers), ...more } })
  let output = ''
  child.stdout.on('data', (piece: Buffer) => (output += piece.toString()))
  child.stdin.end(body)
  await new Promise((resolve) => child.once('close', resolve))
  return output
}

test.for([
  { program: 'python3', name: 'examples/python/verify.py' },
  { program: 'ruby', name: 'examples/ruby/verify.rb' },
])('$name accepts a real webhook, and no other', async ({ program, name }, { skip }) => {
  need(program, skip)
  expect(await answerOf(program, [name], hook.request.body)).toContain('Status: 204')
  expect(await answerOf(program, [name], Buffer.concat([hook.request.body, Buffer.from(' ')]))).toContain('Status: 400')
  expect(await answerOf(program, [name], hook.request.body, { HTTP_WEBHOOK_TIMESTAMP: '1' })).toContain('Status: 400')
  const { body, headers } = hook.request
  const signed = createHmac('sha256', '').update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`).update(body).digest('base64')
  const withoutSecret = { WEBHOOK_SECRET: '', HTTP_WEBHOOK_SIGNATURE: `v1,${signed}` }
  expect(await answerOf(program, [name], body, withoutSecret)).not.toContain('204')
})

test.for([
  { program: 'php', words: ['-S', '127.0.0.1:0', 'examples/php/verify.php'], how: ['--version'] },
  { program: 'go', words: [], how: ['version'] },
])('the receiver in $program accepts a real webhook, and no other', building, async ({ program, words, how }, { skip }) => {
  need(program, skip, how)
  const built = join(folder, 'verify')
  if (program === 'go') await run(program, ['build', '-o', built, './examples/go/verify/main.go'], { env: environment })
  const server = program === 'go' ? spawn(built, [], { env: { ...environment, PORT: '0' } }) : spawn(program, words, { env: environment })
  try {
    const address = await new Promise<string>((resolve, reject) => {
      server.stderr.on('data', (piece: Buffer) => {
        const found = /http:\/\/[\d.:]+/.exec(piece.toString())?.[0]
        if (found) resolve(found)
      })
      server.once('exit', () => reject(new Error(`${program} ended`)))
    })
    const headers = Object.fromEntries(Object.entries(hook.request.headers).filter(([name]) => name.startsWith('webhook-'))) as Record<
      string,
      string
    >
    const post = async (body: Buffer) => (await fetch(address, { method: 'POST', headers, body: new Uint8Array(body) })).status
    expect(await post(hook.request.body)).toBe(204)
    expect(await post(Buffer.concat([hook.request.body, Buffer.from(' ')]))).toBe(400)
  } finally {
    server.kill()
  }
})

test('the route handlers for Next.js send once for an address, and accept only a real webhook', async () => {
  const installed = join(folder, 'node_modules/@postrider/client')
  await mkdir(installed, { recursive: true })
  await cp('packages/client/package.json', join(installed, 'package.json'))
  await run('node_modules/.bin/tsc', ['-p', 'packages/client', '--outDir', join(installed, 'dist')])
  await cp('examples/nextjs', join(folder, 'nextjs'), { recursive: true })
  await writeFile(
    join(folder, 'ask.mjs'),
    `import { POST as welcome } from './nextjs/app/api/welcome/route.ts'
import { POST as webhook } from './nextjs/app/api/webhooks/route.ts'
const { headers, body } = JSON.parse(process.env.REQUEST)
const ask = (address) => welcome(new Request('http://x/', { method: 'POST', body: JSON.stringify({ address }) }))
const tell = async (text) => (await webhook(new Request('http://x/', { method: 'POST', headers, body: text }))).status
const ids = await Promise.all([1, 2].map(async () => (await (await ask('delivered+next@simulator.test')).json()).id))
console.log(JSON.stringify({ ids, wrong: (await ask('nobody')).status, told: [await tell(body), await tell(body + ' ')] }))
`,
  )
  const { headers, body } = hook.request
  const REQUEST = JSON.stringify({
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('webhook-'))),
    body: body.toString(),
  })
  const { stdout } = await run(process.execPath, ['ask.mjs'], { cwd: folder, env: { ...environment, REQUEST } })
  const came = JSON.parse(stdout) as { ids: string[]; wrong: number; told: number[] }
  expect(came).toMatchObject({ wrong: 400, told: [204, 400] })
  expect(new Set(came.ids).size).toBe(1)
  expect(await idsOf('&to=delivered%2Bnext@simulator.test')).toEqual([came.ids[0]])
})

test('examples/react-email renders and sends', async ({ skip }) => {
  if (!existsSync('examples/react-email/node_modules/@react-email/render')) {
    if (process.env.CI) throw new Error('npm install in examples/react-email is missing')
    skip('its packages are not installed: npm install in examples/react-email')
  }
  const { stdout } = await run(process.execPath, [resolve('examples/react-email/send.mjs')], { env: environment })
  const [id = ''] = stdout.split(' ')
  const { htmlBody } = await ask('GET', `/emails/${id}?expand=content`)
  expect(htmlBody).toContain('Thank you, Ann.')
  expect(htmlBody).toContain('href="https://shop.example/orders/1042"')
})
