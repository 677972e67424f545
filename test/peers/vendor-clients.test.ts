/** Clients of other vendors' APIs that Debian packages, unmodified, against one service; django-anymail also receives its webhooks. */
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { type CallEnd, noteSdkCall, noteSdkCalls } from '../support/sdk-calls.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const run = promisify(execFile)
/** Debian's, which has its packages. */
const python = '/usr/bin/python3'
const hasAnymail = existsSync('/usr/lib/python3/dist-packages/anymail')
const hasRuby = existsSync('/usr/share/doc/ruby-postmark')
const hasSymfony = ['Mailgun', 'Postmark', 'Sendgrid'].every((name) =>
  existsSync(`/usr/share/php/Symfony/Component/Mailer/Bridge/${name}/autoload.php`),
)
const reason = hasAnymail ? '' : ' (there is no python3-django-anymail)'

recordSdkCalls()
let service: ServiceProcess
beforeAll(async () => {
  service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_DNS: `127.0.0.1:${await freePort()}`,
  })
})
afterAll(() => service[Symbol.asyncDispose]())

const fileOf = (name: string) => new URL(name, import.meta.url).pathname

interface Sent {
  status?: string[]
  id?: string | string[]
  code?: number
  error?: string
}

/** Each message with its backend and its settings, in one process. */
async function anymail(asked: readonly [backend: string, settings: object, message: object][]): Promise<Sent[]> {
  const running = run(python, [fileOf('anymail-send.py')], { timeout: 60_000 })
  running.child.stdin?.end(
    JSON.stringify(asked.map(([backend, settings, message]) => ({ backend, settings, message: { ...usual, ...message } }))),
  )
  const sent = JSON.parse((await running).stdout) as Sent[]
  for (const [index, [backend]] of asked.entries())
    noteSdkCall('python3-django-anymail', backend, sent[index]?.code === undefined ? 'answered' : 'refused')
  return sent
}

const usual = { subject: 'From anymail', text: 'Hi', from: 'Shop <shop@simulator.test>', to: ['Ann <delivered+a@simulator.test>'] }

interface Shown {
  id: string
  subject: string
  tag: string | null
  metadata: Record<string, string> | null
  htmlBody: string
  attachments: { filename: string }[]
}

async function emailTo(address: string): Promise<Shown> {
  const found = (await service.call('GET', `/emails?to=${encodeURIComponent(address)}`)).body.data as Shown[]
  return (await service.call('GET', `/emails/${found[0]?.id}?expand=content,attachments`)).body.data as Shown
}

describe.skipIf(!hasAnymail)(`django-anymail${reason}`, () => {
  const mailgun = (key: string) => ({ api_key: key, api_url: `${service.url}/v3` })

  test('sends through the APIs of Mailgun, Postmark and SendGrid', async () => {
    const labels = { tags: ['order'], metadata: { n: '1' } }
    const [one, batch, wrong, elsewhere, postmark, sendgrid, wrongPostmark, wrongSendgrid] = await anymail([
      ['mailgun', mailgun(service.testKey), { tags: ['order', 'new'], metadata: { order: '4711' } }],
      [
        'mailgun',
        mailgun(service.testKey),
        {
          subject: 'Order %recipient.number%',
          text: '%recipient.name%',
          to: ['delivered+b@simulator.test', 'delivered+c@simulator.test'],
          merge_data: { 'delivered+b@simulator.test': { name: 'Bob', number: 1 }, 'delivered+c@simulator.test': { name: 'Cy' } },
          merge_global_data: { number: 0 },
          merge_metadata: { 'delivered+b@simulator.test': { user: 'b' }, 'delivered+c@simulator.test': { user: 'c' } },
        },
      ],
      ['mailgun', mailgun('svc_test_wrong'), {}],
      ['mailgun', mailgun(service.testKey), { from: 'a@elsewhere.test' }],
      ['postmark', { server_token: service.testKey, api_url: `${service.url}/` }, { to: ['delivered+pm@simulator.test'], ...labels }],
      [
        'sendgrid',
        { api_key: service.testKey, api_url: `${service.url}/v3/`, generate_message_id: false },
        { to: ['delivered+sg@simulator.test'], ...labels },
      ],
      ['postmark', { server_token: 'svc_test_wrong', api_url: `${service.url}/` }, {}],
      ['sendgrid', { api_key: 'svc_test_wrong', api_url: `${service.url}/v3/`, generate_message_id: false }, {}],
    ])
    expect(one).toEqual({ status: ['queued'], id: expect.stringMatching(/^<.+@simulator.test>$/) })
    expect(await emailTo('delivered+a@simulator.test')).toMatchObject({
      tag: 'order',
      metadata: { order: '4711', tag_2: 'new' },
      attachments: [{ filename: 'Rechnung ü.txt' }],
    })
    expect(batch).toMatchObject({ status: ['queued'] })
    expect(await emailTo('delivered+b@simulator.test')).toMatchObject({
      subject: 'Order 1',
      htmlBody: '<p>Bob</p>',
      metadata: { user: 'b' },
    })
    expect(await emailTo('delivered+c@simulator.test')).toMatchObject({
      subject: 'Order 0',
      htmlBody: '<p>Cy</p>',
      metadata: { user: 'c' },
    })
    expect(wrong).toMatchObject({ code: 401 })
    expect(elsewhere).toMatchObject({ code: 404, error: expect.stringContaining("Unknown sender domain 'elsewhere.test'") })
    for (const refused of [wrongPostmark, wrongSendgrid]) expect(refused).toMatchObject({ code: 401 })
    expect(postmark).toMatchObject({ status: ['sent'] })
    expect(await emailTo('delivered+pm@simulator.test')).toMatchObject({ id: postmark?.id, tag: 'order', metadata: { n: '1' } })
    expect(sendgrid).toMatchObject({ status: ['queued'] })
    expect(await emailTo('delivered+sg@simulator.test')).toMatchObject({ tag: 'order', metadata: { n: '1' } })
  }, 60_000)

  test("accepts webhooks in Mailgun's format, and refuses them with another key", async () => {
    const port = await freePort()
    const form = new URLSearchParams({ url: `http://127.0.0.1:${port}/mailgun/` })
    const create = async (id: string) => {
      const response = await fetch(`${service.url}/v3/domains/simulator.test/webhooks`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`api:${service.testKey}`).toString('base64')}` },
        body: new URLSearchParams([['id', id], ...form]),
      })
      return (await response.json()) as { signing_keys: Record<string, string> }
    }
    for (const id of ['delivered', 'permanent_fail']) await create(id)
    const [key = ''] = Object.values((await create('complained')).signing_keys)
    await using receiver = await startReceiver(port, key)
    const to = ['delivered', 'hardfail', 'complaint'].map((name) => `${name}+hook@simulator.test`)
    const [sent] = await anymail([['mailgun', mailgun(service.testKey), { to, tags: ['hook', 'two'], metadata: { n: '1' } }]])
    const wanted = [
      [to[0], 'delivered', null],
      [to[1], 'bounced', 'bounced'],
      [to[2], 'complained', null],
    ]
    for (const [recipient, event_type, reject_reason] of wanted) {
      const found = await receiver.event({ recipient, event_type })
      expect(found).toMatchObject({ reject_reason, message_id: sent?.id, tags: ['hook', 'two'], metadata: { n: '1' }, test: true })
    }
    const [webhook] = ((await service.call('GET', '/webhooks')).body.data as { webhooks: { id: string }[] }).webhooks
    await service.call('PATCH', `/webhooks/${webhook?.id}`, { rotateSecret: true })
    const refused = (await service.call('POST', `/webhooks/${webhook?.id}/test`, { event: 'MessageSent' })).body.data
    expect(refused).toMatchObject({ success: false, statusCode: 400 })
  }, 60_000)

  test("understands webhooks in the formats of Postmark, SendGrid and SES, SES's in the envelope of SNS", async () => {
    const port = await freePort()
    await using receiver = await startReceiver(port, 'not used')
    const urlOf = (name: string) => `http://127.0.0.1:${port}/${name}/`
    const create = async (path: string, headers: Record<string, string>, body: object) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
      const response = await fetch(`${service.url}${path}`, init)
      expect([path, response.ok, await response.text()]).toEqual([path, true, expect.anything()])
    }
    const enabled = { Enabled: true }
    const triggers = { Delivery: enabled, Bounce: enabled, SpamComplaint: enabled }
    await create('/webhooks', { 'x-postmark-server-token': service.testKey }, { Url: urlOf('postmark'), Triggers: triggers })
    const authorised = { authorization: `Bearer ${service.testKey}` }
    const kinds = { delivered: true, bounce: true, spam_report: true }
    await create('/v3/user/webhooks/event/settings', authorised, { enabled: true, url: urlOf('sendgrid'), ...kinds })
    const events = ['MessageSent', 'MessageDeliveryFailed', 'ComplaintReceived']
    const made = await service.call('POST', '/webhooks', { name: 'ses', url: urlOf('ses'), events, format: 'ses' })
    expect(made).toMatchObject({ status: 201 })
    const settings = { server_token: service.testKey, api_url: `${service.url}/` }
    const labels = { tags: ['formats'], metadata: { n: '2' } }
    const addressed = (name: string) => ({ to: [`${name}+formats@simulator.test`], ...labels })
    const [delivered] = await anymail(['delivered', 'hardfail', 'complaint'].map((name) => ['postmark', settings, addressed(name)]))
    for (const [esp, tags, metadata, reasons] of [
      ['Postmark', ['formats'], { n: '2' }, ['bounced', 'spam']],
      // Anymail gives SendGrid's events a reason only if they were dropped.
      ['SendGrid', ['formats'], { n: '2' }, [null, null]],
      // Anymail reads tags and metadata from headers, which SES's events have only if anymail's own backend added them.
      ['Amazon SES', [], {}, ['bounced', 'spam']],
    ] as const)
      for (const [name, event_type, reject_reason] of [
        ['delivered', 'delivered', null],
        ['hardfail', 'bounced', reasons[0]],
        ['complaint', 'complained', reasons[1]],
      ] as const) {
        const found = await receiver.event({ esp, recipient: `${name}+formats@simulator.test`, event_type })
        expect(found).toMatchObject({ reject_reason, message_id: expect.stringMatching(/./), tags, metadata })
        if (esp === 'Postmark' && name === 'delivered') expect(found.message_id).toBe(delivered?.id)
      }
  }, 60_000)
})

interface Receiver extends AsyncDisposable {
  /** Waits for an event with these fields. */
  event(wanted: Record<string, unknown>): Promise<Record<string, unknown>>
}

/** Anymail's webhook views; `key`: Mailgun's signing key. */
async function startReceiver(port: number, key: string): Promise<Receiver> {
  const events: Record<string, unknown>[] = []
  const receiver = spawn(python, [fileOf('anymail-receiver.py'), String(port), key], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface(receiver.stdout)
  const ready = new Promise((resolve, reject) => {
    lines.once('line', resolve)
    receiver.once('exit', () => reject(new Error('the receiver ended')))
  })
  lines.on('line', (line) => line.startsWith('{') && events.push(JSON.parse(line) as Record<string, unknown>))
  await ready
  return {
    event: (wanted) =>
      vi.waitFor(
        () => {
          const one = events.find((event) => Object.entries(wanted).every(([name, value]) => event[name] === value))
          if (!one) throw new Error(`no event ${JSON.stringify(wanted)} in ${JSON.stringify(events)}`)
          return one
        },
        { timeout: 20_000, interval: 50 },
      ),
    [Symbol.asyncDispose]: async () => {
      receiver.kill()
    },
  }
}

test.skipIf(!hasRuby)(
  `ruby-postmark sends, and reads its own errors${hasRuby ? '' : ' (there is no ruby-postmark)'}`,
  async () => {
    const { hostname, port } = new URL(service.url)
    const { stdout } = await run('/usr/bin/ruby', [fileOf('postmark-send.rb'), hostname, port, service.testKey], { timeout: 60_000 })
    const { one, many, wrong, calls, ...found } = JSON.parse(stdout) as {
      one: { message_id: string; error_code: number }
      many: { error_code: number }[]
      wrong: string[]
      calls: [string, CallEnd][]
      failed: string
      webhook: { id: number }
      webhooks: number[]
    }
    noteSdkCalls('ruby-postmark', calls)
    expect(one).toMatchObject({ error_code: 0, message: 'OK' })
    expect(many.map(({ error_code }) => error_code)).toEqual([0, 300])
    expect(wrong).toEqual(['Postmark::InvalidApiKeyError'])
    const { failed: message_id, webhook } = found
    const bounce = { type: 'HardBounce', email: 'hardfail+rb@simulator.test', message_id, inactive: true }
    expect(found).toMatchObject({
      found: [one.message_id],
      listed: one.message_id,
      count: 1,
      shown: { message_id: one.message_id, subject: 'From Ruby' },
      dump: expect.stringContaining('Subject: From Ruby'),
      bounce,
      bounced: bounce,
      inactive: ['Postmark::InactiveRecipientError', 406],
      activated: { inactive: false },
      suppressed: { suppressions: [expect.anything()] },
      // Addresses that other tests suppress are listed too.
      dumped: expect.arrayContaining(['gone+rb@simulator.test']),
      deleted: { suppressions: [expect.anything()] },
      changed: { id: webhook.id, triggers: { Open: { Enabled: true } } },
      removed: { error_code: 0 },
    })
    const [shownWebhook, ...listedWebhooks] = found.webhooks
    expect(shownWebhook).toBe(webhook.id)
    // Webhooks of other tests are listed too.
    expect(listedWebhooks).toContain(webhook.id)
    expect(await emailTo('delivered+rb@simulator.test')).toMatchObject({ id: one.message_id, tag: 'order', metadata: { n: '1' } })
  },
  60_000,
)

test.skipIf(!hasSymfony)(
  `Symfony's mailers send${hasSymfony ? '' : ' (there are no php-symfony-…-mailer)'}`,
  async () => {
    const { hostname, port } = new URL(service.url)
    const { stdout } = await run('/usr/bin/php', [fileOf('symfony-send.php'), hostname, port, service.testKey], { timeout: 60_000 })
    const { calls, ...sent } = JSON.parse(stdout) as { calls: [string, CallEnd][] }
    for (const [name, end] of calls) noteSdkCall(`php-symfony-${/^[A-Z][a-z]+/.exec(name)?.[0].toLowerCase()}-mailer`, name, end)
    expect(sent).toEqual({
      mailgun: expect.stringMatching(/^<.+@simulator.test>$/),
      'mailgun-wrong': expect.stringContaining('Forbidden'),
      'mailgun-mime': expect.stringMatching(/^<.+@.+>$/),
      'mailgun-mime-wrong': expect.stringContaining('Forbidden'),
      postmark: expect.stringMatching(/^\w{22}$/),
      'postmark-wrong': expect.stringContaining('(code 10)'),
      sendgrid: expect.stringMatching(/^\w{22}$/),
      'sendgrid-wrong': expect.stringContaining('(code 401)'),
    })
    expect(await emailTo('delivered+mailgun@simulator.test')).toMatchObject({
      subject: 'From Symfony: ü',
      tag: 'order',
      metadata: { n: '1' },
      attachments: [{ filename: 'Rechnung ü.txt' }, { filename: 'logo.png' }],
    })
    expect(await emailTo('delivered+mailgun-mime@simulator.test')).toMatchObject({ subject: 'From Symfony: ü' })
    for (const name of ['postmark', 'sendgrid']) expect(await emailTo(`delivered+${name}@simulator.test`)).toMatchObject({ tag: 'order' })
  },
  60_000,
)
