/**
 * Traces sent to an OpenTelemetry collector by a running service: the required spans, the data that they must not contain, and operation
 * without a collector.
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Log, openTraces, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type CollectedSpan, spansAt, startCollector } from '../support/otlp-collector.ts'
import { loggedIn } from '../support/smtp-client.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const traceparent = `00-${caller.traceId}-${caller.spanId}-01`
const traceOf = (emailId: string) => createHash('sha256').update(emailId).digest('hex').slice(0, 32)

/** These values must not appear in spans. */
const confidential = {
  good: 'ann.dupont',
  unknown: 'bob.miller',
  sender: 'orders@shop.example.com',
  subject: 'Biopsy result',
  text: 'Nothing was found',
  hook: 'a-secret-in-the-path',
  bystander: 'carl.untold',
}

/** Logs the requested packages to standard error, and hides those of OpenTelemetry if HIDDEN is set. */
const watching = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(specifier, context, next) {
      if (!/^@opentelemetry\\/(sdk|exporter|resources)/.test(specifier)) return next(specifier, context)
      process.stderr.write('asked for ' + specifier + '\\n')
      if (process.env.HIDDEN) throw Object.assign(new Error('hidden'), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(specifier, context)
    },
  })`)}`

interface Sent {
  data: { messages: Record<string, { id: string }> }
}

async function post(service: ServiceProcess, path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${service.url}/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.liveKey}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

const letterTo = (...names: string[]) => ({
  from: confidential.sender,
  to: names.map((name) => `${name}@one.example`),
  subject: confidential.subject,
  text: confidential.text,
})

describe('a service with a collector', () => {
  let collector: Receiver
  let hooks: Receiver
  let mx: FakeMx
  let service: ServiceProcess
  let spans: CollectedSpan[]
  let exported: string
  let ids: { good: string; unknown: string; bySmtp: string }
  let login: { key: string; smtpUsername: string }
  const named = (name: string) => spans.filter((span) => span.name === name)
  const only = (name: string) => {
    const [first, ...more] = named(name)
    expect(more).toEqual([])
    return first as CollectedSpan
  }

  beforeAll(async () => {
    collector = await startCollector()
    hooks = await startReceiver()
    hooks.answer = (response, { body }) => response.writeHead(body.includes('MessageSent') ? 200 : 503).end()
    const isUnknown = ({ stage, argument }: { stage: string; argument: string }) =>
      stage === 'rcpt' && argument.includes(confidential.unknown)
    mx = await startFakeMx({ script: (event) => (isUnknown(event) ? '550 5.1.1 no such user' : undefined) })
    const submissionPort = await freePort()
    service = await startServiceProcess({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-of-the-operator=yes',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_SUBMISSION_PORT: String(submissionPort),
    })
    await service.command('domain', 'add', 'shop.example.com', '--trust')
    const tenants = (await service.call('GET', '/tenants')).body.data as { id: string }[]
    const tenantId = tenants[0]?.id
    await post(service, `/tenants/${tenantId}/webhooks`, { name: 'hook', url: `${hooks.url}/${confidential.hook}`, allEvents: true })
    login = ((await (await post(service, `/tenants/${tenantId}/credentials`, { name: 'mailer', type: 'smtp' })).json()) as { data: never })
      .data

    const both = (await (await post(service, '/emails', letterTo(confidential.good, confidential.unknown), { traceparent })).json()) as Sent
    await fetch(`${service.url}/v1/suppressions/${confidential.bystander}%40one.example?from=${confidential.bystander}`, {
      headers: { authorization: `Bearer ${service.liveKey}` },
    })
    await post(service, '/emails', { ...letterTo(confidential.good), from: 'not an address' })
    await post(service, '/emails', letterTo(confidential.good), { authorization: 'Bearer svc_live_nobody', traceparent })

    await using client = await loggedIn(submissionPort, login.smtpUsername, login.key)
    await client.say(`MAIL FROM:<${confidential.sender}>`)
    await client.say(`RCPT TO:<${confidential.good}@one.example>`)
    await client.say('DATA')
    client.write(`From: ${confidential.sender}\r\nSubject: ${confidential.subject}\r\n\r\n${confidential.text}\r\n.\r\n`)
    const bySmtp = /queued as (\w+)/.exec(await client.reply())?.[1] ?? ''
    ids = {
      good: both.data.messages[`${confidential.good}@one.example`]?.id ?? '',
      unknown: both.data.messages[`${confidential.unknown}@one.example`]?.id ?? '',
      bySmtp,
    }
    await vi.waitUntil(() => hooks.received.length >= 3, { timeout: 20_000, interval: 20 })
    // Stopping also waits until the responses are recorded.
    await service.stop()
    spans = spansAt(collector)
    exported = collector.received.map(({ body }) => body.toString()).join('\n')
  }, 90_000)
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await mx?.close()
    await hooks?.[Symbol.asyncDispose]()
    await collector?.[Symbol.asyncDispose]()
  })

  test('exports spans of each of its processes, as the operator configured', () => {
    expect(new Set(spans.map(({ resource }) => resource['postrider.role']))).toEqual(new Set(['serve', 'delivery', 'inbound', 'webhooks']))
    for (const { resource } of spans) {
      expect(resource).toMatchObject({ 'service.name': 'postrider', 'deployment.environment.name': 'test' })
    }
    for (const { path, headers } of collector.received) {
      expect(path).toBe('/v1/traces')
      expect(headers['x-of-the-operator']).toBe('yes')
    }
  })

  test('puts a request into the trace of its caller, and links it to the traces of the emails it made', () => {
    const accepted = named('POST /v1/emails').find(({ attributes }) => attributes['http.response.status_code'] === 200)
    expect(accepted).toMatchObject({ kind: 'server', traceId: caller.traceId, parentSpanId: caller.spanId, failed: false })
    expect(accepted?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v1/emails',
      'postrider.endpoint': 'emails.send',
      'postrider.request.id': expect.stringMatching(/^req_/),
      'postrider.credential.id': expect.any(Number),
    })
    const beginnings = named('email accepted').filter(({ traceId }) => [ids.good, ids.unknown].map(traceOf).includes(traceId))
    expect(accepted?.links).toEqual(beginnings.map(({ traceId, spanId }) => ({ traceId, spanId })))
    expect(beginnings.map(({ attributes }) => attributes['postrider.email.id'])).toEqual([ids.good, ids.unknown])
    for (const { links } of beginnings) expect(links).toEqual([{ traceId: caller.traceId, spanId: accepted?.spanId }])
  })

  test('shows all that happened to a delivered email in the trace that follows from its id', () => {
    const trace = spans.filter(({ traceId }) => traceId === traceOf(ids.good))
    expect(trace.map(({ name, kind }) => `${name}: ${kind}`).sort()).toEqual([
      'delivery attempt: client',
      'email accepted: producer',
      'webhook attempt: client',
    ])
    for (const { attributes, parentSpanId } of trace) {
      expect(attributes['postrider.email.id']).toBe(ids.good)
      expect(parentSpanId).toBe('')
    }
    const attempt = trace.find(({ name }) => name === 'delivery attempt')
    expect(attempt).toMatchObject({ failed: false, events: ['mail', 'rcpt', 'data', 'final'] })
    expect(attempt?.attributes).toMatchObject({
      'postrider.outcome': 'sent',
      'postrider.attempt': 1,
      'postrider.mode': 'live',
      'postrider.recipient_domain': 'one.example',
      'postrider.smtp.code': 250,
      'server.address': '127.0.0.1',
    })
    const hook = trace.find(({ name }) => name === 'webhook attempt')
    expect(hook?.attributes).toMatchObject({ 'postrider.event': 'MessageSent', 'http.response.status_code': 200, 'postrider.attempt': 1 })
    expect(hook?.startMs).toBeGreaterThanOrEqual((attempt?.startMs ?? 0) + (attempt?.durationMs ?? 0) - 1)
  })

  test('exports the reasons of a refused email and of a failed webhook', () => {
    const trace = spans.filter(({ traceId }) => traceId === traceOf(ids.unknown))
    expect(trace.find(({ name }) => name === 'delivery attempt')).toMatchObject({
      failed: true,
      attributes: {
        'error.type': 'invalid_recipient',
        'postrider.outcome': 'hardfail',
        'postrider.smtp.code': 550,
        'postrider.smtp.enhanced_code': '5.1.1',
      },
    })
    expect(trace.find(({ name }) => name === 'webhook attempt')).toMatchObject({
      failed: true,
      attributes: { 'error.type': '503', 'http.response.status_code': 503, 'postrider.event': 'MessageDeliveryFailed' },
    })
  })

  test('exports the code of a refused request, which is no failure of the service, and no spans of strangers', () => {
    const refused = named('POST /v1/emails').filter(({ attributes }) => attributes['http.response.status_code'] !== 200)
    expect(refused.map(({ attributes }) => String(attributes['postrider.error.code'])).sort()).toEqual(['invalid_email_format'])
    for (const { failed, traceId, parentSpanId, links } of refused) {
      expect(failed).toBe(false)
      expect(traceId).not.toBe(caller.traceId)
      expect(parentSpanId).toBe('')
      expect(links).toEqual([])
    }
  })

  test('begins the trace of an email that came over SMTP in the same way', () => {
    const submission = only('SMTP submission')
    const trace = spans.filter(({ traceId }) => traceId === traceOf(ids.bySmtp))
    const beginning = trace.find(({ name }) => name === 'email accepted')
    expect(submission.links).toEqual([{ traceId: beginning?.traceId, spanId: beginning?.spanId }])
    expect(trace.some(({ name }) => name === 'delivery attempt')).toBe(true)
  })

  test('reveals no sender, recipient, subject, webhook address or key', () => {
    expect(exported).toContain(ids.good)
    const secrets = [...Object.values(confidential), service.liveKey, service.testKey, login.key, String(hooks.port)]
    expect(secrets.filter((one) => exported.includes(one))).toEqual([])
    for (const one of secrets) expect(one.length, 'what is looked for is something').toBeGreaterThan(3)
  })
})

const silentServer = async () => {
  const server = createServer(() => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

describe.concurrent.each(['never answers', 'answers 500', 'is not there'] as const)('a collector that %s', (how) => {
  test('slows nothing, is complained of once, and delays the end by seconds', async () => {
    const server = how === 'never answers' ? await silentServer() : undefined
    const failing = await startReceiver()
    failing.answer = (response) => response.writeHead(500).end()
    const silent = server?.address()
    const port = typeof silent === 'object' && silent ? silent.port : how === 'answers 500' ? failing.port : await freePort()
    await using service = await startServiceProcess({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${port}/traces`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
      POSTRIDER_RATE_LIMIT: 'unlimited',
      POSTRIDER_DELIVERY_PROCESSES: '1',
    })
    const send = () =>
      service.call('POST', '/emails', { ...letterTo('a'), from: 'a@simulator.test', to: ['delivered@simulator.test'] }, service.testKey)
    const first = (await send()).body.data as { id: string }
    for (let count = 0; count < 20; count++) expect((await send()).status).toBe(200)
    const statusOf = async () => ((await service.call('GET', `/emails/${first.id}`)).body.data as { status: string }).status
    await vi.waitUntil(async () => (await statusOf()) === 'sent', { timeout: 15_000, interval: 50 })
    const complaints = () =>
      service
        .output()
        .split('\n')
        .filter((line) => line.includes('failed to send traces'))
    await vi.waitUntil(() => complaints().length >= 2, { timeout: 20_000, interval: 100 })

    for (let count = 0; count < 20; count++) expect((await send()).status).toBe(200)
    const beganMs = performance.now()
    expect(await service.stop()).toBe(0)
    expect(performance.now() - beganMs).toBeLessThan(15_000)
    const byRole = complaints().map((line) => (JSON.parse(line) as { role: string }).role)
    expect(byRole.sort()).toEqual([...new Set(byRole)].sort())
    await failing[Symbol.asyncDispose]()
    server?.close()
  }, 90_000)
})

describe('without a collector', () => {
  test('nothing of OpenTelemetry is loaded', async () => {
    await using service = await startServiceProcess({ NODE_OPTIONS: watching })
    const sent = await service.call(
      'POST',
      '/emails',
      { ...letterTo('a'), from: 'a@simulator.test', to: ['delivered@simulator.test'] },
      service.testKey,
    )
    expect(sent.status).toBe(200)
    await service.stop()
    expect(service.output()).not.toContain('asked for')
  }, 60_000)
})

test('a service with traces but without their packages names the packages to install, and starts', async () => {
  await using service = await startServiceProcess({
    NODE_OPTIONS: watching,
    HIDDEN: 'yes',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
  })
  expect(service.output()).toContain('asked for @opentelemetry/')
  expect(service.output()).toMatch(
    /traces are off: required packages are not installed. Run: npm install --no-save --save-prod( @opentelemetry\/[a-z-]+@\d+\.\d+\.\d+){4}"/,
  )
}, 60_000)

test('a share of the traces keeps whole emails, the same ones in every process', async () => {
  await using collector = await startCollector()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
  const config = readConfig({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.5',
  })
  const emails = Array.from({ length: 200 }, (_, index) => `email${index}`)
  const attempt = { name: 'delivery attempt', kind: 'client', durationMs: 1.5, attributes: {} } as const
  for (const role of ['one', 'other']) {
    const traces = await openTraces(config, { clock: systemClock, log: silentLog, random: systemRandom, version: 'test', role })
    for (const emailId of emails) traces?.note({ ...attempt, emailId })
    await traces?.stop()
  }
  vi.unstubAllEnvs()
  const keptBy = (role: string) =>
    new Set(spansAt(collector).flatMap((span) => (span.resource['postrider.role'] === role ? [span.traceId] : [])))
  expect(keptBy('one').size).toBeGreaterThan(50)
  expect(keptBy('one').size).toBeLessThan(150)
  expect(keptBy('other')).toEqual(keptBy('one'))
})

describe('settings of a platform, made for other programs,', () => {
  const traceWith = async (environment: Record<string, string>) => {
    await using collector = await startCollector()
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...environment }
    for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value)
    const said: string[] = []
    const log = { ...silentLog, warn: (text: unknown) => said.push(String(text)) } as unknown as Log
    const traces = await openTraces(readConfig(settings), { clock: systemClock, log, random: systemRandom, version: 'test', role: 'one' })
    traces?.note({ name: 'delivery attempt', kind: 'client', durationMs: 1, attributes: {}, emailId: 'email' })
    await traces?.stop()
    vi.unstubAllEnvs()
    return { spans: spansAt(collector).length, said }
  }
  test.each([
    [{ OTEL_TRACES_SAMPLER: 'xray' }, 'OTEL_TRACES_SAMPLER'],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: 'http://x' }, 'OTEL_TRACES_SAMPLER_ARG'],
  ])('%j is logged, and the default applies', async (environment, name) => {
    const { spans, said } = await traceWith(environment)
    expect([spans, said.length]).toEqual([1, 1])
    expect(said[0]).toContain(name)
  })
  test('a collector without a scheme is logged, and there are no traces', async () => {
    const { spans, said } = await traceWith({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' })
    expect(spans).toBe(0)
    expect(said[0]).toContain('is not an http or https URL')
  })
  test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])('%j turns traces off', async (environment) => {
    expect(await traceWith(environment)).toEqual({ spans: 0, said: [] })
  })
})
