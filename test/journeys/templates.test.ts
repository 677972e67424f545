/** Templates for a user: create, publish, preview, send, and the bounds of a hostile one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const ask = (method: string, path: string, body?: object, key = service.testKey) =>
  service.call(method, path, { key, ...(body ? { body } : {}) })
const codeOf = ({ status, body }: Answer) => (status < 300 ? status : [status, body.error?.code, body.error?.field])
async function done<Data = Record<string, unknown>>(answer: Promise<Answer>): Promise<Data> {
  const { status, text, body } = await answer
  if (status >= 300) throw new Error(text)
  return body.data as Data
}

const from = 'shop@simulator.test'
const to = ['delivered@simulator.test']
const receipt = {
  subject: 'Your order {{ order.number }}',
  html: '<p>Hello {{ name }},</p><ul>{% for item in items %}<li>{{ item }}</li>{% endfor %}</ul>',
  text: 'Hello {{ name }}, {{ items | size }} items.',
  variables: { name: { type: 'string', default: 'friend' }, items: { type: 'array' } },
}
const values = { name: 'Ann <b>', items: ['Tea & milk', 'Bread'], order: { number: 7 } }

let count = 0
async function publish(source: object = receipt, path = '/templates') {
  const name = `receipt-${++count}`
  const made = await done<{ id: string; name: string }>(ask('POST', path, { name, ...source }, service.liveKey))
  await done(ask('POST', `${path}/${name}/publish`, {}, service.liveKey))
  return made
}

const contentOf = async ({ id }: { id: string }) =>
  done<{ subject: string; htmlBody: string; plainBody: string }>(ask('GET', `/emails/${id}?expand=content`))

describe('a template', () => {
  test('is sent by its name or its id, escaped in HTML and plain in text', async () => {
    const { id, name } = await publish()
    for (const templateId of [id, name]) {
      const sent = await done<{ id: string }>(ask('POST', '/emails', { from, to, templateId, variables: values }))
      const { subject, htmlBody, plainBody } = await contentOf(sent)
      expect([subject, htmlBody, plainBody.trim()]).toEqual([
        'Your order 7',
        '<p>Hello Ann &lt;b&gt;,</p><ul><li>Tea &amp; milk</li><li>Bread</li></ul>',
        'Hello Ann <b>, 2 items.',
      ])
    }
  })

  test('is sent in a batch beside other emails; an element that lacks a variable fails alone', async () => {
    const { name: templateId } = await publish()
    const emails = [
      { to, templateId, variables: values },
      { to, subject: 'Plain', text: 'Hello.' },
      { to, templateId, variables: {} },
      { to, templateId: 'nothing' },
    ]
    const { results } = await done<{ results: { status: string; id: string; error?: { code: string; field: string } }[] }>(
      ask('POST', '/emails/batch', { from, emails }),
    )
    expect(results.map((one) => one.status)).toEqual(['accepted', 'accepted', 'failed', 'failed'])
    expect(results.slice(2).map((one) => [one.error?.code, one.error?.field])).toEqual([
      ['validation_error', 'emails[2].variables.items'],
      ['not_found', 'emails[3].templateId'],
    ])
    expect((await contentOf(results[0] as { id: string })).subject).toBe('Your order 7')
  })

  test('keeps its published version while its draft changes, and sends an older version on request', async () => {
    const { id: templateId } = await publish()
    await done(ask('PATCH', `/templates/${templateId}`, { subject: 'Draft', html: null }, service.liveKey))
    const send = async (more: object = {}) =>
      (await contentOf(await done<{ id: string }>(ask('POST', '/emails', { from, to, templateId, variables: values, ...more })))).subject
    expect(await send()).toBe('Your order 7')
    expect(await done(ask('POST', `/templates/${templateId}/preview`, { variables: values }))).toMatchObject({
      subject: 'Draft',
      html: null,
    })
    await done(ask('POST', `/templates/${templateId}/publish`, {}, service.liveKey))
    expect([await send(), await send({ templateVersion: 1 })]).toEqual(['Draft', 'Your order 7'])
    const versions = (await ask('GET', `/templates/${templateId}/versions`)).body.data as { version: number }[]
    expect(versions.map((one) => one.version)).toEqual([2, 1])
    expect(codeOf(await ask('POST', '/emails', { from, to, templateId, templateVersion: 3 }))).toEqual([
      404,
      'not_found',
      'templateVersion',
    ])

    // A page has at most 4,000,000 characters.
    const long = { html: 'é'.repeat(262_144), text: 'é'.repeat(262_144) }
    await ask('PATCH', `/templates/${templateId}`, long, service.liveKey)
    for (let nth = 0; nth < 9; nth++) await ask('POST', `/templates/${templateId}/publish`, {}, service.liveKey)
    const page = (await ask('GET', `/templates/${templateId}/versions`)).body.data as { html: string | null; truncated: boolean }[]
    expect(page.map(({ html, truncated }) => (truncated ? html : html?.length))).toEqual([
      ...Array(7).fill(262_144),
      null,
      null,
      null,
      null,
    ])
  })

  test('gets a repeated request with its idempotency key the first response, though it has been deleted since', async () => {
    const { id: templateId } = await publish()
    const send = () =>
      service.call('POST', '/emails', {
        key: service.testKey,
        body: { from, to, templateId, variables: values },
        headers: { 'idempotency-key': templateId },
      })
    const first = await send()
    await done(ask('DELETE', `/templates/${templateId}`, undefined, service.liveKey))
    const second = await send()
    expect([second.status, second.text, second.headers.get('idempotent-replayed')]).toEqual([200, first.text, 'true'])
    expect(codeOf(await ask('POST', '/emails', { from, to, templateId }))).toEqual([404, 'not_found', 'templateId'])
  })

  test('is sent as a draft to a few readers', async () => {
    const { id } = await done<{ id: string }>(ask('POST', '/templates', { name: `draft-${++count}`, ...receipt }, service.liveKey))
    expect(codeOf(await ask('POST', '/emails', { from, to, templateId: id, variables: values }))).toEqual([
      400,
      'validation_error',
      'templateId',
    ])
    const sent = await done<{ id: string }>(ask('POST', `/templates/${id}/test`, { from, to, variables: values }))
    expect((await contentOf(sent)).subject).toBe('Your order 7')
  })

  test('belongs to its tenant, and is deleted with it', async () => {
    const tenantId = await service.makeTenant('Other')
    const { id } = await publish(receipt, `/tenants/${tenantId}/templates`)
    const key = await service.makeKey({ tenantId })
    expect(codeOf(await ask('GET', `/templates/${id}`, undefined, key))).toBe(200)
    expect(codeOf(await ask('GET', `/templates/${id}`))).toEqual([404, 'not_found', 'templateId'])
    for (const odd of ['a%00b', 'a%20b', '%ff']) expect((await ask('GET', `/templates/${odd}`)).status).toBe(404)
    expect(codeOf(await ask('POST', '/emails', { from, to, templateId: 'a\0b' }))).toEqual([404, 'not_found', 'templateId'])
    expect(codeOf(await ask('POST', '/emails', { from, to, templateId: id }))).toEqual([404, 'not_found', 'templateId'])
    const own = await publish()
    expect(codeOf(await ask('GET', `/templates/${own.id}`, undefined, key))).toEqual([404, 'not_found', 'templateId'])
    await ask('DELETE', `/tenants/${tenantId}`, undefined, service.liveKey)
    expect(codeOf(await ask('GET', `/templates/${id}`))).toEqual([404, 'not_found', 'templateId'])
  })

  test('is changed only with a key of full access', async () => {
    const { id } = await publish()
    const key = await service.makeKey({ permissions: ['emails:send'] })
    expect(codeOf(await ask('GET', `/templates/${id}`, undefined, key))).toBe(200)
    for (const [method, path] of [
      ['POST', '/templates'],
      ['PATCH', `/templates/${id}`],
      ['POST', `/templates/${id}/publish`],
      ['DELETE', `/templates/${id}`],
    ] as const)
      expect(codeOf(await ask(method, path, {}, key))).toEqual([403, 'permission_denied', undefined])
  })
})

describe('refused are', () => {
  test.each([
    ['a draft that is not Liquid', { html: '{% if name %}' }, 'html'],
    ['a filter that does not exist', { html: '{{ name | strip_html }}' }, 'html'],
    ['a tag that reads files', { text: '{% render "secret" %}' }, 'text'],
    ['a default of another type', { variables: { name: { type: 'number', default: 'x' } } }, 'variables.name.default'],
    ['no text at all', { html: null, text: null }, 'html'],
  ])('%s', async (_, wrong, field) => {
    expect(codeOf(await ask('POST', '/templates', { name: `wrong-${++count}`, ...receipt, ...wrong }, service.liveKey))).toEqual([
      400,
      'validation_error',
      field,
    ])
  })

  test('a name that is taken', async () => {
    const { name } = await publish()
    expect(codeOf(await ask('POST', '/templates', { name, ...receipt }, service.liveKey))).toEqual([400, 'validation_error', 'name'])
  })

  test.each([
    ['a value of another type', { variables: { items: 'one' } }, 'variables.items'],
    ['a variable that is missing', { variables: { items: [] } }, 'variables.order'],
    ['html beside the template', { variables: values, html: '<p>x</p>' }, 'templateId'],
  ])('%s', async (_, more, field) => {
    const { id: templateId } = await publish()
    expect(codeOf(await ask('POST', '/emails', { from, to, templateId, ...more }))).toEqual([400, 'validation_error', field])
  })

  test('a message without a template and without a subject, as before', async () => {
    expect(codeOf(await ask('POST', '/emails', { from, to, text: 'x', templateId: null }))).toEqual([400, 'validation_error', 'subject'])
  })
})

test('a subject cannot add a header field', async () => {
  const { id: templateId } = await publish({ subject: '{{ x }}', text: 'Hello.' })
  const sent = await done<{ id: string }>(
    ask('POST', '/emails', { from, to, templateId, variables: { x: 'Hello\r\nBcc: eve@example.com' } }),
  )
  expect((await contentOf(sent)).subject).toBe('Hello Bcc: eve@example.com')
})

test('a hostile template is refused, while other tenants send', async () => {
  const loops = '{% for a in (1..1000) %}{% for b in (1..1000) %}{% for c in (1..1000) %}x{% endfor %}{% endfor %}{% endfor %}'
  const { id: hostile } = await publish({ subject: 'x', html: loops })
  const tenantId = await service.makeTenant('Neighbour')
  await service.addDomain(tenantId, 'neighbour.example')
  const { id: templateId } = await publish(receipt, `/tenants/${tenantId}/templates`)
  const key = await service.makeKey({ tenantId })
  const send = () => ask('POST', '/emails', { from: 'a@neighbour.example', to, templateId, variables: values }, key)
  const answers = await Promise.all([
    ...Array.from({ length: 5 }, () => ask('POST', '/emails', { from, to, templateId: hostile })),
    ...Array.from({ length: 5 }, send),
  ])
  expect(answers.map(codeOf)).toEqual([...Array(5).fill([400, 'validation_error', 'templateId']), ...Array(5).fill(200)])
  expect(answers[0]?.body.error?.message).toContain('it takes too long')
})
